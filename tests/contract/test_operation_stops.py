"""Operations at which a job is held, where this machine lets it be held: exactly there, by whoever does them, until it is let go or dies."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from harness.capabilities import OperationStops
from harness.clock import ManualClock
from harness.errors import InvalidDocumentError
from harness.history import AttemptExited, Marked, OperationReached, SigtermSeen
from harness.scenario.triggers import AtOperation
from harness.targets import create
from tests.contract.driver import TRAITS, Run, python

SAVE = """
home = os.getcwd()
os.chdir(os.environ["CHECKPOINT_DIR"])
def save(step):
    emit("save.begin", step=step, digests={})
    os.mkdir(f"tmp{step}")
    with open(f"tmp{step}/data", "wb") as file: file.write(b"content"); file.flush(); os.fsync(file.fileno())
    os.rename(f"tmp{step}", f"step_{step}")
"""


@pytest.fixture(params=[name for name in TRAITS if isinstance(create(name, ManualClock()), OperationStops)])
def target_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def tree(run: Run) -> list[str]:
    root: Path = run.launch.checkpoint_dir
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def held(run: Run) -> OperationReached:
    assert run.target.stops_problem() == ""
    return run.until(OperationReached)


@pytest.mark.parametrize(("when", "left"), [("before", ["tmp1", "tmp1/data"]), ("after", ["step_1", "step_1/data"])])
def test_a_kill_before_or_after_an_operation_leaves_storage_exactly_so(start, when, left):
    run = start(python(SAVE + "save(1); save(2)"), stops=(AtOperation(operation="rename", path="tmp*", when=when),))
    reached = held(run)

    run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.target.resume(reached)
    run.finish()

    assert tree(run) == left
    assert [exited.signal for exited in run.exits()] == [signal.SIGKILL]
    assert (reached.operation, reached.path, reached.when, reached.rank) == ("rename", "tmp*", when, 0)


OPERATIONS = {
    "mkdir": ("tmp*", []),
    "create": ("tmp*/data", ["tmp1"]),
    "write": ("tmp*/data", ["tmp1", "tmp1/data"]),
    "sync": ("tmp*/data", ["tmp1", "tmp1/data"]),
    "rename": ("tmp*", ["tmp1", "tmp1/data"]),
    "open": ("step_*/data", ["step_1", "step_1/data"]),
    "truncate": ("step_*/data", ["step_1", "step_1/data"]),
    "link": ("other", ["step_1", "step_1/data"]),
    "symlink": ("pointer", ["other", "step_1", "step_1/data"]),
    "move-out": ("other", ["other", "pointer", "step_1", "step_1/data"]),
    "move-in": ("back", ["pointer", "step_1", "step_1/data"]),
    "unlink": ("step_*/data", ["back", "pointer", "step_1", "step_1/data"]),
    "rmdir": ("step_*", ["back", "pointer", "step_1"]),
}


def test_before_each_kind_of_operation_nothing_of_it_is_done(start):
    every = """
save(1)
os.close(os.open("step_1/data", os.O_RDWR))
os.truncate("step_1/data", 3)
os.link("step_1/data", "other"); os.symlink("other", "pointer")
os.rename("other", "../other"); os.rename("../other", "back")
os.unlink("step_1/data"); os.rmdir("step_1")
"""
    run = start(
        python(SAVE + every), stops=tuple(AtOperation(operation=kind, path=path, when="before") for kind, (path, _) in OPERATIONS.items())
    )

    for nth, (kind, (_, left)) in enumerate(OPERATIONS.items(), start=1):
        reached = run.until(OperationReached, nth=nth)
        assert (reached.operation, tree(run)) == (kind, left)
        run.target.resume(reached)
    run.finish()

    assert tree(run) == ["back", "pointer"]
    assert [exited.exit_code for exited in run.exits()] == [0]


def test_after_each_kind_of_operation_it_is_done_and_nothing_more(start):
    after = {
        "mkdir": ("tmp*", ["tmp1"], None),
        "create": ("tmp*/data", ["tmp1", "tmp1/data"], b""),
        "write": ("tmp*/data", ["tmp1", "tmp1/data"], b"content"),
        "sync": ("tmp*/data", ["tmp1", "tmp1/data"], b"content"),
        "rename": ("tmp*", ["step_1", "step_1/data"], b"content"),
    }
    run = start(
        python(SAVE + "save(1); save(2)"), stops=tuple(AtOperation(operation=kind, path=path) for kind, (path, _, _) in after.items())
    )

    for nth, (kind, (_, left, content)) in enumerate(after.items(), start=1):
        reached = run.until(OperationReached, nth=nth)
        assert (reached.operation, tree(run)) == (kind, left)
        if content is not None:
            assert (run.launch.checkpoint_dir / left[-1]).read_bytes() == content
        run.target.resume(reached)
    run.finish()

    assert tree(run) == ["step_1", "step_1/data", "step_2", "step_2/data"]


def test_an_operation_is_counted_from_the_marker_on(start):
    stop = AtOperation(operation="create", path="tmp*/data", nth=2, after="save.begin", after_nth=2, when="before")
    run = start(python(SAVE + "save(1); save(2); save(3); save(4)"), stops=(stop,))
    reached = held(run)

    assert tree(run) == ["step_1", "step_1/data", "step_2", "step_2/data", "tmp3"]
    assert (reached.nth, reached.after, reached.after_nth) == (2, "save.begin", 2)
    run.target.resume(reached)
    run.finish()
    assert len(run.of(OperationReached)) == 1


def test_what_the_job_has_said_before_is_told_before(start):
    run = start(python(SAVE + "save(1)\nemit('saved')"), stops=(AtOperation(operation="rename", path="tmp*"),))
    reached = held(run)
    for _ in range(5):
        run.poll()

    kinds = [type(event).__name__ for event in run.seen]
    assert kinds.index("SaveBegun") < kinds.index("OperationReached")
    assert run.of(Marked) == []
    run.target.resume(reached)
    run.target.resume(reached)
    run.until(Marked)


def test_other_threads_go_on_while_one_is_held(start):
    code = """
import threading
held = threading.Thread(target=save, args=(1,)); held.start()
while not os.path.exists("tmp1/data"): time.sleep(0.01)
open("beside", "w").close(); emit("beside")
held.join()
"""
    run = start(python(SAVE + code), stops=(AtOperation(operation="write", path="tmp*/data", when="before"),))
    reached = held(run)
    run.until(Marked)

    assert tree(run) == ["beside", "tmp1", "tmp1/data"]
    run.target.resume(reached)
    run.finish()
    assert [exited.exit_code for exited in run.exits()] == [0]


def test_a_signal_reaches_the_job_right_after_the_operation_it_was_held_at(start):
    code = """
signal.signal(signal.SIGTERM, lambda *_: (emit("sigterm"), sys.exit(3)))
save(1); save(2)
"""
    run = start(python(SAVE + code), stops=(AtOperation(operation="mkdir", path="tmp*", when="before"),))
    reached = held(run)

    run.target.terminate(run.victim(), cause="fault")
    for _ in range(5):
        run.poll()
    assert run.of(SigtermSeen) == []
    run.target.resume(reached)
    run.finish()

    assert tree(run) == ["tmp1"]
    assert [exited.exit_code for exited in run.exits()] == [3]


def test_a_job_that_is_stopped_where_it_is_held_stands_still_after_the_operation(start):
    run = start(python(SAVE + "save(1); save(2)"), stops=(AtOperation(operation="rename", path="tmp*", when="before"),))
    reached = held(run)

    stopped = run.target.signal(run.victim(), signal.SIGSTOP, cause="fault")
    run.target.resume(reached)
    run.until_true(lambda: set(run.target.process_states(stopped).values()) == {"stopped"})
    assert tree(run) == ["step_1", "step_1/data"]
    for _ in range(5):
        run.poll()
    assert tree(run) == ["step_1", "step_1/data"]

    assert run.target.signal(run.victim(), signal.SIGCONT, cause="fault") == stopped
    run.finish()
    assert tree(run) == ["step_1", "step_1/data", "step_2", "step_2/data"]


def test_each_rank_is_counted_and_held_for_itself(start):
    code = """
if "RANK" not in os.environ:
    ranks = [subprocess.Popen([*sys.orig_argv], env={**os.environ, "RANK": str(rank)}, cwd=home) for rank in (0, 1)]
    sys.exit(max(rank.wait() for rank in ranks))
rank = int(os.environ["RANK"])
for nth in (1, 2, 3): os.mkdir(f"dir{rank * 10 + nth}")
"""
    run = start(python(SAVE + code), stops=(AtOperation(operation="mkdir", path="dir*", nth=2, rank=1),), ranks=2)
    reached = held(run)

    assert reached.rank == 1
    run.until_true(lambda: "dir3" in tree(run))
    assert tree(run) == ["dir1", "dir11", "dir12", "dir2", "dir3"]
    assert run.target.signal(run.victim(rank=1), signal.SIGKILL, cause="fault") == (reached.pid,)
    run.target.resume(reached)
    run.until(AttemptExited)
    assert "dir13" not in tree(run)


def test_a_process_that_a_rank_starts_is_of_that_rank(start):
    code = """
emit("step", step=1, rank=1)
subprocess.run([sys.executable, "-S", "-c", "import os; os.mkdir('by_child')"])
"""
    run = start(python(SAVE + code), stops=(AtOperation(operation="mkdir", path="by_child", rank=1, after="step"),))
    reached = held(run)
    assert tree(run) == ["by_child"]
    run.target.resume(reached)
    run.finish()


def test_each_attempt_is_held_anew(start):
    run = start(python(SAVE + "save(attempt); sys.exit(1)"), stops=(AtOperation(operation="mkdir", path="tmp*"),), max_retries=1)
    first = held(run)
    run.target.resume(first)
    second = run.until(OperationReached, nth=2)
    run.target.resume(second)
    run.finish()

    assert [(reached.attempt, reached.nth) for reached in (first, second)] == [(0, 1), (1, 1)]


def test_a_run_that_is_stopped_leaves_nobody_held(start):
    run = start(python(SAVE + "save(1)"), stops=(AtOperation(operation="mkdir", path="tmp*", when="before"),))
    held(run)
    run.stop()
    assert tree(run) == []


REFUSED = {
    "the supervisor is not told of it": {"stops": (AtOperation(operation="close", path="a"),)},
    "each needs the one supervisor": {"stops": (AtOperation(operation="sync", path="a"),), "interpose_storage": True},
    r"write step_\*/data": {"stops": (AtOperation(operation="write", path="step_10/data"),)},
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_nobody_can_be_held_at_is_refused(start, why):
    run = start(python("emit('x')"))
    with pytest.raises(InvalidDocumentError, match=why):
        run.target.check_launch(replace(run.launch, **REFUSED[why]))
