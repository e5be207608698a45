"""All ranks of a life go on from one step."""

import msgspec

from harness.checkers.ranks import check
from harness.history import Booted, ObservationLost, RestoreBegun
from harness.scenario.expectations import RanksAgree
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, Run, resumed

PAIR = msgspec.structs.replace(JOB, ranks=2)


def judge(run: Run) -> Finding:
    return check(RanksAgree(), run.evidence())


def killed() -> Run:
    return Run(PAIR).attempt(0).begin().begin(rank=1).steps(1, 7).killed()


def test_ranks_that_restore_one_step_agree():
    finding = judge(killed().attempt(1).begin(5).begin(5, rank=1).steps(6, 20).complete())
    assert finding.outcome is Outcome.VALID
    assert "attempt 1: rank 0 from step 5, rank 1 from step 5" in finding.evidence


def test_ranks_that_restore_different_steps_are_named():
    finding = judge(killed().attempt(1).begin(5).begin(rank=1).steps(6, 20).complete())
    assert finding.outcome is Outcome.INVALID
    assert "attempt 1: rank 0 from step 5, rank 1 from step 0: they must go on from one step" in finding.reason


def test_a_choice_counts_where_a_kill_came_before_the_start():
    finding = judge(
        killed().attempt(1).boot().here(RestoreBegun, step=5).boot(1).here(RestoreBegun, step=3, rank=1).killed("2-kill").close()
    )
    assert finding.outcome is Outcome.INVALID


def test_a_life_that_died_before_all_ranks_spoke_proves_nothing():
    run = killed().attempt(1).begin(5).killed("2-kill")
    assert judge(run.fork().close()).outcome is Outcome.UNKNOWN
    assert judge(run.attempt(2).begin(5).begin(5, rank=1).steps(6, 20).complete()).outcome is Outcome.VALID


def test_a_rank_that_never_speaks_while_the_others_train_is_unknown():
    finding = judge(killed().attempt(1).begin(5).steps(6, 20).complete())
    assert (finding.outcome, "rank 1 never said" in finding.reason) == (Outcome.UNKNOWN, True)


def test_one_rank_agrees_with_itself_which_proves_nothing():
    assert judge(resumed()).outcome is Outcome.UNKNOWN


def test_without_a_second_life_nothing_is_proved():
    assert judge(Run(PAIR).attempt(0).begin().begin(rank=1).steps(1, 20).complete()).outcome is Outcome.UNKNOWN


def test_lives_inside_one_attempt_are_told_apart_even_if_a_rank_missed_one():
    run = Run(PAIR).attempt(0).begin().begin(rank=1).steps(1, 7)
    run.here(Booted).here(Booted).restore(5).start(5).begin(5, rank=1).steps(6, 20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.VALID
    assert "attempt 0 (life 2): rank 0 from step 5, rank 1 from step 5" in finding.evidence


def test_lost_events_leave_it_open():
    run = killed().attempt(1).begin(5).begin(5, rank=1).add(ObservationLost, what="events", count=1, detail="x").steps(6, 20).complete()
    assert judge(run).outcome is Outcome.UNKNOWN
