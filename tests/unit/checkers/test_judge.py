"""Every expectation has its checker, two more judge every run, and one that crashes proves nothing."""

from types import MappingProxyType
from typing import get_args

import pytest

from harness import checkers
from harness.checkers import ALWAYS, CHECKERS, Evidence, judge
from harness.scenario import Expectation
from harness.scenario.expectations import Completes, ResumesFromNewestDurable
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, Run, resumed, scenario_of, uninterrupted

PROMISES = (Completes(), ResumesFromNewestDurable(lost_steps_max=5))


def test_every_expectation_has_a_checker():
    assert set(CHECKERS) == set(get_args(Expectation))


def test_what_every_run_owes_is_judged_first():
    verdict = judge(scenario_of(JOB, *PROMISES), resumed().history(), uninterrupted().history())
    assert [finding.checker for finding in verdict.findings] == [*ALWAYS, "completes", "resumes-from-newest-durable"]
    assert verdict.is_valid
    assert verdict.measure("lost_steps") == 2.0


def test_the_worst_finding_decides():
    short = Run().attempt(0).begin().steps(1, 10).done(10).exit(0).finish()
    verdict = judge(scenario_of(JOB, *PROMISES), short.history(), None)
    assert verdict.outcome is Outcome.INVALID
    assert [finding.checker for finding in verdict.worst()] == ["completes"]
    assert judge(scenario_of(JOB, *PROMISES), uninterrupted().history(), None).outcome is Outcome.UNKNOWN


def test_a_checker_that_crashes_is_unknown_and_shows_its_traceback(monkeypatch: pytest.MonkeyPatch):
    def crash(expectation: Expectation, evidence: Evidence) -> Finding:
        raise ZeroDivisionError("no steps")

    monkeypatch.setattr(checkers, "CHECKERS", MappingProxyType({**CHECKERS, Completes: crash}))
    verdict = judge(scenario_of(JOB, *PROMISES), resumed().history(), uninterrupted().history())
    broken = next(finding for finding in verdict.findings if finding.checker == "completes")
    assert broken.outcome is Outcome.UNKNOWN
    assert "ZeroDivisionError: no steps" in broken.reason
    assert any('raise ZeroDivisionError("no steps")' in line for line in broken.evidence)
    assert verdict.outcome is Outcome.UNKNOWN
