"""One execution, without a project: cancels that fail, and agents that have nothing more to say."""

import threading
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.clock import ManualClock
from harness.history import Event, LogLine, ObservationLost
from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp import execution_end
from harness.targets.gcp.calling import Page
from harness.targets.gcp.execution import GcpExecution
from harness.targets.gcp.failures import CallError, Failure
from harness.targets.gcp.log_reader import LogReader
from harness.targets.gcp.mailbox import ReportReader
from harness.targets.gcp.pace import PROJECT
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.watching import ExecutionSeen, Sight
from tests.unit.targets.gcp.fake_bucket import FakePrefix
from tests.unit.targets.gcp.launches import launch_of

KEY = AttemptKey(0, 0)


class RefusingJobs:
    def __init__(self, *, may_be_done: bool) -> None:
        self.may_be_done = may_be_done

    def cancel(self, execution: str) -> None:
        failure = Failure(code="UNAVAILABLE", message="not now")
        raise CallError(service="run", method="cancel", resource=execution, failure=failure, may_be_done=self.may_be_done)


class ClosedReader(ReportReader):
    def __init__(self) -> None:
        self.closed: list[AttemptKey] = []

    def close(self, keys: Collection[AttemptKey]) -> None:
        self.closed += keys


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(monotonic_s=200.0)


@pytest.fixture
def execution(tmp_path: Path, clock: ManualClock) -> GcpExecution:
    agent: Any = SimpleNamespace(below=lambda _: FakePrefix())
    grounds: Any = SimpleNamespace(
        launch=launch_of(tmp_path),
        clock=clock,
        pace=PROJECT,
        agent=agent,
        checkpoints=FakePrefix(),
        clients=None,
        caller=SimpleNamespace(secrets=Secrets()),
        t_s=lambda: clock.monotonic_s() - 100.0,
    )
    return GcpExecution(grounds, "jobs/some-job")


class FakeEnds:
    """Wants the last look until it was had."""

    def __init__(self) -> None:
        self.wants_last_look = True

    def had_last_look(self) -> None:
        self.wants_last_look = False


class FakePoller:
    """Reads the log still, until a test says that it has ended."""

    def __init__(self) -> None:
        self.is_told_to_end = self.has_ended = False

    def end(self) -> None:
        self.is_told_to_end = True


class Looking:
    """The last look of an execution at its log, moved by hand."""

    def __init__(self, execution: GcpExecution, log: Any, clock: ManualClock) -> None:
        self.execution, self.clock = execution, clock
        self.ends, self.poller = FakeEnds(), FakePoller()
        poller: Any = self.poller
        execution._log.watch(log, poller)

    def look(self, after_s: float = PROJECT.log_page_s) -> list[Event]:
        self.clock.advance(after_s)
        ends: Any = self.ends
        return self.execution._log.look_back(ends)


class EndlessLog(LogReader):
    """Has always one more page; ``failure``: has none at all."""

    def __init__(self, failure: CallError | None = None) -> None:
        super().__init__(self._page, project="p", execution="e")
        self.failure, self.asked = failure, 0

    def _page(self, query: str, token: str, deadline_s: float) -> Page[dict[str, object]]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return Page(items=[], token=f"{self.asked}")


def lost_in(events: list[Event]) -> list[str]:
    return [event.detail for event in events if isinstance(event, ObservationLost) and event.what == "logs"]


def test_nobody_else_reads_the_log_while_it_is_looked_at_for_the_last_time(execution: GcpExecution, clock: ManualClock):
    log = EndlessLog()
    looking = Looking(execution, log, clock)
    looking.look()
    looking.look()
    assert looking.poller.is_told_to_end
    assert log.asked == 0

    looking.poller.has_ended = True
    looking.look()
    looking.look(PROJECT.log_page_s / 2)
    assert log.asked == 1


def test_a_log_without_end_is_looked_at_for_so_long_and_what_is_missing_is_told(execution: GcpExecution, clock: ManualClock):
    log = EndlessLog()
    looking = Looking(execution, log, clock)
    looking.poller.has_ended = True
    lost: list[str] = []
    while looking.ends.wants_last_look:
        lost += lost_in(looking.look())

    assert log.asked < PROJECT.last_look_s_max / PROJECT.log_page_s + 1
    (detail,) = lost
    assert "had not come to its end after 120 s" in detail


def test_a_log_that_cannot_be_looked_at_any_more_is_a_gap_and_no_broken_run(execution: GcpExecution, clock: ManualClock):
    failure = CallError(service="logging", method="list", resource="p", failure=Failure(code="UNAVAILABLE", message="away"))
    looking = Looking(execution, EndlessLog(failure), clock)
    looking.poller.has_ended = True
    lost = lost_in(looking.look() + looking.look())

    assert not looking.ends.wants_last_look
    assert "away" in lost[0]


def test_what_there_is_no_room_for_is_told_once_as_a_gap_of_which_nobody_knows_how_much_it_holds(
    execution: GcpExecution, clock: ManualClock
):
    log = EndlessLog()
    Looking(execution, log, clock)
    assert execution._log.tell_cut() == []
    log.sieve.is_full = True

    (lost,) = execution._log.tell_cut()
    assert isinstance(lost, ObservationLost)
    assert (lost.what, lost.count) == ("logs", 1)
    assert "however much" in lost.detail
    assert execution._log.tell_cut() == []


class Settling:
    """Waits for the log of an execution that has ended, for so many polls."""

    def __init__(self, polls: int) -> None:
        self.polls = polls

    @property
    def is_settling(self) -> bool:
        return self.polls > 0

    @property
    def is_complete(self) -> bool:
        return self.polls == 0


def test_the_log_of_what_was_seen_to_end_is_waited_for_beyond_the_time_for_ending_it(
    execution: GcpExecution, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    ends: Any = Settling(polls=9)
    execution._ends = ends
    execution._standing.take(Sight(execution=ExecutionSeen(is_over=True)))

    def poll() -> list[Event]:
        clock.advance(20.0)
        ends.polls -= 1
        return []

    monkeypatch.setattr(execution, "poll", poll)
    monkeypatch.setattr(execution, "wait", lambda _: None)
    execution_end.hear_rest(execution, [], clock.monotonic_s() + 90.0)

    assert execution.is_over


class Cancelled:
    def __init__(self) -> None:
        self.names: list[str] = []

    def cancel(self, execution: str) -> None:
        self.names.append(execution)


def test_an_interrupted_run_is_cancelled_and_neither_its_log_nor_its_bucket_is_read(
    execution: GcpExecution, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
):
    jobs: Any = Cancelled()
    execution.jobs, execution.name = jobs, "jobs/some-job/executions/e"
    log = EndlessLog()
    Looking(execution, log, clock)
    awaited: list[float] = []
    monkeypatch.setattr(execution_end, "await_end", lambda _, end_s: awaited.append(end_s))
    monkeypatch.setattr(execution.storage, "pull", lambda: pytest.fail("the bucket was read"))
    last: list[Event] = []

    execution.end_all(last, deadline_s=15.0, is_heard=False)

    assert jobs.names == ["jobs/some-job/executions/e"]
    assert awaited == [clock.monotonic_s() + 15.0]
    assert (last, log.asked) == ([], 0)


@pytest.mark.parametrize("may_be_done", [False, True])
def test_a_cancel_that_fails_is_told_and_is_no_cause_unless_it_may_have_been_done(execution: GcpExecution, may_be_done: bool):
    jobs: Any = RefusingJobs(may_be_done=may_be_done)
    execution.jobs = jobs

    with pytest.raises(CallError):
        execution.cancel()

    assert execution.attempts.is_cancelled is may_be_done
    (line,) = execution.pending
    assert isinstance(line, LogLine)
    assert "could not be cancelled" in line.text
    assert "not now" in line.text


def test_an_attempt_that_is_over_is_looked_for_until_it_has_had_the_time_to_say_more(execution: GcpExecution, clock: ManualClock):
    reader = ClosedReader()
    agents = execution._agents
    agents.watch(reader, threading.Event())
    execution.attempts.attempt(KEY)
    agents.forget_ended()
    execution.attempts.attempt(KEY).is_over = True
    agents.heard_until_s = clock.monotonic_s()
    agents.forget_ended()
    assert reader.closed == []

    agents.heard_until_s = clock.monotonic_s() + PROJECT.silence_s
    for _ in range(2):
        agents.forget_ended()
    assert reader.closed == [KEY]
