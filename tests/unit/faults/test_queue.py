"""Quota and capacity are taken by names that undo it, seen when Kueue says so, and given back."""

import pytest

from harness.errors import HealError, InjectionError
from harness.history.cluster import ConditionState, NodeSeen, ProvisioningSeen, WorkloadSeen
from harness.scenario.cluster_faults import EvictWorkload, LimitNamespace, LowerQuota, OccupyCapacity, PreemptWorkload, RevokeCapacity
from harness.undo import DeleteObject, NothingToUndo, Reactivate, RestoreCluster, RestoreQuota

LIMIT = DeleteObject(api_version="v1", resource="resourcequotas", namespace="run", name="limit")
JOB = DeleteObject(api_version="batch/v1", resource="jobs", namespace="run", name="1-fault")


def workload(*, task: int = 1, reason: str = "", status: str = "True", is_active: bool = True) -> WorkloadSeen:
    evicted = ConditionState(type="Evicted", status=status, reason=reason, message="said Kueue")
    return WorkloadSeen(t_s=1.0, task=task, name="workload", uid="uid", is_active=is_active, conditions=(evicted,) if reason else ())


def request(kind: str, *, task: int = 1) -> ProvisioningSeen:
    return ProvisioningSeen(t_s=1.0, task=task, name="request-1", uid="uid", conditions=(ConditionState(type=kind, status="True"),))


def gone(name: str) -> NodeSeen:
    return NodeSeen(t_s=1.0, name=name, uid=name, pool="dws-pool", state="Deleted")


def act(fault, events=()) -> str:
    fault.advance(events)
    return fault.observe(events)


def begin(fault) -> str:
    fault.undo()
    return fault.inject()


@pytest.mark.parametrize(
    ("fault", "action", "first"),
    [
        (EvictWorkload(), Reactivate(namespace="run", name="workload"), "set_active"),
        (PreemptWorkload(), JOB, "preempt"),
        (LowerQuota(), RestoreQuota(queue="queue", flavor="on-demand", resource="google.com/tpu", quota="16", wrote="0"), "set_quota"),
        (LimitNamespace(), LIMIT, "limit_namespace"),
        (OccupyCapacity(), JOB, "occupy"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_undoes_it_is_named_before_anything_is_changed(make, target, fault, action, first) -> None:
    active = make(fault)

    assert active.undo() == RestoreCluster(cluster="chaos-harness", uid="uid-of-cluster", actions=(action,))
    assert target.done == []
    active.inject()
    assert target.names() == [first]


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (EvictWorkload(), "set_active"),
        (PreemptWorkload(), "preempt"),
        (LowerQuota(), "set_quota"),
        (LimitNamespace(), "limit_namespace"),
        (OccupyCapacity(), "occupy"),
        (RevokeCapacity(), "revoke_capacity"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_cluster_refuses_is_an_injection_that_failed(make, target, fault, name) -> None:
    target.refuses[name] = "it cannot be done"

    with pytest.raises(InjectionError, match="it cannot be done"):
        begin(make(fault))


# ---- eviction and preemption -------------------------------------------------------------------------------------------


def test_an_eviction_is_seen_by_its_reason_and_healed_by_activation(make, target) -> None:
    fault = make(EvictWorkload(duration_s=4.0))
    begin(fault)

    assert fault.heal_after_s == 4.0
    assert act(fault, [workload(is_active=False)]) == ""
    assert act(fault, [workload(task=0, reason="Deactivated")]) == ""
    assert act(fault, [workload(reason="Preempted")]) == ""
    assert act(fault, [workload(reason="Deactivated", status="False")]) == ""
    assert act(fault, [workload(reason="Deactivated", is_active=False)]) == "workload workload was evicted: Deactivated, 'said Kueue'"
    assert fault.heal() == ""
    fault.advance([workload(reason="Deactivated")])
    assert fault.heal() == "workload workload is active again"
    assert target.done == [("set_active", 1, False), ("set_active", 1, True)]


def test_an_eviction_for_another_reason_is_not_ours(make) -> None:
    fault = make(EvictWorkload())
    begin(fault)

    assert act(fault, [workload(reason="DeactivatedDueToAdmissionCheck", is_active=False)]) == ""


def test_a_workload_that_is_gone_needs_no_activation(make, target) -> None:
    fault = make(EvictWorkload())
    begin(fault)
    target.has_workload = False

    assert fault.heal() == "nothing left to activate: the workload is gone"


def test_a_workload_that_is_not_there_cannot_be_evicted(make, target) -> None:
    target.has_workload = False

    with pytest.raises(InjectionError, match="task 1 has no workload"):
        make(EvictWorkload()).undo()


def test_what_cannot_be_activated_is_not_healed(make, target) -> None:
    fault = make(EvictWorkload())
    begin(fault)
    target.refuses["set_active"] = "the API server said 500"

    with pytest.raises(HealError, match="said 500"):
        fault.heal()


def test_a_preemption_is_seen_when_the_other_job_has_what_the_victim_had(make, target) -> None:
    fault = make(PreemptWorkload(duration_s=4.0))
    begin(fault)

    assert act(fault, [workload(reason="Preempted")]) == ""
    assert fault.heal_after_s is None
    target.admitted, target.now_s = True, 20.0
    assert act(fault) == "workload workload was evicted: Preempted, 'said Kueue'; the other job was admitted"
    assert fault.heal_after_s == 24.0


def test_another_job_that_is_admitted_without_preempting_proves_nothing(make, target) -> None:
    fault = make(PreemptWorkload())
    begin(fault)
    target.admitted = True

    assert act(fault, [workload(reason="AdmissionCheck")]) == ""


@pytest.mark.parametrize("fault", [PreemptWorkload(), OccupyCapacity()], ids=lambda fault: type(fault).__name__)
def test_the_other_job_is_deleted_once_and_the_end_is_seen(make, target, fault) -> None:
    active = make(fault)
    begin(active)
    target.vacated = False

    assert [active.heal(), active.heal()] == ["", ""]
    target.vacated = True
    assert active.heal() == "the other job is gone, and its quota free"
    assert target.names().count("vacate") == 1


# ---- quota -------------------------------------------------------------------------------------------------------------


def test_a_quota_is_lowered_when_kueue_counts_with_it(make, target) -> None:
    fault = make(LowerQuota(to=4))

    assert begin(fault) == "nominal quota of flavor on-demand: 4 chips instead of 16"
    assert fault.observe(()) == ""
    target.counted["on-demand"], target.now_s = None, 1.0
    assert fault.observe(()) == ""
    target.counted["on-demand"], target.now_s = 4, 2.0
    assert fault.observe(()) == "Kueue counts with 4 chips of flavor on-demand"


@pytest.mark.parametrize("to", [16, 20])
def test_a_quota_that_is_no_higher_is_not_lowered(make, target, to) -> None:
    fault = make(LowerQuota(to=to))
    with pytest.raises(InjectionError, match=f"the quota of flavor on-demand is 16 already, not more than {to}"):
        fault.undo()
    assert target.done == []


def test_a_quota_is_back_when_kueue_counts_with_what_it_was(make, target) -> None:
    fault = make(LowerQuota(to=4))
    begin(fault)
    target.counted["on-demand"] = 4

    assert fault.heal() == ""
    target.counted["on-demand"], target.now_s = 16, 1.0
    assert fault.heal() == "Kueue counts with 16 chips of flavor on-demand"
    assert target.done == [("set_quota", "on-demand", 4), ("set_quota", "on-demand", 16)]


def test_a_quota_that_somebody_has_changed_since_is_left(make, target) -> None:
    fault = make(LowerQuota(to=4))
    begin(fault)
    target.quotas["on-demand"] = 8

    with pytest.raises(HealError, match=r"is 8, and the fault has written 4: somebody has changed it since, and it is left"):
        fault.heal()
    assert target.done == [("set_quota", "on-demand", 4)]


def test_a_flavor_that_the_queue_has_not_is_named(make) -> None:
    with pytest.raises(InjectionError, match="the queue has no flavor 'spot'"):
        make(LowerQuota(flavor="spot")).undo()


def test_the_cluster_is_not_asked_at_every_tick(make, target) -> None:
    asked: list[str] = []
    fault = make(LowerQuota(to=4))
    begin(fault)
    target.quota_in_force = asked.append

    for target.now_s in (0.0, 0.1, 0.4, 0.6, 0.9, 1.2):
        fault.observe(())

    assert len(asked) == 3


def test_a_limit_is_seen_when_the_quota_controller_has_it_in_force(make, target) -> None:
    fault = make(LimitNamespace(chips=4))
    begin(fault)

    assert fault.observe(()) == ""
    target.limit, target.now_s = 4, 1.0
    assert fault.observe(()) == "the quota controller limits the namespace to 4 chips"
    assert fault.heal() == ""
    target.limit = None
    assert fault.heal() == "the namespace has no limit"
    assert target.done == [("limit_namespace", 4), ("limit_namespace", None)]


def test_occupied_capacity_is_seen_in_the_admission_of_the_other_job(make, target) -> None:
    fault = make(OccupyCapacity(chips=8))

    assert fault.observe(()) == ""
    assert begin(fault) == "submitted job 1-fault for 8 chips of flavor on-demand"
    assert target.done == [("occupy", "1-fault", "on-demand", 8)]
    assert act(fault) == ""
    target.admitted, target.now_s = True, 30.0
    assert act(fault) == "workload 1-fault was admitted to chips of flavor on-demand"


@pytest.mark.parametrize(("refusal", "now_s", "why"), [("", 61.0, "was not admitted within 60 s"), ("to another", 1.0, "to another")])
def test_another_job_that_occupies_nothing_is_deleted_again(make, target, refusal, now_s, why) -> None:
    fault = make(OccupyCapacity(chips=8))
    begin(fault)
    assert act(fault) == ""
    target.refuses |= {"occupied": refusal} if refusal else {}
    target.now_s = now_s

    with pytest.raises(InjectionError, match=why):
        act(fault)
    assert target.names() == ["occupy", "vacate"]


# ---- revoked capacity --------------------------------------------------------------------------------------------------


def test_revoked_capacity_is_seen_when_the_request_says_so_and_the_nodes_are_gone(make) -> None:
    fault = make(RevokeCapacity())

    assert isinstance(fault.undo(), NothingToUndo)
    assert fault.inject() == "revoked the capacity of task 1: node-3, node-4"
    assert act(fault, [request("Provisioned"), request("CapacityRevoked", task=0), gone("node-3"), gone("node-4")]) == ""
    assert act(fault, [request("CapacityRevoked")]) == "request-1 says CapacityRevoked; gone: node-3, node-4"


def test_capacity_without_a_node_cannot_be_revoked(make, target, monkeypatch) -> None:
    monkeypatch.setattr(target, "revoke_capacity", lambda _victim: ())

    with pytest.raises(InjectionError, match="no node left"):
        begin(make(RevokeCapacity()))


def test_revoked_capacity_without_gone_nodes_proves_nothing(make) -> None:
    fault = make(RevokeCapacity())
    begin(fault)

    assert act(fault, [request("CapacityRevoked"), gone("node-3")]) == ""


def test_nobody_activates_a_revoked_workload_unless_it_is_asked_for(make, target) -> None:
    fault = make(RevokeCapacity())
    begin(fault)
    act(fault, [workload(is_active=False)])

    assert fault.heal_after_s is None
    assert "stays so until somebody" in fault.heal()
    assert "reactivate" not in target.names()


def test_a_revoked_workload_is_queued_again_that_long_after_its_deactivation(make, target) -> None:
    fault = make(RevokeCapacity(reactivate_s=3.0))
    begin(fault)
    assert fault.heal_after_s is None
    target.now_s = 10.0
    act(fault, [workload(is_active=False)])

    assert fault.heal_after_s == 13.0
    target.now_s = 13.0
    assert fault.heal() == ""
    act(fault, [workload(is_active=False)])
    assert fault.heal() == ""
    act(fault, [workload(is_active=True)])
    assert fault.heal() == "workload workload (uid-1) was deleted; workload (uid) is active"
    assert target.done[1:] == [("reactivate", 1)]


def test_a_revoked_workload_that_is_gone_is_no_more_to_be_healed(make, target) -> None:
    fault = make(RevokeCapacity(reactivate_s=3.0))
    begin(fault)
    act(fault, [workload(is_active=False)])
    target.now_s, target.has_workload = 3.0, False

    assert "the workload is gone" in fault.heal()


def test_a_run_that_ends_before_that_activates_nothing(make, target) -> None:
    fault = make(RevokeCapacity(reactivate_s=30.0))
    begin(fault)
    act(fault, [workload(is_active=False)])

    assert "nothing to heal" in fault.heal()
    assert "reactivate" not in target.names()
