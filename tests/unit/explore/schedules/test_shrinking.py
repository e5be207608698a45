"""What fails is made small in a dozen runs, and stays the same failure."""

import itertools

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from harness.explore.schedules.cases import Case, Signature, Trial
from harness.explore.schedules.shrinking import RUNS_MAX, Reproduction, reproduce, shrink
from harness.scenario import Injection, Schedule
from harness.scenario.faults import EndGrace, Kill, Pause, Terminate
from harness.scenario.triggers import AfterSeconds, AtMarker, AtStep
from harness.strategies import schedules
from harness.verdict import Outcome
from tests.unit.explore.schedules.laboratory import (
    JOB,
    TORN,
    Bug,
    Laboratory,
    case_of,
    dies_in_a_save,
    dies_in_a_save_and_in_the_restore_after_it,
    is_at,
)

SIGTERM = AtMarker(event="sigterm")
FOUR = (
    Injection(fault=Kill(), at=AtStep(step=7)),
    Injection(fault=Terminate(), at=AtMarker(event="save.begin", nth=3, when="before"), attempts=(1,)),
    Injection(fault=EndGrace(), at=SIGTERM, attempts=(1,)),
    Injection(fault=Kill(), at=AtMarker(event="boot"), attempts=(2,)),
)
TWO_KILLS = (
    Injection(fault=Kill(), at=AfterSeconds(seconds=0.2)),
    Injection(fault=Kill(), at=AtMarker(event="save.begin", nth=4), attempts=(1,)),
    Injection(fault=Kill(), at=AtMarker(event="restore.begin", when="before"), attempts=(2,)),
    Injection(fault=Pause(), at=AtMarker(event="step", nth=3), attempts=(3,)),
)
SMALLEST_OF_TWO = (
    Injection(fault=Kill(), at=AtMarker(event="save.begin")),
    Injection(fault=Kill(), at=AtMarker(event="restore.begin"), attempts=(1,)),
)


def small(case: Case, bug: Bug, **limits: int) -> tuple[tuple[Injection, ...], int]:
    """The faults that are left, and how many runs that took."""
    laboratory = Laboratory(bug)
    shrunk = shrink(case, laboratory.run(case), laboratory.run, **limits)
    assert shrunk.runs == len(laboratory.ran) - 1
    return shrunk.case.injections, shrunk.runs


# ---- the smallest ----------------------------------------------------------------------------------------------------


def test_a_simple_bug_is_one_kill_at_the_first_moment_within_the_budget():
    left, runs = small(case_of(*FOUR), dies_in_a_save)

    assert left == (Injection(fault=Kill(), at=AtMarker(event="save.begin")),)
    assert runs <= RUNS_MAX


def test_a_narrow_bug_is_two_kills_within_the_budget():
    left, runs = small(case_of(*TWO_KILLS), dies_in_a_save_and_in_the_restore_after_it)

    assert left == SMALLEST_OF_TWO
    assert runs <= RUNS_MAX


def test_a_failure_that_needs_no_fault_s_kind_becomes_a_kill_in_the_first_attempt():
    left, _ = small(case_of(*FOUR), lambda _case: TORN)

    assert [(type(one.fault), one.attempts) for one in left] == [(Kill, (0,))]


@settings(deadline=None)
@given(st.data())
def test_a_simple_bug_that_is_drawn_is_found_and_made_small(data: st.DataObject):
    schedule = data.draw(schedules(JOB, max_faults=4).filter(lambda drawn: any(is_at(one, "save.begin") for one in drawn.injections)))
    case = case_of(*schedule.injections)

    left, runs = small(case, dies_in_a_save)

    assert len(left) == 1
    assert left[0].attempts == (0,)
    assert runs <= RUNS_MAX


def test_hypothesis_finds_the_narrow_bug_and_it_is_made_small():
    def fails(schedule: Schedule) -> bool:
        return bool(dies_in_a_save_and_in_the_restore_after_it(case_of(*schedule.injections)))

    found = find(
        schedules(JOB, max_faults=4),
        fails,
        settings=settings(
            max_examples=20_000,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[p for p in settings.default.phases if p.name == "generate"],
        ),
    )
    left, runs = small(case_of(*found.injections), dies_in_a_save_and_in_the_restore_after_it)

    assert left == SMALLEST_OF_TWO
    assert runs <= RUNS_MAX


# ---- always ----------------------------------------------------------------------------------------------------------

CULPRITS = ("save.begin", "step", "boot", "sigterm", "restore.begin", "")


@given(st.data(), st.sets(st.sampled_from(CULPRITS), min_size=1, max_size=2), st.integers(0, 30))
def test_whatever_the_bug_the_failure_stays_the_same_and_the_budget_holds(data: st.DataObject, culprits: set[str], runs_max: int):
    schedule = data.draw(schedules(JOB, max_faults=5))

    def bug(case: Case) -> Signature:
        said = {getattr(one.at, "event", "") for one in case.injections}
        return tuple(sorted(f"checker-of-{word or 'other'}" for word in culprits & said))

    laboratory = Laboratory(bug)
    case = case_of(*schedule.injections)
    first = laboratory.run(case)
    if not first.signature:
        return
    shrunk = shrink(case, first, laboratory.run, runs_max=runs_max)

    assert bug(shrunk.case) == first.signature == shrunk.trial.signature
    assert len(shrunk.case.injections) <= len(case.injections)
    assert shrunk.runs == len(laboratory.ran) - 1 <= runs_max
    keys = [tried.key() for tried in laboratory.ran]
    assert len(set(keys)) == len(keys), "nothing is tried twice"
    if not shrunk.is_cut:
        assert len(shrunk.case.injections) <= len(first.signature) * 2, "one for each word, with its notice at most"


def test_a_smaller_schedule_that_fails_in_another_way_is_another_failure():
    def bug(case: Case) -> Signature:
        return TORN if len(case.injections) == len(FOUR) else ("completes",)

    left, _ = small(case_of(*FOUR), bug)
    assert len(left) == len(FOUR)


def test_a_smaller_schedule_that_proved_nothing_is_no_smaller_failure():
    def run(case: Case) -> Trial:
        return Trial(outcome=Outcome.UNKNOWN if len(case.injections) < len(FOUR) else Outcome.INVALID, signature=())

    shrunk = shrink(case_of(*FOUR), Trial(outcome=Outcome.INVALID, signature=TORN), run, runs_max=100)
    assert shrunk.case == case_of(*FOUR)


# ---- the budget ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs_max", [0, 1, 3])
def test_no_run_is_made_beyond_the_budget_and_what_was_reached_is_kept(runs_max: int):
    laboratory = Laboratory(dies_in_a_save)
    shrunk = shrink(case_of(*FOUR), Trial(outcome=Outcome.INVALID, signature=TORN), laboratory.run, runs_max=runs_max)

    assert shrunk.runs == len(laboratory.ran) == runs_max
    assert shrunk.is_cut
    assert len(shrunk.done) <= runs_max
    assert dies_in_a_save(shrunk.case) == TORN


def test_what_is_known_costs_nothing():
    laboratory = Laboratory(dies_in_a_save)
    shrunk = shrink(
        case_of(*FOUR), Trial(outcome=Outcome.INVALID, signature=TORN), laboratory.run, known=Laboratory(dies_in_a_save).run, runs_max=0
    )

    assert shrunk.case.injections == (Injection(fault=Kill(), at=AtMarker(event="save.begin")),)
    assert laboratory.ran == []
    assert not shrunk.is_cut


# ---- flaky -----------------------------------------------------------------------------------------------------------


def test_a_failure_that_comes_every_other_time_is_shrunk_by_trying_twice():
    turns = itertools.cycle([(), TORN])

    def bug(case: Case) -> Signature:
        return dies_in_a_save(case) and next(turns)

    failed = Trial(outcome=Outcome.INVALID, signature=TORN)
    assert len(shrink(case_of(*FOUR), failed, Laboratory(bug).run, runs_max=60, tries=2).case.injections) == 1


@pytest.mark.parametrize(("outcomes", "told"), [([TORN, (), TORN, (), TORN], "reproduces 3 of 5"), ([()] * 5, "reproduces 0 of 5")])
def test_how_often_it_comes_again_is_told(outcomes: list[Signature], told: str):
    turns = iter(outcomes)
    assert str(reproduce(case_of(*FOUR), TORN, Laboratory(lambda _case: next(turns)).run)) == told


def test_another_failure_is_no_reproduction():
    assert reproduce(case_of(*FOUR), TORN, Laboratory(lambda _case: ("completes",)).run, repeats=2) == Reproduction(0, 2)
