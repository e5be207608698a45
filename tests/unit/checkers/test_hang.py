"""A silence that lasts too long is called, and the rank that the others wait for is named."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.hang import check
from harness.history import FaultFailed, HangCalled, LogLine, ObservationLost
from harness.scenario.expectations import NoHang
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, TICK_S, Run, resumed, uninterrupted

PAIR = msgspec.structs.replace(JOB, ranks=2)


def judge(run: Run, *, quiet_s: float = 1.0) -> Finding:
    return check(NoHang(quiet_s=quiet_s), run.evidence())


def wait(run: Run, seconds: float) -> Run:
    run.t_s = round(run.t_s + seconds, 6)
    return run


def test_a_job_that_goes_on_is_right_and_its_longest_silence_is_measured():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    assert 0 < finding.measures["quiet_s_max"] < 1.0
    assert judge(uninterrupted()).outcome is Outcome.VALID


def test_what_the_watchdog_called_is_broken():
    run = Run().attempt(0).begin().steps(1, 7)
    run.here(HangCalled, ranks=(1,), quiet_s=30.0, detail="rank 1 silent after step 7").exit(signal=9, cause="stop").close("hang")
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert finding.reason == "attempt 0 of task 0 hung: nothing for 30.0 s at 1.60 s; rank 1 silent after step 7"


@pytest.mark.parametrize("end", ["word", "exit", "close"])
def test_a_silence_that_nobody_called_is_found_by_whatever_ends_it(end: str):
    run = wait(Run().attempt(0).begin().steps(1, 7), 2.0)
    run = {"word": lambda: run.steps(8, 20).complete(), "exit": lambda: run.exit(1).finish(), "close": lambda: run.close("deadline")}[end]()
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert "nothing for 2.1 s" in finding.reason
    assert judge(run, quiet_s=3.0).outcome is Outcome.VALID


def test_the_least_advanced_rank_is_named():
    run = Run(PAIR).attempt(0).begin().begin(rank=1).step(1).step(1, rank=1).step(2)
    finding = judge(wait(run, 2.0).exit(1).finish())
    assert "; rank 1 silent after step 1; rank 0 further on or waiting" in finding.reason


def test_a_start_without_a_word_is_a_silence():
    run = wait(Run().attempt(0).begin().steps(1, 20).complete().attempt(1), 2.0).exit(1).finish()
    assert judge(run).outcome is Outcome.INVALID


def test_a_pause_of_ours_is_not_the_job_s():
    run = Run().attempt(0).begin().steps(1, 7).request("1-pause", "pause").observe("1-pause")
    assert judge(wait(run, 5.0).heal("1-pause").steps(8, 20).complete()).outcome is Outcome.VALID


def test_a_pause_that_could_not_act_holds_nobody():
    run = Run().attempt(0).begin().steps(1, 7).request("1-pause", "pause").here(FaultFailed, injection="1-pause", detail="no such process")
    assert judge(wait(run, 5.0).steps(8, 20).complete()).outcome is Outcome.INVALID


def test_one_task_s_words_hide_no_other_task_s_silence():
    run = Run().attempt(0).begin().attempt(0, task=1).begin()
    for step in range(1, 20):
        run.on(0).step(step)
    finding = judge(run.exit(0).on(0, task=1).exit(1).finish())
    assert finding.outcome is Outcome.INVALID
    assert "attempt 0 of task 1 hung" in finding.reason


def test_a_gang_that_is_silent_by_itself_is_one_voice():
    run = Run(msgspec.structs.replace(SILENT, ranks=2)).attempt(0).step(1).step(2)
    assert "; rank 0 silent after step 2" in judge(wait(run, 2.0).exit(1).finish()).reason


def test_a_job_without_words_cannot_be_watched():
    run = wait(Run(SILENT).attempt(0).here(LogLine, stream="stdout", text="training"), 5.0).exit(0).finish()
    assert judge(run).outcome is Outcome.UNKNOWN


def test_lost_words_may_have_filled_a_silence_that_nobody_called():
    run = Run().attempt(0).begin().add(ObservationLost, what="events", count=9, detail="garbage")
    assert judge(wait(run.fork(), 2.0).exit(1).finish()).outcome is Outcome.UNKNOWN
    called = run.here(HangCalled, ranks=(0,), quiet_s=2.0).exit(signal=9, cause="stop").close("hang")
    assert judge(called).outcome is Outcome.INVALID


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(2, 30))
def test_the_longest_silence_decides(gaps: list[int], quiet: int):
    run = Run().attempt(0).begin()
    for number, gap in enumerate(gaps, start=1):
        wait(run, (gap - 1) * TICK_S).step(number)
    finding = judge(run.exit(0).close(), quiet_s=quiet * TICK_S - TICK_S / 2)
    assert finding.outcome is (Outcome.INVALID if max(gaps) >= quiet else Outcome.VALID)
