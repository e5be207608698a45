"""The verdict in one sentence."""

from harness.report.statement import state
from harness.verdict import Finding, Outcome, Verdict, merge
from tests.unit.checkers.builders import resumed
from tests.unit.report.records import INVALID, record_of


def finding(outcome: Outcome, reason: str = "because", *, checker: str = "resume", **measures: float) -> Finding:
    return Finding(checker=checker, outcome=outcome, reason=reason, measures=measures)


def said(*findings: Finding) -> str:
    return state(record_of(resumed(), verdict=merge(findings))).sentence


def test_a_valid_run_says_how_many_faults_landed():
    landed = finding(Outcome.VALID, faults_declared=3.0, faults_landed=3.0)

    assert said(landed, finding(Outcome.VALID)) == "All 3 faults landed, and the job kept every promise: all 2 checks hold."


def test_a_valid_run_without_faults_does_not_boast_of_any():
    told = said(finding(Outcome.VALID), finding(Outcome.VALID))

    assert told == "Left alone, the job kept every promise: all 2 checks hold."


def test_a_broken_promise_is_named_with_its_reason():
    statement = state(record_of(resumed(), verdict=INVALID))

    assert statement.sentence == "The job broke 1 of 2 promises, bit-exact-resume: rng differs at step 6."
    assert [finding.checker for finding in statement.deciding] == ["bit-exact-resume"]
    assert [finding.checker for finding in statement.others] == ["completes"]


def test_of_several_broken_promises_one_is_told():
    told = said(finding(Outcome.INVALID, "first"), finding(Outcome.INVALID, "second"), finding(Outcome.UNKNOWN))

    assert told == "The job broke 2 of 3 promises, among them resume: first."


def test_unknown_is_never_said_to_be_a_pass():
    assert (
        said(finding(Outcome.UNKNOWN, "no fault landed.")) == "Nothing is proved, for 1 check of 1 could not be decided: no fault landed."
    )


def test_without_a_verdict_nothing_is_proved():
    statement = state(record_of(resumed(), verdict=None))

    assert (statement.outcome, statement.sentence) == ("unknown", "Nothing is proved: no verdict was written.")


def test_a_verdict_without_findings_proves_nothing():
    statement = state(record_of(resumed(), verdict=Verdict(outcome=Outcome.UNKNOWN, findings=())))

    assert statement.sentence == "Nothing is proved: nothing was checked."


def test_among_the_others_the_worst_come_first():
    verdict = merge([finding(Outcome.VALID), finding(Outcome.UNKNOWN, checker="grace"), finding(Outcome.INVALID)])

    assert [each.checker for each in state(record_of(resumed(), verdict=verdict)).others] == ["grace", "resume"]
