"""What each pass offers, the smallest first, and what it leaves alone."""

import pytest

from harness.explore.schedules.cases import Case, Trial
from harness.explore.schedules.passes import (
    PASSES,
    Pass,
    earlier_moments,
    fewer_attempts,
    milder,
    milder_scopes,
    one_signal,
    one_victim,
    smaller_runs,
)
from harness.scenario import Fault, Injection, Trigger, Victim, Workload, kind_of
from harness.scenario.cluster_faults import DeletePods, LoseNode, LosePool
from harness.scenario.faults import CancelExecution, EndGrace, ExpireTimeout, FlipByte, Kill, Maintenance, OverlapAttempts, Pause, Terminate
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, OnLog
from harness.verdict import Outcome
from tests.unit.explore.schedules.laboratory import case_of

PAIR = Workload(name="pair", command=("pair",), steps=40, ranks=2)
SIGTERM = AtMarker(event="sigterm")
AT = AtStep(step=8)


def offered(pass_: Pass, *injections: Injection, case: Case | None = None, **markers: AtMarker) -> list[tuple[Injection, ...]]:
    trial = Trial(outcome=Outcome.INVALID, signature=("x",), markers=markers)
    return [smaller.injections for _, smaller in pass_(case or case_of(*injections), trial)]


def kill(at: Trigger = AT, **fields: object) -> Injection:
    return Injection(fault=Kill(), at=at, **fields)


# ---- scope -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        (LosePool(), ["kill", "delete-pods", "lose-node"]),
        (LoseNode(), ["kill", "delete-pods"]),
        (DeletePods(), ["kill"]),
        (Maintenance(), ["kill", "terminate"]),
        (ExpireTimeout(), ["kill", "terminate"]),
        (OverlapAttempts(), ["kill"]),
        (Terminate(), ["kill"]),
        (Kill(), []),
        (Pause(), []),
        (FlipByte(), []),
    ],
)
def test_milder_is_what_hits_less(fault: Fault, kinds: list[str]):
    assert [kind_of(found) for found in milder(fault)] == kinds


def test_a_milder_fault_comes_at_the_same_moment():
    assert offered(milder_scopes, kill(), Injection(fault=Terminate(), at=AT, attempts=(1,))) == [(kill(), kill(attempts=(1,)))]


def test_a_notice_that_something_waits_for_is_no_kill_by_itself():
    notice, end = Injection(fault=Terminate(), at=AT), Injection(fault=EndGrace(), at=SIGTERM)
    assert offered(milder_scopes, notice, end) == []


# ---- one signal ------------------------------------------------------------------------------------------------------


def test_a_notice_and_what_comes_in_the_handler_become_one_kill_at_the_notice():
    notice = Injection(fault=Terminate(), at=AT)
    for follower in (Injection(fault=EndGrace(), at=SIGTERM), kill(SIGTERM), Injection(fault=Terminate(), at=SIGTERM)):
        assert offered(one_signal, kill(attempts=(1,)), notice, follower) == [(kill(attempts=(1,)), kill())]


def test_the_end_of_a_grace_in_a_save_becomes_a_kill_in_that_save():
    save = AtMarker(event="save.begin", nth=2)
    notice, end = Injection(fault=Terminate(), at=AT), Injection(fault=EndGrace(), at=save)
    assert offered(one_signal, notice, end) == [(kill(save),), (kill(),)]


def test_two_faults_of_two_attempts_are_no_pair():
    assert offered(one_signal, Injection(fault=Terminate(), at=AT), kill(attempts=(1,))) == []


# ---- one victim ------------------------------------------------------------------------------------------------------


def test_all_ranks_or_another_become_the_first_at_its_own_word():
    pair = case_of(kill(), kill(AtMarker(event="boot", rank=1), victim=Victim(rank=1), attempts=(1,)), workload=PAIR)
    first, second = pair.injections
    alone = Victim(rank=0)
    assert offered(one_victim, case=pair) == [
        (kill(victim=alone), second),
        (first, kill(AtMarker(event="boot"), victim=alone, attempts=(1,))),
    ]


def test_a_job_of_one_process_has_one_victim():
    assert offered(one_victim, kill()) == []


@pytest.mark.parametrize("fault", [OverlapAttempts(), CancelExecution()])
def test_what_hits_whole_attempts_hits_no_rank_alone(fault: Fault):
    assert offered(one_victim, case=case_of(Injection(fault=fault, at=AT), workload=PAIR)) == []


# ---- moments ---------------------------------------------------------------------------------------------------------

WORD = AtMarker(event="save.begin", nth=2)


@pytest.mark.parametrize(
    ("at", "simpler"),
    [
        (AfterSeconds(seconds=1.5), [WORD]),
        (OnLog(pattern="saving", nth=3), [WORD]),
        (AtMarker(event="step", nth=9), [AtMarker(event="step", nth=nth) for nth in (1, 4, 8)]),
        (AtMarker(event="step", nth=2, when="before"), [AtMarker(event="step", when="before"), AtMarker(event="step", nth=2)]),
        (AtMarker(event="step"), []),
        (AtStep(step=3), [AtStep(step=1), AtStep(step=2)]),
        (
            AtOperation(operation="sync", path="x", nth=2, after="save.end", after_nth=3),
            [AtMarker(event="save.end", nth=3), AtOperation(operation="sync", path="x", after="save.end", after_nth=3)],
        ),
        (AtOperation(operation="mkdir", path="x"), []),
    ],
)
def test_a_plainer_moment_is_a_marker_or_an_earlier_occurrence(at: Trigger, simpler: list[Trigger]):
    assert offered(earlier_moments, kill(at), **{"1-kill": WORD}) == [(kill(found),) for found in simpler]


def test_where_no_marker_was_seen_seconds_stay():
    assert offered(earlier_moments, kill(AfterSeconds(seconds=1.5))) == []


# ---- attempts and size -----------------------------------------------------------------------------------------------


def test_a_fault_of_several_attempts_acts_in_the_first_alone():
    assert offered(fewer_attempts, kill(attempts=(0, 1, 2))) == [(kill(),)]
    assert offered(fewer_attempts, kill()) == []


def test_half_the_steps_are_told_to_the_job_where_it_takes_them_from():
    (shrunk,) = [smaller for _, smaller in smaller_runs(case_of(kill()), Trial(outcome=Outcome.INVALID))]
    assert shrunk.scenario.workload.steps == 20
    assert shrunk.scenario.workload.environment == {"STEPS": "20", "WIDTH": "40"}


def test_the_steps_stay_where_nobody_knows_how_to_tell_the_job_or_a_fault_needs_them():
    silent = Workload(name="silent", command=("silent", "40"), steps=40)
    assert offered(smaller_runs, case=case_of(kill(), workload=silent)) == []
    assert offered(smaller_runs, kill(AtStep(step=21))) == []
    assert len(offered(smaller_runs, kill(AtStep(step=20)))) == 1


def test_tasks_that_are_not_hit_need_not_run():
    wide = case_of(kill(victim=Victim(task=1)), tasks=4, parallelism=3)
    (shrunk, _) = [smaller for _, smaller in smaller_runs(wide, Trial(outcome=Outcome.INVALID))]
    assert (shrunk.scenario.platform.tasks, shrunk.scenario.platform.parallelism) == (2, 0)


@pytest.mark.parametrize("pass_", PASSES, ids=lambda pass_: pass_.__name__)
def test_the_smallest_case_is_offered_no_other_schedule(pass_: Pass):
    smallest = kill(AtMarker(event="boot"))
    assert set(offered(pass_, smallest)) <= {(smallest,)}
