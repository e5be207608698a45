"""The rules of an execution, without a process and with a clock that only the test moves."""

import signal
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.cloud_run.execution import Execution, GraceOver, Move, Rules, TimeoutReached
from harness.protocol.attempt_key import AttemptKey

ON_A_LOADED_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIRST, SECOND = AttemptKey(0, 0), AttemptKey(0, 1)


class Driven:
    """An execution and the clock it is told."""

    def __init__(self, **rules: float) -> None:
        self.clock = ManualClock()
        defaults = {"tasks": 1, "parallelism": 0, "max_retries": 1, "timeout_s": 100.0, "grace_s": 10.0}
        self.execution = Execution(Rules(**(defaults | rules)))  # type: ignore[arg-type]

    def start(self) -> Sequence[AttemptKey]:
        return self.execution.take_starts(self.clock.monotonic_s())

    def due(self) -> Sequence[Move]:
        return self.execution.take_due(self.clock.monotonic_s())

    def end(self, key: AttemptKey, *, succeeded: bool = False):
        return self.execution.end(key, succeeded=succeeded, detail="")

    def notice(self, key: AttemptKey, cause="fault", rank: int = -1) -> None:
        self.execution.note_signal(key, signal.SIGTERM, cause, rank)
        self.execution.give_notice(key, self.clock.monotonic_s(), rank)


def test_all_tasks_start_at_once_when_nothing_limits_them():
    assert Driven(tasks=3).start() == [AttemptKey(0, 0), AttemptKey(1, 0), AttemptKey(2, 0)]


def test_a_task_waits_for_a_place_and_a_retry_keeps_its_own():
    driven = Driven(tasks=3, parallelism=1)

    assert driven.start() == [FIRST]
    assert driven.start() == []
    assert driven.end(FIRST).retried
    assert driven.start() == [SECOND]
    assert not driven.end(SECOND).retried
    assert driven.start() == [AttemptKey(1, 0)]


def test_the_retries_are_used_up():
    driven = Driven(max_retries=2)

    for attempt in range(3):
        assert driven.start() == [AttemptKey(0, attempt)]
        assert driven.end(AttemptKey(0, attempt)).retried == (attempt < 2)

    assert driven.execution.is_over
    assert driven.execution.count("failed") == 1
    assert driven.execution.retried_count == 1
    assert driven.start() == []


def test_success_ends_the_task_whatever_was_done_before():
    driven = Driven(max_retries=3)
    driven.start()
    driven.notice(FIRST)

    ending = driven.end(FIRST, succeeded=True)

    assert (ending.cause, ending.retried) == ("fault", False)
    assert driven.execution.count("succeeded") == 1


def test_the_timeout_counts_from_the_start_of_each_attempt():
    driven = Driven(timeout_s=100.0)
    driven.start()
    driven.clock.advance(60.0)
    driven.end(FIRST)
    driven.start()
    driven.clock.advance(99.0)

    assert driven.due() == []
    driven.clock.advance(1.0)
    assert driven.due() == [TimeoutReached(SECOND)]
    assert driven.due() == []


def test_the_grace_follows_the_notice_once():
    driven = Driven(grace_s=10.0)
    driven.start()
    driven.notice(FIRST)
    driven.clock.advance(9.0)
    driven.notice(FIRST)

    assert driven.execution.next_due_s() == 10.0
    driven.clock.advance(1.0)
    assert driven.due() == [GraceOver(FIRST, -1)]
    driven.clock.advance(50.0)
    assert driven.due() == []


def test_a_grace_ends_early_once_and_only_where_one_runs():
    driven = Driven(grace_s=10.0)
    (key,) = driven.start()
    with pytest.raises(LookupError, match="no grace runs for attempt 0 of task 0: it has had no notice"):
        driven.execution.end_grace(key)
    driven.notice(key)
    with pytest.raises(LookupError, match="rank 1"):
        driven.execution.end_grace(key, 1)
    driven.execution.end_grace(key)
    driven.clock.advance(20.0)
    assert driven.due() == []
    with pytest.raises(LookupError, match="its grace is over"):
        driven.execution.end_grace(key)


def test_a_timeout_that_falls_into_a_grace_is_not_played():
    driven = Driven(timeout_s=5.0, grace_s=10.0)
    driven.start()
    driven.notice(FIRST)
    driven.clock.advance(5.0)

    assert driven.due() == []


@pytest.mark.parametrize(
    ("signals", "succeeded", "cause"),
    [
        ([], False, "job"),
        ([(signal.SIGTERM, "timeout", -1)], False, "timeout"),
        ([(signal.SIGTERM, "fault", -1), (signal.SIGKILL, "grace", -1)], False, "grace"),
        ([(signal.SIGSTOP, "fault", -1), (signal.SIGCONT, "fault", -1), (signal.SIGTSTP, "fault", -1)], False, "job"),
        ([(signal.SIGKILL, "fault", 1)], False, "fault"),
        ([(signal.SIGKILL, "fault", 1)], True, "job"),
        ([(signal.SIGKILL, "fault", 1), (signal.SIGTERM, "cancel", -1)], False, "cancel"),
    ],
)
def test_the_cause_is_what_the_platform_did_last(signals, succeeded, cause):
    driven = Driven()
    driven.start()
    for number, by, rank in signals:
        driven.execution.note_signal(FIRST, number, by, rank)

    assert driven.end(FIRST, succeeded=succeeded).cause == cause


def test_an_abandoned_attempt_counts_as_failed_and_the_next_waits_one_round():
    driven = Driven(max_retries=1)
    driven.start()
    driven.notice(FIRST)

    driven.execution.abandon(FIRST)

    assert driven.execution.has_starts
    assert driven.start() == []
    assert driven.start() == [SECOND]
    driven.clock.advance(1e6)
    assert driven.due() == [TimeoutReached(SECOND)]
    assert driven.end(FIRST, succeeded=True).retried is False
    assert not driven.execution.is_over
    with pytest.raises(KeyError):
        driven.execution.abandon(FIRST)


def test_an_attempt_is_abandoned_once():
    driven = Driven()
    driven.start()
    driven.execution.abandon(FIRST)

    with pytest.raises(LookupError):
        driven.execution.abandon(FIRST)


def test_a_cancel_names_whom_to_end_and_tries_nothing_again():
    driven = Driven(tasks=3, parallelism=2, max_retries=3)
    driven.start()
    driven.notice(FIRST)

    assert driven.execution.cancel() == [AttemptKey(1, 0)]
    assert driven.end(FIRST).retried is False
    assert driven.end(AttemptKey(1, 0), succeeded=True).retried is False

    assert driven.execution.is_over
    assert (driven.execution.count("succeeded"), driven.execution.count("cancelled")) == (1, 2)


@ON_A_LOADED_MACHINE
@given(
    tasks=st.integers(1, 5),
    parallelism=st.integers(0, 5),
    max_retries=st.integers(0, 3),
    exits=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=40),
)
def test_any_order_of_exits_ends_every_task_within_its_attempts(tasks, parallelism, max_retries, exits):
    driven = Driven(tasks=tasks, parallelism=min(parallelism, tasks), max_retries=max_retries)
    running: list[AttemptKey] = []
    for choice, succeeded in [*exits, *[(0, False)] * tasks * (max_retries + 1)]:
        running += driven.start()
        assert len(running) <= (min(parallelism, tasks) or tasks)
        if running:
            driven.end(running.pop(choice % len(running)), succeeded=succeeded)

    assert driven.execution.is_over
    assert all(1 <= task.attempts <= max_retries + 1 for task in driven.execution.tasks)
    assert driven.execution.count("succeeded") + driven.execution.count("failed") == tasks
