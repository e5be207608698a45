"""The result file is that of the uninterrupted run, byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.result import check
from harness.history import ResultSeen
from harness.scenario.expectations import SameResult
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed, uninterrupted


def judge(run: Run, golden: Run | None, **fields: object) -> Finding:
    return check(SameResult(), run.evidence(golden=golden, **fields))


def left(run: Run, content: str = "aa") -> Run:
    return run.add(ResultSeen, path="final.json", sha256=content and content * 32, size_bytes=len(content))


def test_equal_bytes_are_right():
    finding = judge(left(resumed()), left(uninterrupted()))
    assert finding.outcome is Outcome.VALID
    assert finding.reason == "the result final.json is the uninterrupted run's: 2 bytes, sha256 aaaaaaaaaaaaaaaa"


def test_other_bytes_are_broken_and_both_are_named():
    finding = judge(left(resumed(), "bb"), left(uninterrupted()))
    assert finding.outcome is Outcome.INVALID
    assert "differs from the uninterrupted run's: 2 bytes, sha256 bbbbbbbbbbbbbbbb instead of 2 bytes, sha256 aaaa" in finding.reason


def test_a_result_that_is_not_there_is_broken():
    finding = judge(left(resumed(), ""), left(uninterrupted()))
    assert finding.outcome is Outcome.INVALID
    assert "is not there at the end" in finding.reason


@pytest.mark.parametrize("why", ["deadline", "hang"])
def test_a_job_that_had_its_time_owes_its_result(why: str):
    run = left(Run().golden().attempt(0).begin().steps(1, 7).exit(signal=9, cause="stop").close(why), "")
    assert judge(run, left(uninterrupted())).outcome is Outcome.INVALID


@pytest.mark.parametrize("why", ["interrupted", "error"])
def test_a_run_that_was_broken_off_owes_none(why: str):
    run = left(Run().golden().attempt(0).begin().steps(1, 7).exit(signal=9, cause="stop").close(why), "")
    assert judge(run, left(uninterrupted())).outcome is Outcome.UNKNOWN


def test_a_failure_that_the_faults_make_owes_none():
    run = left(Run().golden().attempt(0).begin().steps(1, 7).killed().finish(succeeded=False), "")
    assert judge(run, left(uninterrupted()), within_budget=False).outcome is Outcome.UNKNOWN
    assert judge(run, left(uninterrupted())).outcome is Outcome.INVALID
    assert judge(left(resumed()), left(uninterrupted()), within_budget=False).outcome is Outcome.VALID


def test_without_something_to_compare_nothing_is_known():
    assert "recorded no result" in judge(resumed(), left(uninterrupted())).reason
    assert "no uninterrupted run with a result" in judge(left(resumed()), uninterrupted()).reason
    assert "no uninterrupted run with a result" in judge(left(resumed()), None).reason
    assert "no uninterrupted run with a result" in judge(left(uninterrupted()), left(uninterrupted())).reason
    assert "left no final.json either" in judge(left(resumed()), left(uninterrupted(), "")).reason
    unequal = left(Run().golden(equal=False, detail="step 3 differs").attempt(0).begin().steps(1, 20).complete())
    finding = judge(unequal, left(uninterrupted()))
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.reason == "no uninterrupted run proves what the result must be: step 3 differs"  # why, and nothing that was not seen


@given(mine=st.sampled_from(["", "aa", "bb"]), other=st.sampled_from(["", "aa", "bb"]), equal=st.booleans())
def test_only_a_result_that_equals_a_settled_one_is_right(mine: str, other: str, equal: bool):
    run = left(Run().golden(equal=equal).attempt(0).begin().steps(1, 20).complete(), mine)
    expected = Outcome.UNKNOWN if not (other and equal) else Outcome.VALID if mine == other else Outcome.INVALID
    assert judge(run, left(uninterrupted(), other)).outcome is expected
