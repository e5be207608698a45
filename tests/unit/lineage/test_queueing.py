"""What a workload's conditions mean, one after the other."""

from itertools import pairwise

import msgspec
import pytest

from harness.history import CheckState, WorkloadSeen
from harness.lineage import StayState, state_of, trace
from harness.lineage.queueing import flavor_of, read_stays
from tests.unit.checkers.cluster_builders import NO_QUOTA, STOCKOUT, ClusterRun, condition, fallen_back


def seen(*conditions: tuple[str, str], is_active: bool = True) -> WorkloadSeen:
    return WorkloadSeen(t_s=0, name="w", uid="u", is_active=is_active, conditions=tuple(condition(*each) for each in conditions))


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ((), "queued"),
        ((("QuotaReserved", "False"),), "queued"),
        ((("QuotaReserved", "True"),), "checking"),
        ((("QuotaReserved", "True"), ("Admitted", "True")), "admitted"),
        ((("QuotaReserved", "True"), ("Admitted", "True"), ("PodsReady", "False")), "admitted"),
        ((("QuotaReserved", "True"), ("Admitted", "True"), ("Evicted", "True")), "evicting"),
        ((("QuotaReserved", "True"), ("Admitted", "False"), ("Evicted", "True")), "evicting"),
        ((("QuotaReserved", "False"), ("Admitted", "False"), ("Evicted", "True")), "queued"),
        ((("QuotaReserved", "False"), ("Evicted", "True"), ("Requeued", "False")), "backoff"),
        ((("QuotaReserved", "True"), ("Admitted", "True"), ("Finished", "True")), "finished"),
    ],
)
def test_the_state_goes_by_the_conditions(conditions: tuple[tuple[str, str], ...], state: StayState):
    assert state_of(seen(*conditions)) == state


def test_one_that_was_just_activated_again_does_not_back_off():
    requeued = condition("Requeued", "False", "Deactivated")
    assert state_of(WorkloadSeen(t_s=0, name="w", uid="u", conditions=(condition("Evicted"), requeued))) == "queued"


def test_one_that_is_not_active_is_deactivated_unless_it_is_over():
    assert state_of(seen(("QuotaReserved", "True"), ("Admitted", "True"), is_active=False)) == "deactivated"
    assert state_of(seen(("Finished", "True"), is_active=False)) == "finished"


@pytest.mark.parametrize(
    ("flavors", "flavor"),
    [
        ({}, ""),
        ({"main": "dws"}, "dws"),
        ({"head": "default-cpu", "tpu-group": "on-demand", "submitter": "default-cpu"}, "on-demand"),
        ({"head": "default-cpu"}, "default-cpu"),
        ({"head": "default-cpu", "a": "on-demand", "b": "dws"}, "dws+on-demand"),
    ],
)
def test_the_flavor_is_that_of_the_hosts(flavors: dict[str, str], flavor: str):
    assert flavor_of(WorkloadSeen(t_s=0, name="w", uid="u", flavors=flavors)) == flavor


def test_a_fallback_is_told_stay_by_stay():
    stays = trace(fallen_back().history().events).stays_of(0)
    assert [(stay.state, stay.flavor) for stay in stays] == [
        ("queued", ""),
        ("admitted", "on-demand"),
        ("evicting", "on-demand"),
        ("queued", ""),
        ("checking", "dws"),
        ("admitted", "dws"),
        ("finished", "dws"),
    ]
    assert all(stay.end_s == after.begin_s for stay, after in pairwise(stays))
    assert stays[-1].end_s is None
    assert [text for _, text in stays[3].notes] == [f"Pending: {NO_QUOTA}"]
    assert [text for _, text in stays[4].notes] == ["dws-prov Pending", f"dws-prov Pending: {STOCKOUT}"]


def test_admissions_say_since_when_they_were_asked_for_and_what_ended_them():
    first, second = trace(fallen_back().history().events).admissions_of(0)
    assert (first.flavor, first.is_provisioned, first.end) == ("on-demand", False, "evicted: Preempted: by a job of higher priority")
    assert (second.flavor, second.is_provisioned, second.end) == ("dws", True, "finished: Succeeded: Job finished")
    assert second.asked_s == first.ended_s
    assert second.waited_s > 0


def test_words_of_an_earlier_state_are_none_of_this_one():
    run = ClusterRun().submit().admit()
    for _ in range(2):
        run.is_active[0] = False
        run.kueue()  # Kueue has not reacted yet: ``Evicted`` speaks of the time before
        run.deactivate("Deactivated", "The workload is deactivated").reactivate()
        previously = condition("Evicted", "False", "QuotaReserved", "Previously: The workload is deactivated")
        run.flavors[0] = {"main": "on-demand"}
        run.kueue(condition("QuotaReserved"), previously, condition("Admitted"))

    lineage = trace(run.history().events)

    told = [(stay.state, [text for _, text in stay.notes]) for stay in lineage.stays_of(0)]
    cycle = [("admitted", []), ("deactivated", ["Deactivated: The workload is deactivated"]), ("queued", [])]
    assert told == [*cycle, *cycle, cycle[0]]
    assert [each.end for each in lineage.admissions_of(0)] == ["deactivated: The workload is deactivated"] * 2 + [""]


def test_a_check_that_is_ready_is_waited_for_no_more():
    run = ClusterRun().submit().reserve(check="Ready")
    run.checks[0] = (CheckState(name="a", state="Ready"), CheckState(name="b", state="Pending", message="m"))
    (stay,) = trace(run.kueue(condition("QuotaReserved")).history().events).stays_of(0)
    assert stay.notes[-1][1] == "b Pending: m"


def test_a_workload_that_was_deleted_and_made_anew_takes_the_place_of_the_one_before():
    conditions = [seen(("QuotaReserved", "True"), ("Admitted", "True")), seen(is_active=False)]
    anew = [seen(("Admitted", "True"), ("QuotaReserved", "True")), seen(("Finished", "True"))]
    events = [*conditions, *(msgspec.structs.replace(event, uid="anew") for event in anew)]

    stays = read_stays(msgspec.structs.replace(event, t_s=float(t_s)) for t_s, event in enumerate(events))

    assert [stay.state for stay in stays] == ["admitted", "deactivated", "admitted", "finished"]
