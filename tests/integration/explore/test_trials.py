"""One recovery, in a process of its own and in a warm one: what it did is told, and nothing of it is left."""

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from harness.clock import SystemClock
from harness.explore import rehearsal
from harness.explore.judgement import Recovery
from harness.explore.judging import room, trial
from harness.explore.judging.place import Place
from harness.explore.judging.trial import Trials
from harness.explore.recipe import Recipe, StateTask
from harness.runner.binding import inherited
from harness.targets import left_behind
from harness.targets.local.subreaper import subreaper
from tests.integration.explore.recipes import WARM, linear, python, shell, state, warm

Open = Callable[[Recipe], Trials]


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[Open]:
    """Opens trials by a recipe; afterwards nothing of them runs."""
    opened: list[Trials] = []
    run_id = uuid.uuid4().hex
    subreaper.acquire(run_id)

    def open_trials(recipe: Recipe) -> Trials:
        place = Place(tmp_path / f"place{len(opened)}", run_id=run_id, recipe=recipe, surroundings=inherited(os.environ))
        opened.append(Trials(recipe, place, blobs=tmp_path / "blobs", clock=SystemClock()))
        return opened[-1]

    yield open_trials
    for each in opened:
        each.close()
    subreaper.release(run_id)
    assert left_behind(run_id) == []


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


EMPTY = StateTask(state="empty", pieces=())


def first(trials: Trials, task: StateTask = EMPTY) -> Recovery:
    tried = trials.try_state(task)
    assert tried.lost == ""
    assert tried.first is not None
    return tried.first


BOTH = pytest.mark.parametrize("recover", ["", WARM], ids=["run again", "warm"])


@BOTH
def test_the_right_job_recovers_and_a_second_time_finds_nothing_to_do(trials: Open, recover: str) -> None:
    tried = trials(linear(recover=recover)).try_state(StateTask(state="empty", pieces=(), again=True))

    assert tried.first is not None
    assert tried.second is not None
    assert (tried.first.exit_code, tried.first.restored_step, tried.first.final_step, tried.first.done) == (0, 0, 12, True)
    assert [save.step for save in tried.first.saves] == [4, 8, 12]
    assert (tried.second.restored_step, tried.second.saves) == (12, ())
    assert tried.second.restored_digests == tried.first.digests[12]
    assert tried.second.result == tried.first.result != ""
    assert "step_00000012/manifest.json" in tried.first.left


def test_a_warm_job_does_for_every_state_what_a_new_process_does(trials: Open, blobs: Path) -> None:
    tasks = [EMPTY, state(blobs, {"owner": b"7"}), state(blobs, {"owner": b"garbage", "latest": b"x"}), EMPTY]
    cold = [first(trials(linear()), task) for task in tasks]
    warm_one = trials(linear(recover=WARM))

    for left, task in zip(cold, tasks, strict=True):
        right = first(warm_one, task)
        assert (left.exit_code, left.result, left.digests, left.left) == (right.exit_code, right.result, right.digests, right.left)
    assert warm_one.replaced == []


@BOTH
def test_each_state_begins_with_its_own_files_and_no_others(trials: Open, blobs: Path, recover: str) -> None:
    opened = trials(linear(recover=recover))
    first(opened)

    assert first(opened, state(blobs, {"owner": b"9"})).left == ("lock", "owner")
    assert first(opened).restored_step == 0


# ---- how it ends -----------------------------------------------------------------------------------------------------


def test_a_traceback_is_told_with_its_last_line(trials: Open) -> None:
    recovery = first(trials(python("raise ValueError('torn')")))

    assert (recovery.exit_code, recovery.signal, recovery.timed_out) == (1, None, False)
    assert recovery.detail.endswith("ValueError: torn")


def test_a_signal_that_ends_it_is_told(trials: Open) -> None:
    recovery = first(trials(python("os.kill(os.getpid(), signal.SIGSEGV)")))

    assert (recovery.exit_code, recovery.signal) == (None, signal.SIGSEGV)


def test_one_that_hangs_is_ended_with_its_children(trials: Open) -> None:
    recovery = first(trials(shell("sleep 600 & sleep 600", timeout_s=0.5)))

    assert (recovery.exit_code, recovery.signal, recovery.timed_out) == (None, None, True)
    assert recovery.seconds >= 0.5


@BOTH
@pytest.mark.parametrize(("waits", "slept"), [("time.sleep(0.1)", True), ("pass", False), ("subprocess.run(['sleep', '1'])", True)])
def test_one_that_only_sleeps_until_it_is_ended_is_told_from_one_that_works(
    trials: Open, tmp_path: Path, recover: str, waits: str, slept: bool
) -> None:
    code = f"while True: {waits}"
    recipe = warm(tmp_path, f"def recover():\n    {code}", timeout_s=4.0) if recover else python(code, timeout_s=4.0)
    recovery = first(trials(recipe))

    assert (recovery.timed_out, recovery.slept) == (True, slept)


def test_one_that_cannot_be_started_is_lost_and_not_failed(trials: Open) -> None:
    tried = trials(Recipe(command=("/missing/program",))).try_state(EMPTY)

    assert tried.first is None
    assert "/missing/program" in tried.lost


def test_a_blob_that_is_not_there_is_lost_and_not_failed(trials: Open, blobs: Path) -> None:
    task = state(blobs, {"data": b"x"})
    for blob in blobs.iterdir():
        blob.unlink()

    assert trials(linear()).try_state(task).first is None


def test_one_that_had_no_room_is_lost_and_not_failed(trials: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_may_have_quota", lambda _place: True)
    tried = trials(python("with open('/dev/full', 'w') as file: file.write('x')")).try_state(EMPTY)

    assert tried.first is None
    assert "it said 'No space left on device', and a quota may be in force there; free some space" in tried.lost


def test_one_that_says_that_a_disk_is_full_where_none_is_is_tried_once_more_and_that_counts(trials: Open, tmp_path: Path) -> None:
    code = f"with open({str(tmp_path / 'times')!r}, 'a+') as file: file.write('x'); file.seek(0); times = len(file.read())\n"
    always = trials(python(code + "sys.exit('perhaps the last run met ENOSPC?')"))
    assert first(always).detail == "perhaps the last run met ENOSPC?"
    assert (tmp_path / "times").read_text() == "xx"

    (tmp_path / "times").unlink()
    assert first(trials(python(code + "if times == 1: sys.exit('ENOSPC')"))).exit_code == 0


def test_what_it_prints_does_not_matter_and_does_not_fill_the_memory(trials: Open) -> None:
    recovery = first(trials(python("for _ in range(2000): os.write(1, b'\\xff\\x00garbage' * 1000)\nos.write(2, b'the end'); sys.exit(3)")))

    assert recovery.exit_code == 3
    assert recovery.detail.endswith("the end")
    assert len(recovery.detail) <= 4000


def test_output_that_a_child_holds_open_is_not_waited_for(trials: Open) -> None:
    assert first(trials(shell("sleep 600 & exit 0", timeout_s=10.0))).seconds < 9


DAEMON = """
if os.fork() == 0:
    os.setsid()
    daemon = os.fork()
    if daemon == 0:
        os.execve('/bin/sleep', ['sleep', '600'], {})
    Path(told).write_text(str(daemon))
    os._exit(0)
os.wait()
"""


def test_a_daemon_that_has_left_session_parents_and_environment_is_ended(trials: Open, tmp_path: Path) -> None:
    told = tmp_path / "daemon"
    first(trials(python(f"told = {str(told)!r}{DAEMON}")))

    assert not psutil.pid_exists(int(told.read_text()))


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_a_silent_job_is_heard_by_its_output(trials: Open, blobs: Path) -> None:
    code = "echo resumed from $(cat $CHECKPOINT_DIR/step); echo step 6; echo saved 6; printf complete"
    patterns = {
        "resumed": r"resumed from (?P<step>\d+)",
        "step": r"^step (?P<step>\d+)",
        "saved": r"saved (?P<step>\d+)",
        "done": "complete",
    }
    recovery = first(trials(shell(code, patterns=patterns)), state(blobs, {"step": b"4"}))

    assert (recovery.restored_step, recovery.final_step, recovery.done, recovery.digests) == (4, 6, True, {6: {}})
    assert [save.step for save in recovery.saves] == [6]


BAR = "\nfor step in (1, 2):\n    os.write(2, b'\\r%d/2 |###|' % step)\n    os.write(1, b'step %d\\n' % step)\n    time.sleep(0.05)"
"""A bar on the one stream that ends no line, and steps on the other."""


@BOTH
def test_a_progress_bar_hides_no_step(trials: Open, tmp_path: Path, recover: str) -> None:
    spoken = {"speaks_protocol": False, "patterns": {"step": r"^step (?P<step>\d+)"}}
    recipe = warm(tmp_path, "def recover():" + BAR.replace("\n", "\n    "), **spoken) if recover else python(BAR, **spoken)

    assert first(trials(recipe)).digests == {1: {}, 2: {}}


def test_an_uninterrupted_run_is_a_first_attempt_and_a_recovery_comes_after_one(trials: Open) -> None:
    opened = trials(python("(root / os.environ['CLOUD_RUN_TASK_ATTEMPT']).touch()"))
    tried = [opened.try_state(task) for task in (rehearsal.EMPTY, StateTask(state="empty", pieces=(), again=True))]

    assert [each.second and each.second.left for each in tried] == [("0", "1"), ("1", "2")]


def test_an_inspection_is_read_from_its_standard_output_alone(trials: Open) -> None:
    inspect = ("sh", "-c", """echo '{"step": 4}'; echo a warning >&2""")

    assert first(trials(shell("true", inspect=inspect))).inspected_before == 4


def test_its_variables_and_arguments_name_the_copy_and_what_it_says_of_it_is_the_same_everywhere(trials: Open) -> None:
    code = 'cd "$CHECKPOINT_DIR" && echo "$PWD $OUT $1 $CLOUD_RUN_TASK_ATTEMPT $HARNESS_ARMED"; exit 1'
    opened = trials(Recipe(command=("sh", "-c", code, "job", "{checkpoint_dir}"), environment={"OUT": "{checkpoint_dir}"}))

    assert first(opened).detail.split() == ["{checkpoint_dir}"] * 3 + ["1"]


def test_inspections_see_copies_before_and_after_and_do_not_change_what_is_judged(trials: Open, blobs: Path) -> None:
    inspect = ("sh", "-c", 'echo noise; cat "$1/step"; rm -r "$1"', "inspect", "{checkpoint_dir}")
    code = 'echo \'{"step": 8}\' > "$CHECKPOINT_DIR/step"'
    recovery = first(trials(shell(code, inspect=inspect)), state(blobs, {"step": b'{"step": 4}'}))

    assert (recovery.inspected_before, recovery.inspected_after, recovery.left) == (4, 8, ("step",))
    assert first(trials(shell("true", inspect=inspect))).inspected_before == -1
    assert first(trials(shell("true"))).inspected_before is None


@pytest.mark.parametrize("hangs", ["sleep 600", "yes"])
def test_an_inspection_that_does_not_end_is_ended_and_named_and_nothing_is_said_of_the_state(
    trials: Open, monkeypatch: pytest.MonkeyPatch, hangs: str
) -> None:
    monkeypatch.setattr(trial, "INSPECT_S_MAX", 0.5)
    tried = trials(shell("true", inspect=tuple(hangs.split()), timeout_s=600.0)).try_state(EMPTY)

    assert tried.first is None
    assert tried.lost == f"`{hangs}`, which is to inspect its checkpoints, did not end within 0.5 s"


def test_inspections_leave_a_warm_process_alone(trials: Open) -> None:
    inspect = ("sh", "-c", """echo '{"step": 4}'; sleep 600 &""")
    opened = trials(linear(recover=WARM, inspect=inspect))

    assert [first(opened).inspected_after for _ in range(4)] == [4] * 4
    assert opened.replaced == []


# ---- a warm process --------------------------------------------------------------------------------------------------


def pid_of(recovery: Recovery) -> str:
    return recovery.detail.split()[-1]


def test_a_warm_process_serves_state_after_state(trials: Open, tmp_path: Path) -> None:
    opened = trials(warm(tmp_path, "print('imported')\ndef recover(): print('serves', os.getpid())"))
    opened.try_state(EMPTY)
    opened.try_state(EMPTY)

    assert opened.replaced == []


def test_a_returned_number_is_the_exit_code_as_of_a_console_script(trials: Open, tmp_path: Path) -> None:
    code = "def recover():\n    what = Path(os.environ['CHECKPOINT_DIR'], 'what').read_text()\n    return eval(what)"
    opened = trials(warm(tmp_path, code))
    blobs = tmp_path / "blobs"
    answers = {b"None": 0, b"0": 0, b"3": 3, b"'no'": 1, b"sys.exit(5)": 5, b"1/0": 1, b"os._exit(6)": 6}

    assert {what: first(opened, state(blobs, {"what": what})).exit_code for what in answers} == answers


def test_a_crash_of_a_warm_process_is_of_that_state_alone(trials: Open, tmp_path: Path) -> None:
    code = "def recover():\n    if Path(os.environ['CHECKPOINT_DIR'], 'bad').exists(): os.kill(os.getpid(), signal.SIGBUS)"
    opened, bad = trials(warm(tmp_path, code)), state(tmp_path / "blobs", {"bad": b""})

    assert [first(opened, task).signal for task in (EMPTY, bad, EMPTY)] == [None, signal.SIGBUS, None]


def test_a_hang_of_a_warm_process_is_of_that_state_alone(trials: Open, tmp_path: Path) -> None:
    code = "def recover():\n    if Path(os.environ['CHECKPOINT_DIR'], 'bad').exists(): subprocess.run(['sleep', '600'])"
    opened, bad = trials(warm(tmp_path, code, timeout_s=0.5)), state(tmp_path / "blobs", {"bad": b""})

    assert [first(opened, task).timed_out for task in (EMPTY, bad, EMPTY)] == [False, True, False]


def test_what_an_earlier_state_left_in_memory_fails_no_later_one(trials: Open, tmp_path: Path) -> None:
    code = "served = 0\ndef recover():\n    global served\n    served += 1\n    assert served == 1, 'stale'"
    opened = trials(warm(tmp_path, code))

    assert [first(opened).exit_code for _ in range(4)] == [0, 0, 0, 0]
    assert opened.replaced == ["a used one did not do what a new one does", *["no process of this job may serve a second state"] * 2]


def test_what_an_earlier_state_left_in_memory_is_noticed_where_nothing_fails(trials: Open, tmp_path: Path) -> None:
    code = """
from functools import cache
import json
@cache
def newest():
    return Path(os.environ['CHECKPOINT_DIR'], 'step').read_text()
def recover():
    Path(os.environ['HARNESS_EVENTS']).write_text(json.dumps({'event': 'start', 'restored_step': int(newest())}) + '\\n')
"""
    opened = trials(warm(tmp_path, code))
    tasks = [state(tmp_path / "blobs", {"step": step}) for step in (b"4", b"8", b"12", b"16")]

    assert [first(opened, task).restored_step for task in tasks] == [4, 8, 12, 16]


def test_a_state_that_wants_a_new_process_has_one(trials: Open, tmp_path: Path) -> None:
    code = "served = 0\ndef recover():\n    global served\n    served += 1\n    Path(os.environ['CHECKPOINT_DIR'], str(served)).touch()"
    opened = trials(warm(tmp_path, code))
    tasks = [EMPTY, EMPTY, EMPTY, EMPTY, StateTask(state="empty", pieces=(), fresh=True)]

    assert [first(opened, task).left for task in tasks] == [
        ("1",),
        ("1",),
        ("2",),
        ("3",),
        ("1",),
    ]  # the second one is the first one's check


LEFT_BEHIND = {
    "environment": "os.environ['STALE'] = '1'",
    "working directory": "os.chdir('/')",
    "umask": "os.umask(0o777)",
    "signal handler": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "signal mask": "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})",
    "timer": "signal.setitimer(signal.ITIMER_REAL, 0.05)",
    "import path": "sys.path.clear()",
    "arguments": "sys.argv[:] = ['x']",
    "a silenced stdout": "sys.stdout = None",
}

CLEAN = """
os.umask(0o022)
def state():
    return [os.getcwd(), os.environ.get('STALE'), os.umask(0o022), signal.getsignal(signal.SIGTERM),
            signal.pthread_sigmask(signal.SIG_BLOCK, ()), list(sys.path), list(sys.argv), sys.stdout]
served, before = 0, state()
def recover():
    global served
    served += 1
    if served == 1:
        {what}
        return
    time.sleep(0.1)
    assert state() == before, (state(), before)
"""


@pytest.mark.parametrize("what", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_what_can_be_put_back_is_put_back(trials: Open, tmp_path: Path, what: str) -> None:
    opened = trials(warm(tmp_path, CLEAN.replace("{what}", what)))

    assert [first(opened).exit_code for _ in range(2)] == [0, 0]
    assert opened.replaced == []


STALE = {
    "a daemon thread": ("threading.Thread(target=time.sleep, args=(600,), daemon=True, name='saver').start()", "thread saver still runs"),
    "an open file": ("global file; file = open(os.environ['CHECKPOINT_DIR'] + '/log', 'w')", "/log is still open"),
    "another stdout": ("os.dup2(os.open('/dev/null', os.O_WRONLY), 1)", "its standard output or error was changed"),
    "a process": ("subprocess.Popen(['sleep', '600'])", "processes that it had started still ran"),
}


@pytest.mark.parametrize(("what", "why"), STALE.values(), ids=STALE)
def test_what_cannot_be_put_back_costs_the_warm_process_and_is_told(trials: Open, tmp_path: Path, what: str, why: str) -> None:
    opened = trials(warm(tmp_path, f"def recover():\n    {what}"))

    assert [first(opened).exit_code for _ in range(2)] == [0, 0]
    assert len(opened.replaced) == 2
    assert opened.replaced[0].endswith(why)


def test_threads_of_an_event_loop_that_nobody_closed_cost_nothing(trials: Open, tmp_path: Path) -> None:
    code = """
import asyncio
def recover():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(loop.run_in_executor(None, int))
    loop.itself = loop
"""
    opened = trials(warm(tmp_path, code))

    assert [first(opened).exit_code for _ in range(2)] == [0, 0]
    assert opened.replaced == []


def test_a_thread_that_keeps_a_process_alive_is_waited_for_as_at_its_real_end(trials: Open, tmp_path: Path) -> None:
    code = """
import atexit
def save():
    threading.main_thread().join()
    Path(os.environ['CHECKPOINT_DIR'], 'saved-late').touch()
def recover():
    atexit.register(Path(os.environ['CHECKPOINT_DIR'], 'at-exit').touch)
    threading.Thread(target=save, name='saver').start()
    return 4
"""
    opened = trials(warm(tmp_path, code))
    recovery = first(opened)

    assert (recovery.exit_code, recovery.left) == (4, ("at-exit", "saved-late"))
    assert opened.replaced == ["threads that still ran: saver"]


def test_a_thread_that_never_ends_is_a_hang(trials: Open, tmp_path: Path) -> None:
    recovery = first(trials(warm(tmp_path, "def recover(): threading.Thread(target=time.sleep, args=(600,)).start()", timeout_s=0.5)))

    assert recovery.timed_out


def test_a_function_that_cannot_be_imported_is_lost_with_the_reason(trials: Open, tmp_path: Path) -> None:
    assert "no such thing" in trials(warm(tmp_path, "raise ImportError('no such thing')")).try_state(EMPTY).lost
    assert "has no attribute" in trials(warm(tmp_path, "")).try_state(EMPTY).lost


def test_a_job_that_starts_itself_again_runs_its_function(trials: Open, tmp_path: Path) -> None:
    code = """
def recover():
    if 'RANK' in os.environ:
        return Path(os.environ['CHECKPOINT_DIR'], 'rank').touch()
    return subprocess.run([sys.executable, *sys.orig_argv[1:]], env={**os.environ, 'RANK': '0'}).returncode
"""
    recovery = first(trials(warm(tmp_path, code)))

    assert (recovery.exit_code, recovery.left) == (0, ("rank",))


def test_what_each_recovery_leaves_is_copied_to_where_it_is_to_stay(trials: Open, blobs: Path, tmp_path: Path) -> None:
    kept = [tmp_path / "kept" / name for name in ("first", "second")]
    task = state(blobs, {"n": b"1"}, again=True, keeps=tuple(map(str, kept)))
    opened = trials(python("path = root / 'n'\npath.write_text(str(1 + int(path.read_text())))"))

    for _ in range(2):  # the last time counts
        assert opened.try_state(task).lost == ""

    assert [(each / "n").read_text() for each in kept] == ["2", "3"]
