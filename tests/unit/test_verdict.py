"""Three outcomes, and the worst outranks."""

from hypothesis import given
from hypothesis import strategies as st

from harness.verdict import Finding, Outcome, Verdict, counted, merge
from tests.unit.strategies import instances

outcomes = st.sampled_from(list(Outcome))
findings = st.lists(instances(Finding, {"outcome": outcomes}), max_size=6)
ORDER = [Outcome.VALID, Outcome.UNKNOWN, Outcome.INVALID]


def finding(outcome: Outcome, **measures: float) -> Finding:
    return Finding(checker="x", outcome=outcome, reason="because", measures=measures)


def test_nothing_checked_is_unknown_and_says_so():
    verdict = merge(())
    assert verdict.outcome is Outcome.UNKNOWN
    assert "nothing was checked" in verdict.findings[0].reason
    assert not verdict.is_valid


@given(findings.filter(bool))
def test_the_worst_finding_decides(found: list[Finding]):
    verdict = merge(found)
    assert verdict.outcome is ORDER[max(ORDER.index(each.outcome) for each in found)]
    assert verdict.findings == tuple(found)
    assert verdict.worst() == tuple(each for each in found if each.outcome is verdict.outcome)
    assert verdict.worst()
    assert verdict.is_valid == all(each.outcome is Outcome.VALID for each in found)


@given(findings, st.randoms(use_true_random=False))
def test_the_order_of_findings_does_not_matter(found: list[Finding], random: object):
    shuffled = list(found)
    random.shuffle(shuffled)
    assert merge(shuffled).outcome is merge(found).outcome


@given(findings.filter(bool), findings.filter(bool))
def test_merging_in_parts_is_merging_at_once(left: list[Finding], right: list[Finding]):
    parts = [finding(merge(part).outcome) for part in (left, right)]
    assert merge(parts).outcome is merge(left + right).outcome


@given(findings.filter(bool), outcomes)
def test_one_more_finding_never_makes_it_better(found: list[Finding], outcome: Outcome):
    assert ORDER.index(merge([*found, finding(outcome)]).outcome) >= ORDER.index(merge(found).outcome)


def test_a_figure_is_that_of_the_first_checker_that_measured_it():
    verdict: Verdict = merge([finding(Outcome.VALID), finding(Outcome.VALID, margin_s=2.0), finding(Outcome.VALID, margin_s=1.0)])
    assert verdict.measure("margin_s") == 2.0
    assert verdict.measure("lost_steps") is None


def test_a_number_is_told_with_its_noun():
    assert [counted(1, "step"), counted(0, "step"), counted(1200, "step")] == ["1 step", "0 steps", "1,200 steps"]
    assert [counted(1, "life", "lives"), counted(2, "life", "lives")] == ["1 life", "2 lives"]
