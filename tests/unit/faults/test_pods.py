"""Pods are removed once each, and count as gone by their uids alone."""

import pytest

from harness.errors import InjectionError
from harness.history.cluster import PodSeen
from harness.scenario.cluster_faults import DeletePods, EvictPods
from harness.undo import NothingToUndo


def seen(rank: int, phase: str, *, uid: str = "", is_terminating: bool = False, reason: str = "") -> PodSeen:
    return PodSeen(
        t_s=1.0, task=1, name=f"host-{rank}", uid=uid or f"uid-{rank}", rank=rank, phase=phase, is_terminating=is_terminating, reason=reason
    )


@pytest.mark.parametrize("grace_s", [0, 5, None])
def test_each_pod_of_the_victim_is_deleted_once_with_the_grace_that_was_asked_for(make, target, grace_s) -> None:
    fault = make(DeletePods(grace_s=grace_s))

    assert isinstance(fault.undo(), NothingToUndo)
    assert target.done == []
    detail = fault.inject()
    assert target.done == [("pods_of", -1, "hosts"), ("delete_pod", "host-0", grace_s), ("delete_pod", "host-1", grace_s)]
    assert detail.endswith("host-0 (uid-0), host-1 (uid-1)")


@pytest.mark.parametrize(("fault", "verb"), [(DeletePods(), "delete_pod"), (EvictPods(), "evict_pod")])
def test_a_rank_is_one_pod(make, target, fault, verb) -> None:
    make(fault, rank=1).inject()

    assert [(what[0], what[1]) for what in target.done] == [("pods_of", 1), (verb, "host-1")]


def test_a_part_is_passed_on(make, target) -> None:
    make(EvictPods(part="head")).inject()

    assert target.done[0] == ("pods_of", -1, "head")


def test_it_is_seen_when_the_last_pod_is_gone_or_ended(make) -> None:
    fault = make(DeletePods())
    fault.inject()

    assert fault.observe(()) == ""
    assert fault.observe([seen(0, "Running", is_terminating=True)]) == ""
    assert fault.observe([seen(0, "Deleted")]) == ""
    assert fault.observe([seen(1, "Failed", reason="Error")]) == "pod host-0 (uid-0) is gone; pod host-1 (uid-1) ended (Error)"


def test_the_successor_of_the_same_name_proves_nothing(make) -> None:
    fault = make(DeletePods(), rank=0)
    fault.inject()

    assert fault.observe([seen(0, "Running", uid="uid-9"), seen(0, "Deleted", uid="uid-9")]) == ""


@pytest.mark.parametrize("name", ["pods_of", "delete_pod"])
def test_a_pod_that_is_not_there_is_an_injection_that_failed(make, target, name) -> None:
    target.refuses[name] = "no pod of hosts of task 1 is there"

    with pytest.raises(InjectionError, match="no pod of hosts of task 1 is there"):
        make(DeletePods()).inject()


def test_what_a_disruption_budget_forbids_is_an_injection_that_failed(make, target) -> None:
    target.refuses["evict_pod"] = "a disruption budget forbids it"

    with pytest.raises(InjectionError, match="a disruption budget forbids it"):
        make(EvictPods()).inject()


def test_a_pod_that_is_gone_stays_gone(make) -> None:
    fault = make(DeletePods())
    fault.inject()

    assert fault.heal_after_s is None
    assert "its controller decides" in fault.heal()
