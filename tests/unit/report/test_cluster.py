"""What was seen of a cluster, read for the page: who was where, what was asked for, what was left."""

from harness.history import PodSeen, PoolScaled
from harness.report.cluster import ClusterView, Spell, cluster_of
from harness.report.page import page_of
from tests.unit.checkers.builders import resumed
from tests.unit.checkers.cluster_builders import NO_QUOTA, STOCKOUT, ClusterRun, condition, fallen_back
from tests.unit.report.records import record_of
from tests.unit.report.test_page import words


def view(run: ClusterRun) -> ClusterView:
    found = cluster_of(run.evidence().lineage, run.t_s)
    assert found is not None
    return found


def test_a_run_without_a_cluster_has_none():
    record = record_of(resumed())
    assert record.cluster is None
    assert "Queue and capacity" not in words(page_of(record))


def test_a_pod_is_told_from_its_first_sight_to_its_end():
    run = ClusterRun()
    run.pod(node="", pool="", phase="Pending").pod().pod(is_terminating=True).pod(phase="Failed", exit_code=137, reason="OOMKilled").pod(
        phase="Deleted"
    )
    (pod,) = view(run).queues[0].pods
    assert [spell.state for spell in pod.spells] == ["pending", "running", "terminating"]
    assert pod.end.startswith("Failed, exit 137 (OOMKilled) at")
    assert pod.place == "node-1 of on-demand-pool"


def test_pods_of_one_name_are_told_apart_by_their_uid():
    run = ClusterRun().pod().pod(phase="Deleted")
    run.here(PodSeen, name="pod-0", uid="second", phase="Pending")
    assert [pod.end.split(" at")[0] for pod in view(run).queues[0].pods] == ["Deleted", ""]


def test_a_node_that_comes_back_is_told_in_one_row():
    run = ClusterRun().node().node(state="Unknown").node(state="Deleted").node(is_schedulable=False).node()
    (pool,) = view(run).pools
    (node,) = pool.nodes
    assert [spell.state for spell in node.spells] == ["ready", "unready", "cordoned", "ready"]
    assert node.spells[1].end_s < node.spells[2].begin_s
    assert node.spells[-1] == Spell("ready", run.t_s, None)


def test_admissions_say_what_was_waited_for():
    first, second = view(fallen_back()).admissions
    assert (first.admission.flavor, second.admission.flavor) == ("on-demand", "dws")
    assert STOCKOUT in second.said
    assert second.waited_s > 0


def test_a_task_that_waits_to_the_end_has_a_row_too():
    run = ClusterRun().submit().queued().reserve(said=STOCKOUT)
    run.t_s += 30
    (row,) = view(run.close("deadline")).admissions
    assert row.admission is None
    assert row.waited_s > 30
    assert row.said.startswith("checking: ")
    assert [row.admission for row in view(ClusterRun().submit().admit().deactivate()).admissions][1] is None


def test_what_ended_an_admission_is_not_what_the_next_one_waited_for():
    run = ClusterRun().submit().admit().deactivate("Deactivated", "The workload is deactivated").reactivate().queued().admit()
    first, second = view(run).admissions
    assert first.admission.end == "deactivated: The workload is deactivated"
    assert second.said == f"somebody to activate it again; Pending: {NO_QUOTA}"
    (_, waiting) = view(ClusterRun().submit().admit().deactivate(message="dws-prov was rejected")).admissions
    assert waiting.said == "deactivated: AdmissionCheck: dws-prov was rejected"


def test_attempts_on_a_cluster_stand_beside_what_was_charged_and_not_beside_a_number_of_retries():
    text = words(page_of(record_of(fallen_back())))
    assert "attempts2 0 charged" in text
    charged = ClusterRun().submit().admit().submit(failed=2).left().submit(failed=3).close()
    assert view(charged).charged == 2
    assert view(ClusterRun().queued()).charged is None
    assert "attempts2 of" in words(page_of(record_of(resumed())))


def test_each_change_of_a_request_is_one_row():
    accepted, stockout = condition("Accepted"), condition("Provisioned", "False", "ResourcePoolExhausted", STOCKOUT)
    run = ClusterRun().provisioning(accepted).provisioning(accepted, stockout).provisioning(accepted, stockout)
    rows = view(run.provisioning(accepted, condition("Provisioned"))).requests
    assert [(row.condition.type, row.condition.status) for row in rows] == [
        ("Accepted", "True"),
        ("Provisioned", "False"),
        ("Provisioned", "True"),
    ]


def test_the_page_has_admissions_requests_scalings_and_what_was_left():
    run = fallen_back()
    run.add(PoolScaled, pool="on-demand-pool", nodes=0, why="no capacity", error="ZONE_RESOURCE_POOL_EXHAUSTED")
    text = words(page_of(record_of(run)))
    for told in (
        "Queue and capacity",
        "dws provisioned",
        STOCKOUT,
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "nothing of it was left",
        "Provisioned True",
    ):
        assert told in text
    assert "left behind quota cluster-queue" in words(page_of(record_of(ClusterRun().left("quota", "cluster-queue"))))
    assert "Nobody looked at what was left" in words(page_of(record_of(ClusterRun().submit())))


def test_the_moments_tell_each_change_once():
    record = record_of(fallen_back())
    from harness.report.timeline import timeline_of

    told = [moment.what for moment in timeline_of(record).moments]
    assert sum("admitted (on-demand)" in what for what in told) == 1
    assert sum(what.startswith("checking (dws)") for what in told) == 1
    assert any("pod pod-1 running on node-2 of dws-pool" in what for what in told)
