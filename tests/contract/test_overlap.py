"""An attempt that the platform has lost sight of, and the next one beside it."""

import signal

import pytest

from harness.capabilities import Overlappable
from harness.clock import ManualClock
from harness.history import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    ExecutionFinished,
    LogLine,
    Marked,
    StepDone,
    TaskFinished,
)
from harness.targets import create
from tests.contract.driver import TRAITS, python
from tests.contract.presence import skip_or_fail_without


@pytest.fixture(params=[name for name in TRAITS if isinstance(create(name, ManualClock()), Overlappable)])
def target_name(request: pytest.FixtureRequest) -> str:
    skip_or_fail_without(request.param)
    return str(request.param)


WRITES_ON = """
step = 0
while step < 400:
    step += 1
    emit("step", step=step)
    print("attempt", attempt, "step", step, flush=True)
    time.sleep(0.02)
    if attempt == 1 and step == 5: sys.exit(0)
"""


def test_the_next_attempt_starts_beside_the_abandoned_one(start):
    run = start(python(WRITES_ON), max_retries=1)
    assert isinstance(run.target, Overlappable)
    run.until(StepDone)

    run.target.abandon(run.victim())
    run.until(AttemptAbandoned)
    assert len(run.of(AttemptStarted)) == 1
    second = run.until(AttemptStarted, nth=2)
    run.until(StepDone, lambda event: event.attempt == 1)
    run.until(StepDone, lambda event: event.attempt == 0 and event.t_s > second.t_s)
    run.finish()

    assert second.attempt == 1
    assert [(exited.attempt, exited.exit_code) for exited in run.exits()] == [(1, 0)]
    assert {line.attempt for line in run.of(LogLine) if line.text.startswith("attempt 0")} == {0}
    assert run.of(ExecutionFinished)[0].succeeded == 1
    assert run.of(TaskFinished)[0].attempts == 2


def test_an_abandoned_attempt_is_ended_on_demand(start):
    run = start(python(f"subprocess.Popen(['sleep', '60'], start_new_session=True)\n{WRITES_ON}".replace("== 5", "== 300")), max_retries=1)
    run.until(StepDone)
    run.target.abandon(run.victim())
    run.until(StepDone, lambda event: event.attempt == 1)

    assert run.target.end_abandoned(run.victim()) == 2
    exited = run.until(AttemptExited)

    assert (exited.attempt, exited.signal, exited.cause, exited.retried) == (0, signal.SIGKILL, "fault", False)
    assert run.target.end_abandoned(run.victim()) == 0
    run.until(StepDone, lambda event: event.attempt == 1 and event.t_s > exited.t_s)
    with pytest.raises(LookupError):
        run.target.end_abandoned(run.victim(attempt=1))


def test_an_abandoned_attempt_that_ends_by_itself_does_not_touch_its_task(start):
    run = start(python("if attempt: time.sleep(60)\nemit('leave')\nsys.exit(9)"), max_retries=3, armed=("leave:before",))
    run.releases = False
    reached = run.until(BarrierReached)
    run.target.abandon(run.victim())
    run.until(AttemptStarted, nth=2)

    run.target.release(reached)
    exited = run.until(AttemptExited)
    for _ in range(3):
        run.poll()

    assert (exited.attempt, exited.exit_code, exited.retried) == (0, 9, False)
    assert [event.attempt for event in run.of(AttemptStarted)] == [0, 1]
    assert run.of(TaskFinished) == []


def test_the_end_of_the_second_attempt_does_not_sweep_the_first_one_away(start):
    run = start(python("emit('ready')\nif attempt == 0: time.sleep(60)\nsys.exit(1)"), max_retries=3)
    run.until(Marked)
    run.target.abandon(run.victim())

    run.until(AttemptExited, nth=2)
    (first,) = [event.pid for event in run.of(AttemptStarted) if event.attempt == 0]

    assert run.target.process_states([first]) == {first: "running"}
    assert [exited.leftovers for exited in run.exits()] == [0, 0]


def test_losing_sight_of_the_last_attempt_fails_the_task(start):
    run = start(("sh", "-c", "echo up; sleep 60"), max_retries=0)
    run.until(LogLine)

    run.target.abandon(run.victim())
    with pytest.raises(LookupError):
        run.target.abandon(run.victim())
    run.finish()
    events = run.stop()

    assert [(task.succeeded, task.attempts) for task in run.of(TaskFinished)] == [(False, 1)]
    assert [(event.attempt, event.cause, event.retried) for event in events if isinstance(event, AttemptExited)] == [(0, "stop", False)]
