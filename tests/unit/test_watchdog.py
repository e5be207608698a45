"""The watchdog calls a hang when every rank of an attempt is silent for too long, and names who is waited for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    Booted,
    Event,
    FaultHealed,
    FaultRequested,
    HangCalled,
    LogLine,
    Marked,
    SaveBegun,
    Started,
    StepDone,
)
from harness.watchdog import Watchdog

QUIET_S = 10.0


def watching(*events: Event, ranks: int = 1) -> Watchdog:
    watchdog = Watchdog(quiet_s=QUIET_S, ranks=ranks)
    watchdog.feed(events)
    return watchdog


def named(watchdog: Watchdog, now_s: float) -> tuple[int, ...] | None:
    hang = watchdog.overdue(now_s)
    return None if hang is None else hang.ranks


def test_before_an_attempt_there_is_nothing_to_watch():
    watchdog = watching()
    assert watchdog.overdue(1e9) is None
    assert watchdog.quiet_s(1e9) == 0.0


def test_an_attempt_has_its_time_from_its_start():
    watchdog = watching(AttemptStarted(t_s=5.0, pid=1))
    assert watchdog.overdue(14.9) is None
    assert watchdog.quiet_s(14.9) == pytest.approx(9.9)
    assert watchdog.overdue(15.0) == HangCalled(t_s=15.0, ranks=(0,), quiet_s=10.0, detail="rank 0 silent after step 0")


def test_every_new_word_starts_the_count_anew():
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1))
    for t_s, event in enumerate((Booted, Started, StepDone, SaveBegun), start=1):
        fields = {"restored_step": 0} if event is Started else {} if event is Booted else {"step": 1}
        watchdog.feed([event(t_s=t_s * 9.0, **fields)])
        assert watchdog.overdue(t_s * 9.0 + 9.9) is None


def test_the_same_word_again_is_a_heartbeat_and_no_progress():
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), StepDone(t_s=1.0, step=3))
    for t_s in range(2, 20):
        watchdog.feed([Marked(t_s=float(t_s), name="heartbeat"), BarrierReached(t_s=float(t_s), event="step", when="after", step=3)])
    assert named(watchdog, 20.0) == (0,)
    watchdog.feed([StepDone(t_s=20.0, step=4), Marked(t_s=29.0, name="heartbeat")])
    assert watchdog.overdue(38.9) is None


def test_log_lines_are_no_words():
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), LogLine(t_s=9.0, stream="stdout", text="alive"))
    assert named(watchdog, 10.0) == (0,)


def test_one_rank_that_goes_on_keeps_the_gang_from_being_called():
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), StepDone(t_s=1.0, step=1, rank=1), StepDone(t_s=9.0, step=1), ranks=2)
    assert watchdog.overdue(18.9) is None
    assert named(watchdog, 19.0) == (0, 1)


def test_the_rank_with_the_lowest_step_is_waited_for():
    watchdog = watching(
        AttemptStarted(t_s=0.0, pid=1),
        StepDone(t_s=1.0, step=5),
        StepDone(t_s=1.0, step=4, rank=1),
        StepDone(t_s=1.0, step=5, rank=2),
        ranks=3,
    )
    hang = watchdog.overdue(11.0)
    assert hang is not None
    assert (hang.ranks, hang.detail) == ((1,), "rank 1 silent after step 4; rank 0, 2 further on or waiting")


def test_a_rank_that_said_that_it_waits_is_not_the_one_that_is_waited_for():
    watchdog = watching(
        AttemptStarted(t_s=0.0, pid=1),
        StepDone(t_s=1.0, step=5),
        StepDone(t_s=1.0, step=5, rank=1),
        Marked(t_s=2.0, name="collective", step=5, rank=1),
        ranks=2,
    )
    assert named(watchdog, 12.0) == (0,)


def test_at_one_step_the_rank_that_said_less_is_waited_for():
    watchdog = watching(
        AttemptStarted(t_s=0.0, pid=1), StepDone(t_s=1.0, step=5), StepDone(t_s=1.0, step=5, rank=1), SaveBegun(t_s=2.0, step=5), ranks=2
    )
    assert named(watchdog, 12.0) == (1,)


def test_a_rank_that_never_spoke_is_waited_for():
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), Booted(t_s=1.0), StepDone(t_s=2.0, step=1), ranks=2)
    assert named(watchdog, 12.0) == (1,)
    unannounced = watching(AttemptStarted(t_s=0.0, pid=1), StepDone(t_s=2.0, step=1), Booted(t_s=2.0, rank=7))
    assert named(unannounced, 12.0) == (7,)


def test_where_nothing_tells_them_apart_all_are_named():
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), ranks=3)
    hang = watchdog.overdue(10.0)
    assert hang is not None
    assert hang.detail.startswith("all 3 ranks are silent at step 0")


@pytest.mark.parametrize("end", [AttemptExited(t_s=5.0, exit_code=1), AttemptAbandoned(t_s=5.0)])
def test_an_attempt_that_has_ended_is_not_watched(end: Event):
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), end, StepDone(t_s=6.0, step=1))
    assert watchdog.overdue(1e9) is None
    assert watchdog.quiet_s(1e9) == 0.0


def test_attempts_and_tasks_are_watched_apart():
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), AttemptStarted(t_s=0.0, task=1, pid=2), StepDone(t_s=9.0, step=1))
    hang = watchdog.overdue(10.0)
    assert hang is not None
    assert (hang.task, hang.attempt) == (1, 0)
    assert watchdog.quiet_s(10.0) == 10.0


@pytest.mark.parametrize(("fault", "is_ours"), [("pause", True), ("overlap-attempts", True), ("kill", False), ("slow-writes", False)])
def test_while_a_fault_holds_the_job_silence_is_ours(fault: str, *, is_ours: bool):
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), FaultRequested(t_s=5.0, injection="x", fault=fault))
    assert (watchdog.overdue(1e3) is None) == is_ours
    watchdog.feed([FaultHealed(t_s=50.0, injection="other", evidence=""), FaultHealed(t_s=60.0, injection="x", evidence="")])
    assert named(watchdog, 70.0) == (0,)
    if is_ours:
        assert watchdog.overdue(69.9) is None


def test_two_faults_hold_until_both_are_healed():
    holding = [FaultRequested(t_s=5.0, injection=name, fault="pause") for name in ("a", "b")]
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), *holding, FaultHealed(t_s=6.0, injection="a", evidence=""))
    assert watchdog.overdue(1e3) is None
    watchdog.feed([FaultHealed(t_s=7.0, injection="b", evidence="")])
    assert named(watchdog, 17.0) == (0,)


@given(st.lists(st.tuples(st.floats(0.01, 20.0), st.integers(0, 2)), max_size=15), st.floats(0.0, 30.0))
def test_a_hang_is_a_silence_of_all_ranks_and_nothing_else(words: list[tuple[float, int]], wait_s: float):
    watchdog = watching(AttemptStarted(t_s=0.0, pid=1), ranks=3)
    now_s = 0.0
    for step, (gap_s, rank) in enumerate(words, start=1):
        now_s += gap_s
        watchdog.feed([StepDone(t_s=now_s, step=step, rank=rank)])
    heard_s, now_s = now_s, now_s + wait_s
    hang = watchdog.overdue(now_s)
    assert (hang is not None) == (now_s - heard_s >= QUIET_S)
    assert watchdog.quiet_s(now_s) == now_s - heard_s
    if hang is not None:
        last = {rank: max((step for step, (_, who) in enumerate(words, start=1) if who == rank), default=0) for rank in range(3)}
        assert all(last[rank] == min(last.values()) for rank in hang.ranks)
