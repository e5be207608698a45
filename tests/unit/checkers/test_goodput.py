"""Time is accounted for, and the share of it that counts keeps its bounds."""

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers import goodput
from harness.history import ObservationLost
from harness.ledger import Ledger, Span, keep
from harness.lineage import Lineage
from harness.scenario import LogPatterns, Outside, Platform
from harness.scenario.expectations import Goodput
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted


def judge(run: Run, *, ratio_min: float = 0.0, recovery_s_max: float | None = None, **fields: object) -> Finding:
    return goodput.check(Goodput(ratio_min=ratio_min, recovery_s_max=recovery_s_max), run.evidence(**fields))


def ratio_of(run: Run) -> float:
    ledger = keep(run.evidence().lineage, 0)
    assert ledger is not None
    return ledger.goodput


def test_the_ledger_is_told_and_measured():
    finding = judge(uninterrupted())
    assert finding.outcome is Outcome.VALID
    assert finding.evidence[0].startswith("task 0: 3.60 s wall time: productive 2.70 s, ")
    assert finding.measures["goodput"] == pytest.approx(2.7 / 3.6)
    assert finding.measures["save_stall_s"] == pytest.approx(0.4)
    assert finding.measures["recovery_s"] == 0.0
    assert finding.measures["mtti_s"] == pytest.approx(3.6)


def test_too_little_productive_time_is_broken():
    finding = judge(uninterrupted(), ratio_min=0.9)
    assert finding.outcome is Outcome.INVALID
    assert finding.reason == "task 0: 75.0% of the wall time was productive, 90.0% are promised"


def test_a_slow_recovery_is_broken_and_told_in_parts():
    finding = judge(resumed(), recovery_s_max=1.0)
    assert finding.outcome is Outcome.INVALID
    assert "task 0 attempt 0: recovered in" in finding.reason
    assert "replay" in finding.reason
    assert judge(resumed(), recovery_s_max=3.0).outcome is Outcome.VALID
    assert judge(resumed()).measures["mtti_s"] == pytest.approx(judge(resumed()).measures["wall_s"])


def test_a_death_that_nothing_followed_is_no_quick_recovery():
    run = Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5)
    for _ in range(20):
        run.mark("waits")
    run.exit(signal=9, cause="stop").close("deadline")
    late = judge(run, recovery_s_max=2.0)
    assert late.outcome is Outcome.INVALID
    assert "had not recovered" in late.reason
    assert judge(run, recovery_s_max=20.0).outcome is Outcome.UNKNOWN
    assert judge(run, recovery_s_max=2.0, within_budget=False).outcome is Outcome.VALID
    assert judge(run).outcome is Outcome.VALID


def test_a_task_that_never_did_a_step_was_productive_for_no_second():
    run = Run(platform=Platform(tasks=2)).attempt(0).begin().steps(1, 20).done().exit(0).end_task()
    run.attempt(0, task=1).boot().exit(1, retried=False).finish(succeeded=False)
    finding = judge(run, ratio_min=0.1)
    assert finding.outcome is Outcome.INVALID
    assert "task 1: 0.0% of the wall time" in finding.reason


def test_without_a_step_nothing_is_known():
    assert judge(Run().attempt(0).boot().exit(1).finish(succeeded=False)).outcome is Outcome.UNKNOWN
    assert judge(Run()).outcome is Outcome.UNKNOWN
    mute = Run(SILENT).attempt(0).exit(0).finish()
    assert judge(mute, ratio_min=0.5).outcome is Outcome.UNKNOWN


def test_a_silent_job_s_steps_are_time_too():
    logs = msgspec.structs.replace(SILENT, outside=Outside(logs=LogPatterns(step=r"(?P<step>\d+)")))
    run = Run(logs).attempt(0)
    for step in range(1, 6):
        run.step(step)
    assert judge(run.exit(0).finish(), ratio_min=0.5).outcome is Outcome.VALID


def test_lost_events_may_have_been_steps():
    run = Run().attempt(0).begin().add(ObservationLost, what="events", count=1, detail="x").steps(1, 20).complete()
    assert judge(run).outcome is Outcome.UNKNOWN
    assert judge(run, ratio_min=0.9).outcome is Outcome.UNKNOWN


def test_a_ledger_that_does_not_add_up_proves_nothing(monkeypatch: pytest.MonkeyPatch):
    def keep_most(lineage: Lineage, task: int) -> Ledger | None:
        ledger = keep(lineage, task)
        assert ledger is not None
        spans: tuple[Span, ...] = ledger.spans[1:]
        return dataclasses.replace(ledger, spans=spans)

    monkeypatch.setattr(goodput, "keep", keep_most)
    finding = judge(uninterrupted())
    assert finding.outcome is Outcome.UNKNOWN
    assert "does not add up: 0.100 s of 3.600 s are in no span" in finding.reason


@given(kills=st.lists(st.integers(1, 9), max_size=4), ratio_min=st.floats(0, 1))
def test_the_ratio_decides(kills: list[int], ratio_min: float):
    run, durable = Run(JOB), 0
    for number, steps in enumerate(kills):
        run.attempt(number).begin(durable).steps(durable + 1, min(durable + steps, 19)).killed(f"{number}-kill")
        durable = max([step for step in range(0, 20, 5) if step <= min(durable + steps, 19)])
    run.attempt(len(kills)).begin(durable).steps(durable + 1, 20).complete()
    finding = judge(run, ratio_min=ratio_min)
    assert finding.measures["goodput"] == ratio_of(run)
    assert finding.measures["recovery_s"] > 0 or not kills
    assert finding.outcome is (Outcome.INVALID if ratio_of(run) < ratio_min else Outcome.VALID)
