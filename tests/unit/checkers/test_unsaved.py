"""A job that is followed by its log goes on from what was saved, as far as its words tell."""

from msgspec.structs import replace

from harness.checkers.resume import check
from harness.history import ObservationLost, StepDone
from harness.scenario import Outside
from harness.scenario.expectations import ResumesFromNewestDurable
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run
from tests.unit.checkers.followed import JOB, PATTERNS, killed, resumed, said


def judge(run: Run) -> Finding:
    promise = ResumesFromNewestDurable(lost_steps_max=30)
    return check(promise, run.evidence(promise))


def went_on(run: Run, step: int) -> Run:
    return said(resumed(run, step), *range(step + 1, 61)).complete()


def until(step: int) -> range:
    return range(1, step + 1)


def test_a_step_that_nobody_had_saved_or_executed_is_broken():
    finding = judge(went_on(killed(*until(24)), 40))
    assert finding.outcome is Outcome.INVALID
    assert "went on from step 40" in finding.reason
    assert (
        "which nobody had saved and nobody had executed: step 24 was the last, and the newest acknowledged save was step 20"
        in finding.reason
    )
    assert judge(went_on(killed(*until(24)), 20)).outcome is Outcome.VALID


def test_a_step_between_two_saves_is_broken_unless_sigterm_asked_for_it():
    assert "step 23" in judge(went_on(killed(*until(24)), 23)).reason
    assert judge(went_on(killed(*until(24)), 23)).outcome is Outcome.INVALID
    told = said(Run(JOB).attempt(0).put(-1), *until(24)).terminated(143)
    assert judge(went_on(told, 24)).outcome is Outcome.VALID


def test_a_save_may_be_whole_before_it_is_said():
    run = said(Run(JOB).attempt(0).put(-1), *until(29)).here(StepDone, step=30).killed()
    assert judge(went_on(run, 30)).outcome is Outcome.VALID


def test_some_name_the_step_that_they_go_on_with():
    run = said(resumed(killed(*until(24)), 21), *range(21, 61)).complete()
    assert judge(run).outcome is Outcome.VALID


def test_a_step_that_may_have_been_reached_unseen_is_unknown():
    few = killed(10)
    assert judge(went_on(few, 20)).outcome is Outcome.UNKNOWN


def test_where_no_save_is_recorded_nothing_is_known():
    mute = replace(JOB, save_every=0)
    assert judge(went_on(killed(*until(24), workload=mute), 40)).outcome is Outcome.UNKNOWN


def test_where_words_are_lost_a_save_may_be_among_them():
    run = killed(*until(24)).add(ObservationLost, what="logs", count=3, detail="3 lines")
    assert judge(went_on(run, 40)).outcome is Outcome.UNKNOWN


def test_who_does_not_say_that_it_resumed_is_judged_by_its_first_step():
    mute = replace(JOB, outside=Outside(logs=replace(PATTERNS, resumed="")))
    assert "nobody had executed" in judge(said(killed(*until(24), workload=mute).attempt(1), *range(35, 61)).complete()).reason
    assert judge(said(killed(*until(24), workload=mute).attempt(1), *range(21, 61)).complete()).outcome is Outcome.VALID
