"""What agents say, as events; and what stands in for a last word that never came."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from harness.history import (
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    Booted,
    Event,
    LogLine,
    ObservationLost,
    SignalSent,
    StepDone,
)
from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.agent.attendant import VERSION
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.mailbox import Said
from harness.targets.gcp.reports import Report
from tests.unit.targets.gcp.launches import launch_of

KEY = AttemptKey(0, 0)

SKEW_S = 4000.0
"""Our clock is so far ahead of the container's; our history began at 100."""


@pytest.fixture
def attempts(tmp_path: Path) -> Attempts:
    return Attempts(launch_of(tmp_path, max_retries=1, timeout_s=60.0))


def hear(attempts: Attempts, *reports: Report, seen_s: float, key: AttemptKey = KEY) -> list[Event]:
    return attempts.hear(Said(key=key, reports=reports, seen_s=seen_s))


def event(at: float, name: str, **fields: Any) -> Report:
    return Report(kind="event", at=at, line=json.dumps({"event": name, "t": at, "pid": 7, "rank": 0, **fields}))


def begin(attempts: Attempts, key: AttemptKey = KEY, at_s: float = 110.0) -> list[Event]:
    """An attempt whose agent's clock is known to 0.1 s."""
    there = at_s - SKEW_S
    hear(attempts, Report(kind="hello", at=there, version=VERSION), seen_s=at_s + 0.1, key=key)
    attempts.note_order(key, 1, asked_s=at_s + 0.9)
    return hear(attempts, Report(kind="begun", at=there + 1.0, order=1, pid=7), seen_s=at_s + 1.1, key=key)


def of(events: list[Event], kind: type[Event]) -> list[Any]:
    return [found for found in events if isinstance(found, kind)]


def test_an_attempt_starts_when_its_agent_says_so_on_our_clock(attempts: Attempts):
    events = begin(attempts)

    (started,) = of(events, AttemptStarted)
    assert started.pid == 7
    assert started.t_s == pytest.approx(11.0, abs=0.11)
    (line,) = of(events, LogLine)
    assert "ms" in line.text


def test_events_are_placed_by_the_jobs_own_stamps_in_their_order(attempts: Attempts):
    begin(attempts)
    there = 120.0 - SKEW_S
    told = hear(attempts, event(there, "boot"), event(there + 1, "step", step=1), event(there + 0.5, "step", step=2), seen_s=125.0)

    times = [found.t_s for found in told]
    assert [type(found) for found in told] == [Booted, StepDone, StepDone]
    assert times[0] == pytest.approx(20.0, abs=0.11)
    assert times == sorted(times)


def test_moments_are_never_negative_and_never_to_come(attempts: Attempts):
    begin(attempts)
    told = hear(attempts, event(-1e9, "boot"), event(1e12, "step", step=1), seen_s=112.0)

    assert all(0 <= found.t_s <= 12.0 for found in told)


def test_lines_that_are_no_events_are_counted_when_the_attempt_ends(attempts: Attempts):
    begin(attempts)
    odd = [Report(kind="event", at=119.0 - SKEW_S, line=line) for line in ("{", '{"event":"step"}')]
    assert hear(attempts, *odd, seen_s=120.0) == []
    hear(attempts, Report(kind="exit", at=130 - SKEW_S, ended=129 - SKEW_S, code=0), seen_s=131.0)
    events = attempts.tell_exit(attempts.attempt(KEY), 131.0)

    assert [lost.count for lost in of(events, ObservationLost)] == [2]
    assert of(events, AttemptExited)[0].t_s == pytest.approx(29.0, abs=0.11)


def test_who_waits_at_the_barrier_is_told_and_found_once(attempts: Attempts):
    begin(attempts)
    line = json.dumps({"event": "step", "when": "after", "step": 3, "rank": 0, "pid": 7})
    (reached,) = of(hear(attempts, Report(kind="barrier", at=112 - SKEW_S, barrier=5, line=line), seen_s=113.0), BarrierReached)

    assert (reached.event, reached.when, reached.step) == ("step", "after", 3)
    assert attempts.take_barrier(reached) == (KEY, 5)
    assert attempts.take_barrier(reached) is None


def exited_after(attempts: Attempts, *reports: Report, code: int | None = None, number: int | None = None) -> AttemptExited:
    hear(attempts, *reports, Report(kind="exit", at=130 - SKEW_S, ended=129 - SKEW_S, code=code, signal=number), seen_s=131.0)
    (exited,) = of(attempts.tell_exit(attempts.attempt(KEY), 131.0), AttemptExited)
    assert isinstance(exited, AttemptExited)
    return exited


def sent(number: int, cause: str, **fields: Any) -> Report:
    return Report(kind="sent", at=120 - SKEW_S, signal=number, cause=cause, pids=(7,), pid=fields.pop("pid", -1), **fields)


RECEIVED = Report(kind="received", at=120 - SKEW_S, signal=signal.SIGTERM, pids=(7,))


@pytest.mark.parametrize(
    ("reports", "code", "number", "cause", "retried"),
    [
        ((), 0, None, "job", False),
        ((), 7, None, "job", True),
        ((), None, signal.SIGSEGV, "job", True),
        ((), None, signal.SIGKILL, "platform", True),
        ((sent(15, "fault"),), 143, None, "fault", True),
        ((sent(15, "fault"),), 0, None, "fault", False),
        ((sent(15, "timeout"), sent(9, "grace")), None, signal.SIGKILL, "grace", True),
        ((sent(19, "fault"), sent(18, "fault")), 4, None, "job", True),
        ((RECEIVED,), 143, None, "platform", True),
    ],
)
def test_who_ended_an_attempt_is_known_by_what_was_done_to_it(
    attempts: Attempts, reports: tuple[Report, ...], code: int | None, number: int | None, cause: str, retried: bool
):
    begin(attempts)

    exited = exited_after(attempts, *reports, code=code, number=number)

    assert (exited.cause, exited.retried) == (cause, retried)


def test_a_rank_that_was_hit_is_why_an_attempt_failed_but_not_why_it_succeeded(attempts: Attempts):
    begin(attempts)
    attempts.note_order(KEY, 2, asked_s=112.0, pid=9, rank=1)
    (signalled,) = of(hear(attempts, sent(9, "fault", pid=9, order=2), seen_s=125.0), SignalSent)

    assert (signalled.rank, signalled.signal, signalled.cause) == (1, "SIGKILL", "fault")
    assert exited_after(attempts, code=1).cause == "fault"


def test_the_platforms_sigterm_is_laid_at_the_door_of_what_we_asked_for(attempts: Attempts):
    begin(attempts)
    attempts.is_cancelled = True
    (signalled,) = of(hear(attempts, RECEIVED, seen_s=125.0), SignalSent)

    assert signalled.cause == "cancel"
    assert not exited_after(attempts, code=143).retried


def test_the_platforms_sigterm_at_the_timeout_is_the_timeouts(attempts: Attempts):
    begin(attempts)
    late = Report(kind="received", at=110.0 + 59.5 - SKEW_S, signal=signal.SIGTERM, pids=(7,))
    (signalled,) = of(hear(attempts, late, seen_s=170.0), SignalSent)

    assert signalled.cause == "timeout"


def test_the_last_attempt_is_not_tried_again(attempts: Attempts):
    last = AttemptKey(0, 1)
    begin(attempts, last)
    hear(attempts, Report(kind="exit", at=130 - SKEW_S, code=1), seen_s=131.0, key=last)
    (exited,) = of(attempts.tell_exit(attempts.attempt(last), 131.0), AttemptExited)

    assert not exited.retried


def test_what_the_agent_could_not_say_is_told(attempts: Attempts):
    events = hear(attempts, Report(kind="lost", at=1.0, what="event", count=12), seen_s=120.0)

    assert [(lost.what, lost.count) for lost in of(events, ObservationLost)] == [("events", 12)]


def test_two_containers_of_one_attempt_are_told(attempts: Attempts):
    begin(attempts)
    events = hear(attempts, Report(kind="hello", at=1.0, version=VERSION), seen_s=120.0)

    assert "two containers" in of(events, ObservationLost)[0].detail


def test_an_agent_of_another_version_is_told(attempts: Attempts):
    events = hear(attempts, Report(kind="hello", at=1.0, version=VERSION + 1), seen_s=120.0)

    assert "version" in of(events, ObservationLost)[0].detail


def test_words_that_are_not_known_are_told(attempts: Attempts):
    assert of(hear(attempts, Report(kind="sings", at=1.0), seen_s=120.0), ObservationLost)


def test_an_attempt_that_was_let_go_at_the_barrier_makes_its_moments_doubtful(attempts: Attempts):
    begin(attempts)

    assert of(hear(attempts, Report(kind="let-go", at=1.0, barrier=1), seen_s=120.0), ObservationLost)[0].what == "moments"


@pytest.mark.parametrize(
    ("exit_code", "number", "wanted"),
    [(7, None, (7, None)), (None, 9, (None, 9)), (137, None, (137, None)), (None, None, (None, 9))],
)
def test_where_the_agent_has_no_last_word_the_platforms_stands_in_and_what_was_not_said_is_lost(
    attempts: Attempts, exit_code: int | None, number: int | None, wanted: tuple[int | None, int | None]
):
    begin(attempts)
    events = attempts.tell_silent_exit(attempts.attempt(KEY), 140.0, exit_code=exit_code, number=number)

    (exited,) = of(events, AttemptExited)
    assert (exited.exit_code, exited.signal) == wanted
    assert [lost.what for lost in of(events, ObservationLost)] == ["events"]


def test_one_whose_grace_the_platform_ended_was_ended_by_the_grace(attempts: Attempts):
    begin(attempts)
    hear(attempts, RECEIVED, seen_s=121.0)
    (exited,) = of(attempts.tell_silent_exit(attempts.attempt(KEY), 140.0, exit_code=None, number=9), AttemptExited)

    assert exited.cause == "grace"


def test_an_attempt_that_was_never_heard_of_has_a_start_all_the_same(attempts: Attempts):
    events = attempts.tell_silent_exit(attempts.attempt(AttemptKey(3, 1)), 140.0, exit_code=1, number=None)

    assert [type(found) for found in events] == [AttemptStarted, ObservationLost, AttemptExited]


def test_states_of_processes_are_as_told_last_and_gone_with_the_attempt(attempts: Attempts):
    begin(attempts)
    hear(attempts, sent(19, "fault", states={"7": "stopped"}), seen_s=121.0)
    assert attempts.state_of(7) == "stopped"
    hear(attempts, Report(kind="states", at=1.0, states={"7": "running", "x": "stopped", "8": "dancing"}), seen_s=122.0)
    assert (attempts.state_of(7), attempts.state_of(8)) == ("running", "gone")
    hear(attempts, Report(kind="exit", at=130 - SKEW_S, code=0), seen_s=131.0)

    assert attempts.state_of(7) == "gone"


def test_a_rank_is_found_by_what_it_has_said_of_itself(attempts: Attempts):
    begin(attempts)
    hear(attempts, event(120 - SKEW_S, "boot", pid=21, rank=1), seen_s=121.0)

    assert attempts.pid_of(KEY, 1) == 21
    assert attempts.pid_of(KEY, -1) == -1
    with pytest.raises(LookupError, match="rank 2"):
        attempts.pid_of(KEY, 2)


def test_a_grace_that_stood_still_is_told_as_moments_that_are_not_known(attempts: Attempts):
    begin(attempts)
    (lost,) = of(hear(attempts, Report(kind="held", at=120.0 - SKEW_S, seconds=3.5), seen_s=125.0), ObservationLost)

    assert lost.what == "moments"
    assert "3.50 s" in lost.detail
    (told,) = hear(attempts, Report(kind="held", at=121.0 - SKEW_S, seconds=0.04), seen_s=125.0)
    assert isinstance(told, LogLine)


def test_a_job_that_was_not_held_in_a_grace_loses_something_only_where_a_fault_was_to_act(attempts: Attempts):
    begin(attempts)
    (own,) = hear(attempts, Report(kind="passed", at=120.0 - SKEW_S, what="own"), seen_s=125.0)
    (armed,) = hear(attempts, Report(kind="passed", at=121.0 - SKEW_S, what="armed"), seen_s=125.0)

    assert isinstance(own, LogLine)
    assert isinstance(armed, ObservationLost)
    assert armed.what == "moments"


def test_a_clock_that_jumps_is_told(attempts: Attempts):
    begin(attempts)
    attempts.note_order(KEY, 2, asked_s=120.0)
    (lost,) = of(hear(attempts, Report(kind="alive", at=9000.0, order=2), seen_s=120.2), ObservationLost)

    assert lost.what == "moments"
    assert "jumped" in lost.detail
