"""Workers on this machine: every state is answered exactly once, whatever happens to a worker, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from harness.clock import SystemClock
from harness.explore.executors import worker_process
from harness.explore.executors.local import LocalExecutor
from harness.explore.judging.trial import DISTURBED
from harness.explore.recipe import Recipe, StateTask, Tried
from harness.targets import left_behind, remove_left_behind
from tests.integration.explore.recipes import ROOT, WARM, linear, python, shell, state

NEVER = float("inf")


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def run_id() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield name
    assert left_behind(name) == []


@pytest.fixture
def executor(blobs: Path, run_id: str) -> Iterator[Callable[..., LocalExecutor]]:
    opened: list[LocalExecutor] = []

    def open_executor(jobs: int = 2) -> LocalExecutor:
        blobs.mkdir(exist_ok=True)
        opened.append(LocalExecutor(blobs, jobs=jobs, run_id=run_id))
        return opened[-1]

    yield open_executor
    for each in opened:
        each.close()


def named(count: int) -> list[StateTask]:
    return [StateTask(state=f"{number:02}", pieces=()) for number in range(count)]


def test_every_state_is_answered_once_by_as_many_workers_as_were_asked_for(executor, blobs: Path) -> None:
    tasks = [state(blobs, {"owner": b"%d" % number}) for number in range(9)]
    opened = executor(jobs=3)
    answers = list(opened.try_all(tasks, linear(recover=WARM), deadline_s=NEVER))

    assert sorted(tried.state for tried in answers) == sorted(task.state for task in tasks)
    assert len(opened.pids) == 3
    codes = {tried.state: tried.first.exit_code for tried in answers}
    assert [codes[task.state] for task in tasks] == [0, 0] + [75] * 7  # a newer attempt owns the directory


def test_whoever_has_ended_has_been_waited_for(executor) -> None:
    before = set(psutil.Process().children())
    opened = executor()
    list(opened.try_all(named(4), linear(recover=WARM), deadline_s=NEVER))
    opened.close()

    assert set(psutil.Process().children()) <= before


def test_states_are_tried_in_their_order(executor) -> None:
    assert [tried.state for tried in executor(jobs=1).try_all(named(5), shell("true"), deadline_s=NEVER)] == [
        task.state for task in named(5)
    ]


def test_answers_come_as_they_are_there(executor, blobs: Path) -> None:
    tasks = [state(blobs, {"seconds": seconds}) for seconds in (b"30", b"0", b"0.0")]
    answers = executor(jobs=2).try_all(tasks, shell('sleep "$(cat "$CHECKPOINT_DIR"/seconds)"'), deadline_s=NEVER)

    assert {next(answers).state, next(answers).state} == {tasks[1].state, tasks[2].state}
    answers.close()


def test_who_stops_listening_has_what_is_being_tried_given_up(executor, run_id: str) -> None:
    opened = executor(jobs=2)
    answers = opened.try_all(named(3), shell('test -e "$CHECKPOINT_DIR" && sleep 0.1 && exit 3'), deadline_s=NEVER)
    next(answers)
    answers.close()

    assert len(opened.pids) <= 1
    assert len(list(opened.try_all(named(3), shell("true"), deadline_s=NEVER))) == 3


def test_what_has_not_begun_by_the_deadline_is_not_begun(executor) -> None:
    clock = SystemClock()
    answers = list(executor(jobs=1).try_all(named(50), shell("sleep 0.2"), deadline_s=clock.monotonic_s() + 0.5))

    assert [tried.state for tried in answers] == [task.state for task in named(50)][: len(answers)]
    assert 1 <= len(answers) <= 4
    assert list(executor(jobs=1).try_all(named(2), shell("true"), deadline_s=clock.monotonic_s() - 1)) == []


def test_another_recipe_is_another_job(executor) -> None:
    opened = executor(jobs=1)
    codes = [next(iter(opened.try_all(named(1), shell(f"exit {code}"), deadline_s=NEVER))).first.exit_code for code in (3, 4, 3)]

    assert codes == [3, 4, 3]


# ---- a worker is lost ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_loses_no_state(executor, number: int) -> None:
    opened, answers = executor(jobs=2), []
    for tried in opened.try_all(named(10), linear(recover=WARM), deadline_s=NEVER):
        answers.append(tried)
        if len(answers) in (2, 5):
            os.kill(opened.pids[0], number)

    assert sorted(tried.state for tried in answers) == [task.state for task in named(10)]
    assert {(tried.lost, tried.first.exit_code) for tried in answers} == {("", 0)}
    assert len(opened.lost) == 2


def test_a_worker_that_dies_while_it_has_nothing_to_do_costs_no_state_a_try(executor) -> None:
    opened = executor(jobs=1)
    for _ in range(4):
        (tried,) = opened.try_all(named(1), shell("true"), deadline_s=NEVER)
        assert tried.first.exit_code == 0
        os.kill(opened.pids[0], signal.SIGKILL)
        psutil.wait_procs([psutil.Process(opened.pids[0])], timeout=10)

    assert set(opened.lost) == {"it ended while it had nothing to do"}


KILLS_ITS_PARENT = "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"


def test_a_recovery_that_kills_its_worker_twice_is_lost_and_the_others_are_not(executor, blobs: Path) -> None:
    recipe = python(f"if (root / 'bad').exists(): {KILLS_ITS_PARENT}")
    bad = state(blobs, {"bad": b""})
    answers = {tried.state: tried for tried in executor(jobs=2).try_all([*named(3), bad, *named(6)[3:]], recipe, deadline_s=NEVER)}

    assert answers[bad.state] == Tried(state=bad.state, lost="its worker was lost 2 times, the last time because it was ended by SIGKILL")
    assert [answers[task.state].first.exit_code for task in named(6)] == [0] * 6


def test_a_recovery_that_kills_its_worker_once_is_tried_again(executor, tmp_path: Path) -> None:
    recipe = python(f"flag = Path({str(tmp_path / 'flag')!r})\nif not flag.exists(): flag.touch(); {KILLS_ITS_PARENT}")
    (tried,) = executor().try_all(named(1), recipe, deadline_s=NEVER)

    assert tried.first.exit_code == 0


def test_a_state_is_finished_after_the_deadline_when_its_worker_was_lost(executor, tmp_path: Path) -> None:
    recipe = python(f"flag = Path({str(tmp_path / 'flag')!r})\nif not flag.exists(): flag.touch(); time.sleep(1); {KILLS_ITS_PARENT}")
    answers = list(executor(jobs=1).try_all(named(2), recipe, deadline_s=SystemClock().monotonic_s() + 0.8))

    assert [(tried.state, tried.first.exit_code) for tried in answers] == [("00", 0)]


def test_a_worker_that_was_stopped_is_given_up_and_replaced(executor, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker_process, "OVERHEAD_S", 1.0)
    recipe = python(
        f"flag = Path({str(tmp_path / 'flag')!r})\nif not flag.exists(): flag.touch(); os.kill(os.getppid(), signal.SIGSTOP)", timeout_s=2.0
    )
    opened = executor(jobs=1)
    (tried,) = opened.try_all(named(1), recipe, deadline_s=NEVER)

    assert tried.first.exit_code == 0
    assert opened.lost == ["it did not answer in its time"]


# ---- the executor itself ---------------------------------------------------------------------------------------------

EXPLORER = """
import sys
from pathlib import Path
from harness.explore.executors.local import LocalExecutor
from harness.explore.judging.trial import DISTURBED
from harness.explore.recipe import Recipe, StateTask
with LocalExecutor(Path(sys.argv[1]), jobs=2, run_id=sys.argv[2]) as executor:
    recipe = Recipe(command=("sh", "-c", "echo; sleep 600"), timeout_s=600.0)
    tasks = [StateTask(state="quick", pieces=())] + [StateTask(state=str(n), pieces=()) for n in range(3)]
    quick = Recipe(command=("true",))
    print(len(list(executor.try_all(tasks, quick, deadline_s=float("inf")))), flush=True)
    list(executor.try_all(tasks, recipe, deadline_s=float("inf")))
"""


def explorer(blobs: Path, run_id: str) -> "subprocess.Popen[bytes]":
    """An executor in a process of its own, in the middle of its states."""
    blobs.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", EXPLORER, str(blobs), run_id], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"4\n"
    clock, deadline_s = SystemClock(), SystemClock().monotonic_s() + 30
    while not [line for line in left_behind(run_id) if "(sleep)" in line]:
        assert clock.monotonic_s() < deadline_s
        clock.sleep(0.02)
    return process


def test_an_interrupt_leaves_nothing(blobs: Path, run_id: str) -> None:
    process = explorer(blobs, run_id)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert b"KeyboardInterrupt" in errors
    assert left_behind(run_id) == []


def test_what_a_killed_executor_leaves_is_found_and_removed_by_its_run(blobs: Path, run_id: str) -> None:
    process = explorer(blobs, run_id)
    process.kill()
    process.communicate(timeout=30)

    assert [line for line in left_behind(run_id) if line.startswith("scratch directory")]
    assert remove_left_behind(run_id, only="local")
    assert left_behind(run_id) == []


def test_closing_twice_is_harmless(executor) -> None:
    opened = executor()
    opened.close()
    opened.close()


def test_a_job_finds_none_of_the_callers_own_variables(executor, monkeypatch) -> None:
    monkeypatch.setenv("HARNESS_BARRIER", "/x")
    monkeypatch.setenv("CLOUD_RUN_JOB", "another")
    monkeypatch.setenv("MINE", "1")
    recipe: Recipe = shell("env; exit 1")
    (tried,) = executor().try_all(named(1), recipe, deadline_s=NEVER)
    lines = tried.first.detail.splitlines()

    assert "MINE=1" in lines
    assert not [line for line in lines if line.startswith(("HARNESS_BARRIER", "CLOUD_RUN_JOB=", "PYTHONPATH"))]


PORT_FOR_ONE = """
import fcntl
meeting = Path(os.environ["MEETING"])
if not (meeting / "met").exists():  # the first two are there at once, whoever is faster
    (meeting / str(os.getpid())).touch()
    while len(list(meeting.iterdir())) < 2:
        time.sleep(0.01)
    (meeting / "met").touch()
    sys.exit("Address already in use")
port = (meeting / "met").open("w")
try:
    fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit("Address already in use")
time.sleep(0.05)
"""


def test_recoveries_that_get_in_one_anothers_way_are_tried_one_at_a_time(executor, tmp_path: Path) -> None:
    (tmp_path / "meeting").mkdir()
    opened = executor(jobs=2)
    recipe = python(PORT_FOR_ONE, environment={"MEETING": str(tmp_path / "meeting")})
    answers = list(opened.try_all(named(6), recipe, deadline_s=NEVER))

    assert [tried.first.exit_code for tried in answers if tried.first is not None] == [0] * 6, answers
    assert DISTURBED in opened.replaced


def test_what_fails_alone_too_is_tried_alone_once_for_each_way_to_fail(executor, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    code = f"print('cannot load step', os.getpid()); os.write(os.open({str(tries)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND), b'x'); sys.exit(3)"
    opened = executor(jobs=2)
    answers = list(opened.try_all(named(6), python(code), deadline_s=NEVER))

    assert [tried.first.exit_code for tried in answers if tried.first is not None] == [3] * 6
    assert 6 < tries.stat().st_size <= 6 + 2, "once for each worker"
    assert opened.replaced == []
