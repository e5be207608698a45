"""The checkers against a model: a right job under any deaths is valid, a wrong one is found, and no history makes a checker crash."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.checkers import judge
from harness.history import Event, History
from harness.scenario import Expectation, Layout, Scenario, name_of
from harness.scenario.expectations import (
    AdmittedTo,
    BitExactResume,
    ChargesRetries,
    Completes,
    ConsumesProvisioning,
    ExactlyOnceData,
    ExitCodes,
    Goodput,
    GraceConduct,
    IntactCheckpoints,
    LeavesNothing,
    LogOrder,
    MakesProgress,
    NoHang,
    RanksAgree,
    RecoversWithin,
    ResumesFromNewestDurable,
    SameResult,
    SameRun,
    SavesAtCadence,
    SingleWriter,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.verdict import Outcome, Verdict
from tests.unit.checkers.builders import JOB, Run, scenario_of, uninterrupted
from tests.unit.checkers.model import Death, Wrong, injections_of, tell
from tests.unit.report.events import TAME, WILD

PROMISES: tuple[Expectation, ...] = (
    Completes(),
    ExitCodes(),
    IntactCheckpoints(),
    ResumesFromNewestDurable(lost_steps_max=JOB.save_every, lost_steps_after_sigterm_max=0),
    BitExactResume(),
    ExactlyOnceData(),
)
EVERY_PROMISE: tuple[Expectation, ...] = (
    *PROMISES,
    WithinRetries(attempts_max=4),
    GraceConduct(),
    SingleWriter(),
    MakesProgress(),
    NoHang(),
    LogOrder(patterns=("x",)),
    Goodput(),
    SavesAtCadence(every=5),
    SameResult(),
    RanksAgree(),
    AdmittedTo(flavors=(("on-demand", "dws"),), within_s=1.0),
    SubmittedOnce(),
    SameRun(),
    ConsumesProvisioning(),
    WorkloadEnds(message="x"),
    ChargesRetries(),
    LeavesNothing(),
    RecoversWithin(total_s=1.0),
)
GOLDEN = uninterrupted().history()
SILENT_GANG = msgspec.structs.replace(JOB, speaks_protocol=False, layout="files", ranks=2)
OPERATIONS_MAX = 48  # as many as the uninterrupted job has
CAUGHT_BY: dict[Wrong, str] = {
    "starts-over": "resumes-from-newest-durable",
    "restores-older": "resumes-from-newest-durable",
    "skips-a-step": "resumes-from-newest-durable",
    "forgets-optimizer": "bit-exact-resume",
    "restarts-data": "exactly-once-data",
    "loads-torn": "intact-checkpoints",
    "drops-last-save": "completes",
    "exits-zero": "exit-codes",
    "clears-before-saving": "intact-checkpoints",
}

deaths = st.lists(st.builds(Death, st.integers(0, OPERATIONS_MAX), st.sampled_from(["kill", "terminate"])), min_size=1, max_size=3)
kills = st.lists(st.builds(Death, st.integers(8, OPERATIONS_MAX)), min_size=1, max_size=3)


def verdict_of(run: Run, told: list[Death]) -> Verdict:
    return judge(scenario_of(run.workload, *PROMISES, injections=injections_of(told)), run.history(), GOLDEN)


@settings(deadline=None)
@given(told=deaths, layout=st.sampled_from(["step-directories", "text-file"]))
def test_a_right_job_is_valid_under_any_deaths(told: list[Death], layout: Layout):
    run, _ = tell(Run(msgspec.structs.replace(JOB, layout=layout)).golden(), told)
    verdict = verdict_of(run, told)
    attempts = len(run.evidence().lineage.attempts)
    broken = [finding for finding in verdict.findings if finding.outcome is Outcome.INVALID]
    assert not broken, broken
    if attempts == len(told) + 1:  # else it was done before a death could come, and nobody knows whether it would have survived that
        unproved = [finding for finding in verdict.findings if finding.outcome is Outcome.UNKNOWN]
        assert not unproved, unproved


@pytest.mark.parametrize("wrong", CAUGHT_BY)
@settings(deadline=None, max_examples=30)
@given(told=kills, notice=st.integers(0, OPERATIONS_MAX))
def test_a_wrong_job_is_found_wherever_it_shows(wrong: Wrong, told: list[Death], notice: int):
    told = [Death(notice, "terminate")] if wrong == "exits-zero" else told
    run, has_shown = tell(Run().golden(), told, wrong=wrong)
    findings = {finding.checker: finding for finding in verdict_of(run, told).findings}
    if has_shown:
        assert findings[CAUGHT_BY[wrong]].outcome is Outcome.INVALID, findings[CAUGHT_BY[wrong]]
    assert not [finding for finding in findings.values() if "the checker itself failed" in finding.reason]


@settings(deadline=None)
@given(told=deaths, data=st.data())
def test_no_history_makes_a_checker_crash(told: list[Death], data: st.DataObject):
    run, _ = tell(Run().golden(), told)
    kept = data.draw(st.lists(st.booleans(), min_size=len(run.events), max_size=len(run.events)), label="kept")
    events: list[Event] = [event for event, is_kept in zip(run.events, kept, strict=True) if is_kept]
    silent = data.draw(st.booleans(), label="silent")
    workload = SILENT_GANG if silent else JOB
    scenario: Scenario = scenario_of(workload, *EVERY_PROMISE, injections=injections_of(told))
    verdict = judge(scenario, History(events=tuple(events), is_torn=data.draw(st.booleans())), data.draw(st.sampled_from([None, GOLDEN])))
    assert [finding.checker for finding in verdict.findings[2:]] == [name_of(promise) for promise in EVERY_PROMISE]
    crashed = [finding for finding in verdict.findings if "the checker itself failed" in finding.reason]
    assert not crashed, crashed


@given(events=st.one_of(TAME, WILD))
def test_no_events_whatever_make_a_checker_crash(events: list[Event]):
    verdict = judge(scenario_of(JOB, *EVERY_PROMISE), History(events=tuple(events)), GOLDEN)
    assert [finding for finding in verdict.findings if "the checker itself failed" in finding.reason] == []
