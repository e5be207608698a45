"""What every target owes, a cluster too: fewer promises than those of a Cloud Run execution, and each costs a cluster ten seconds or more."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capabilities import Processes
from harness.history import (
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    Booted,
    Event,
    ExecutionFinished,
    ExecutionStarted,
    LogLine,
    Marked,
    Restored,
    SignalSent,
    SigtermSeen,
    StepDone,
    TaskFinished,
)
from harness.kind.lock import TURN_S_MAX
from harness.targets import NAMES, left_behind
from tests.contract.driver import EVERY, PYTHON, Run
from tests.contract.presence import skip_or_fail_without

PRELUDE = """
import os, signal, sys, time
from pathlib import Path
from workloads.protocol import emit
directory = Path(os.environ["CHECKPOINT_DIR"])
tries = directory / "tries"
tries.touch()
tries.write_text(tries.read_text() + "x")
attempt = len(tries.read_text()) - 1
"""
"""A job that counts its attempts itself: on a cluster nobody numbers them."""


def job(code: str) -> tuple[str, ...]:
    return (*PYTHON, PRELUDE + code)


TEST_S_MAX = TURN_S_MAX + 300.0
"""A test on a cluster may wait for its turn before it begins."""


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.timeout(TEST_S_MAX)] if name == "kind" else []) for name in EVERY])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs on one target; afterwards each is stopped and must have left nothing behind."""
    if request.param == "gcp":
        request.getfixturevalue("google_cloud")
    skip_or_fail_without(request.param)
    runs: list[Run] = []

    def start_run(command: tuple[str, ...], **launch: Any) -> Run:
        runs.append(Run(request.param, tmp_path / str(len(runs)), command, **launch))
        return runs[-1].start()

    yield start_run
    for run in runs:
        run.stop()
    assert [left_behind(run.launch.run_id) for run in runs] == [[] for _ in runs]


def test_no_target_is_left_out():
    assert set(EVERY) == set(NAMES)


def kinds(run: Run, *wanted: type[Event]) -> list[type[Event]]:
    return [type(event) for event in run.seen if type(event) in wanted]


def test_a_job_that_fails_once_is_tried_again_and_all_that_it_says_is_under_its_attempt(start):
    run = start(
        job("emit('boot'); print(f'attempt {attempt}', flush=True); emit('own'); sys.exit(7 if attempt == 0 else 0)"), max_retries=2
    )

    run.finish()

    assert [(exited.attempt, exited.exit_code, exited.cause, exited.retried) for exited in run.exits()] == [
        (0, 7, "job", True),
        (1, 0, "job", False),
    ]
    assert [(event.attempt, event.name) for event in run.of(Marked)] == [(0, "own"), (1, "own")]
    assert [(line.attempt, line.text) for line in run.of(LogLine) if line.stream == "stdout"] == [(0, "attempt 0"), (1, "attempt 1")]
    assert [(task.succeeded, task.attempts) for task in run.of(TaskFinished)] == [(True, 2)]
    (finished,) = run.of(ExecutionFinished)
    assert (finished.succeeded, finished.failed, finished.retried) == (1, 0, 1)
    order = kinds(run, ExecutionStarted, AttemptStarted, Booted, AttemptExited, TaskFinished, ExecutionFinished)
    assert order == [ExecutionStarted, *[AttemptStarted, Booted, AttemptExited] * 2, TaskFinished, ExecutionFinished]
    assert (run.target.checkpoint_path(0) / "tries").read_text() == "xx"
    run.stop()
    assert (run.launch.checkpoint_dir / "tries").read_text() == "xx"


def test_a_job_that_may_not_be_tried_again_has_failed(start):
    run = start(("sh", "-c", "exit 3"))

    run.finish()

    (exited,) = run.exits()
    assert (exited.exit_code, exited.cause, exited.retried) == (3, "job", False)
    assert [task.succeeded for task in run.of(TaskFinished)] == [False]
    assert run.of(ExecutionFinished)[0].failed == 1


def test_a_kill_at_a_marker_is_exact(start):
    code = """
for step in range(1, 4):
    (directory / f'before-{step}').touch()
    emit('step', step=step)
    (directory / f'after-{step}').touch()
"""
    run = start(job(code), armed=("step:after",))
    run.releases = False
    for step in (1, 2):
        reached = run.until(BarrierReached, lambda event, step=step: event.step == step)
        if step == 1:
            run.target.release(reached)

    assert {path.name for path in run.target.checkpoint_path(0).iterdir()} == {"tries", "before-1", "after-1", "before-2"}
    pids = run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.releases = True
    run.finish()

    (exited,) = run.exits()
    assert (exited.signal, exited.cause) == (signal.SIGKILL, "fault")
    assert [event.step for event in run.of(StepDone)] == [1, 2]
    assert run.of(SignalSent)[0].pids == pids
    assert {path.name for path in run.target.checkpoint_path(0).iterdir()} == {"tries", "before-1", "after-1", "before-2"}
    assert set(run.target.process_states(pids).values()) == {"gone"}


SAVES_AT_SIGTERM = """
def leave(*_):
    emit('sigterm')
    (directory / 'saved').touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, leave)
emit('boot')
while True:
    time.sleep(0.05)
"""


def test_who_is_told_to_go_has_its_grace(start):
    run = start(job(SAVES_AT_SIGTERM), grace_s=8.0)
    run.until(Booted)

    run.target.terminate(run.victim(), cause="fault", message="it is taken away", reason="TAKEN")
    run.finish()

    (exited,) = run.exits()
    assert (exited.exit_code, exited.cause) == (143, "fault")
    assert run.of(SigtermSeen)
    assert (run.target.checkpoint_path(0) / "saved").exists()
    assert [(line.text, line.reason) for line in run.of(LogLine) if line.reason] == [("it is taken away", "TAKEN")]


def test_who_does_not_go_is_killed_when_the_grace_is_over(start):
    run = start(job("signal.signal(signal.SIGTERM, signal.SIG_IGN); emit('boot'); time.sleep(60)"), grace_s=1.0)
    run.until(Booted)

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    (exited,) = run.exits()
    assert (exited.signal, exited.cause) == (signal.SIGKILL, "grace")
    assert [(sent.signal, sent.cause) for sent in run.of(SignalSent)] == [("SIGTERM", "fault"), ("SIGKILL", "grace")]


def test_processes_stand_still_and_go_on(start):
    run = start(job("emit('boot', rank=1)\nfor step in range(1, 1000): emit('step', step=step, rank=1); time.sleep(0.02)"))
    run.until(StepDone)
    rank = Processes(rank=1)

    pids = run.target.process_ids(rank)
    assert pids == (run.of(Booted)[0].pid,)
    assert run.target.signal(run.victim(), signal.SIGSTOP, cause="fault") == run.target.process_ids(run.victim())
    run.until_true(lambda: set(run.target.process_states(pids).values()) == {"stopped"})
    run.poll()
    stood_at = run.of(StepDone)[-1].step
    run.poll()
    assert run.of(StepDone)[-1].step == stood_at
    run.target.signal(run.victim(), signal.SIGCONT, cause="fault")

    run.until(StepDone, lambda event: event.step > stood_at)


def test_what_is_stopped_half_way_leaves_nothing_and_says_who_ended_it(start):
    run = start(job("emit('boot'); time.sleep(60)"))
    run.until(Booted)

    last = run.stop()

    (exited,) = [event for event in last if isinstance(event, AttemptExited)]
    cancelled = {signal.SIGTERM} if run.traits.is_remote else set()  # there, so that nothing is tried again
    assert exited.signal in {signal.SIGKILL, *cancelled}
    assert (exited.cause, exited.retried) == ("stop", False)
    assert run.stop() == []
    assert run.target.is_finished()
    assert run.target.poll() == ()
    with pytest.raises(LookupError):
        run.target.process_ids(run.victim())


def test_who_is_not_there_cannot_be_hit(start):
    run = start(("sh", "-c", "exit 0"))
    run.finish()

    for act in (
        lambda: run.target.signal(run.victim(), 9, cause="fault"),
        lambda: run.target.terminate(run.victim(attempt=3), cause="fault"),
    ):
        with pytest.raises(LookupError):
            act()


def test_a_silent_job_is_read_from_its_log(start):
    run = start(
        ("sh", "-c", "echo loaded step 4; echo $JOBS_OWN; exit 0"),
        log_patterns={"resumed": r"loaded step (?P<step>\d+)"},
        environment={"PATH": os.environ["PATH"], "JOBS_OWN": "yes"},
    )

    run.finish()

    assert [event.step for event in run.of(Restored)] == [4]
    assert run.lines() == ["loaded step 4", "yes"]
