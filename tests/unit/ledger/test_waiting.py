"""Time in which a task of a cluster waits, cut where the queue, the scheduler and the job say so."""

from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given

from harness.history import Event, PodSeen
from harness.ledger import Ledger, keep
from harness.ledger.hits import LASTING, RUNS_ON
from harness.lineage import trace
from harness.scenario.cluster_faults import ClusterFault
from tests.unit.checkers.cluster_builders import STOCKOUT, ClusterRun, fallen_back
from tests.unit.report.events import TAME


def kept(run: ClusterRun) -> Ledger:
    ledger = keep(run.evidence().lineage, 0)
    assert ledger is not None
    return ledger


def told(ledger: Ledger) -> list[tuple[str, float]]:
    rows: list[tuple[str, float]] = []
    for span in ledger.spans:
        if rows and rows[-1][0] == span.category:
            rows[-1] = (span.category, round(rows[-1][1] + span.seconds, 6))
        elif span.seconds > 0:
            rows.append((span.category, round(span.seconds, 6)))
    return rows


def wait(run: ClusterRun, seconds: float) -> ClusterRun:
    run.t_s = round(run.t_s + seconds, 6)
    return run


def trained(run: ClusterRun) -> ClusterRun:
    run.is_surveyed = False
    wait(run.submit().queued(), 5)
    wait(run.admit("on-demand").pod(node="", phase="Pending"), 2)
    wait(run.pod(phase="Pending"), 1)
    run.attempt(0)
    run.pod().boot().start(0).step(1).step(2)
    return run


def test_the_first_wait_counts_from_the_submission():
    ledger = kept(trained(ClusterRun()))
    assert told(ledger)[:3] == [("requeue", 5.3), ("provision", 2.1), ("start", 1.4)]
    assert ledger.begin_s == pytest.approx(0.3)
    assert ledger.adds_up


def test_goodput_counts_the_queue():
    run = trained(ClusterRun())
    productive_s = kept(run).total("productive")
    assert kept(run).goodput == pytest.approx(productive_s / kept(run).wall_s)
    assert kept(run).goodput < 0.05


def test_a_fallback_is_recovered_from_in_six_parts():
    run = trained(ClusterRun())
    run.save(2)
    run.request("1-preempt", "preempt-workload").observe("1-preempt").heal("1-preempt")
    hit_s = run.t_s - 0.2
    wait(run.evict(), 1).exit(143, cause="platform")
    wait(run.queued(), 3)
    wait(run.reserve("dws").reserve("dws", said=STOCKOUT), 4)
    wait(run.admit("dws").pod("pod-1", node="", phase="Pending"), 0.5)
    wait(run.pod("pod-1", node="node-2"), 0.7)
    run.attempt(1)
    wait(run.boot(), 0.3).restore(2).start(2).step(3).step(4).step(5).done().exit(0)
    (recovery,) = kept(run).recoveries
    assert recovery.fault_s == pytest.approx(hit_s)
    parts = {name: round(seconds, 6) for name, seconds in recovery.parts.items() if seconds > 1e-6}
    assert parts == {"detect": 1.5, "requeue": 3.3, "provision": 4.8, "start": 1.4, "restore": 0.1, "replay": 0.1}
    assert sum(recovery.parts.values()) == pytest.approx(recovery.seconds)


def test_a_host_that_is_replaced_inside_an_attempt_is_detected_requeued_and_provisioned():
    run = trained(ClusterRun())
    run.request("1-lose", "lose-node").observe("1-lose").heal("1-lose")
    wait(run.node(state="Deleted"), 40).node(state="Unknown")
    wait(run, 10).pod(phase="Failed")
    wait(run.pod("pod-1", node="", phase="Pending"), 6).pod("pod-1", node="node-2", phase="Pending")
    wait(run.pod("pod-1", node="node-2"), 2).boot().start(2).step(3).done().exit(0)
    (recovery,) = kept(run).recoveries
    parts = {name: round(seconds, 6) for name, seconds in recovery.parts.items() if seconds}
    assert parts == {"detect": 40.4, "requeue": 10.2, "provision": 6.1, "start": 2.3, "replay": 0.1}


def test_a_death_that_nobody_notices_for_a_while_is_detection_and_no_lost_work():
    run = trained(ClusterRun())
    run.request("1-break", "break-node").observe("1-break").heal("1-break")
    wait(run, 50).exit(137, cause="fault")
    run.evict().admit("on-demand").pod("pod-1", node="node-2").attempt(1).boot().start(0).step(1).step(2).step(3).done().exit(0)
    ledger = kept(run)
    assert ledger.total("detect") == pytest.approx(50.3)
    assert ledger.recoveries[0].parts["detect"] == pytest.approx(50.3)
    assert ledger.adds_up


def test_a_break_that_was_healed_while_the_job_went_on_is_no_death():
    run = trained(ClusterRun()).request("1-break", "break-node").observe("1-break").step(3).heal("1-break").step(4)
    run.request("2-delete", "delete-pods").observe("2-delete")
    hit_s = run.t_s - 0.1
    run.exit(143, cause="fault").attempt(1).boot().start(0).steps(1, 5).done().exit(0)
    assert kept(run).recoveries[0].fault_s == pytest.approx(hit_s)


def test_workers_that_ray_starts_again_in_their_pods_wait_for_nothing_of_the_cluster():
    run = trained(ClusterRun()).request("1-kill", "kill").observe("1-kill")
    wait(run, 3).boot().start(0).step(1).step(2).step(3).done().exit(0)
    (recovery,) = kept(run).recoveries
    assert recovery.parts["requeue"] == pytest.approx(3.2)
    assert "provision" not in recovery.parts


def test_a_task_that_waits_to_the_end_has_waited_wall_time():
    run = trained(ClusterRun())
    wait(run.exit(143, cause="platform").evict().queued(), 30).close("deadline")
    ledger = kept(run)
    assert ledger.end_s == run.t_s
    assert told(ledger)[-1][0] == "requeue"
    assert ledger.total("requeue") > 35
    assert ledger.adds_up


def test_a_job_beside_the_queue_waits_for_its_nodes_alone():
    run = ClusterRun(is_surveyed=False)
    wait(run.pod(node="", phase="Pending"), 2).pod()
    run.attempt(0).boot().start(0).step(1).done().exit(0)
    assert told(kept(run))[:2] == [("provision", 2.1), ("start", 0.3)]


def test_another_task_s_pods_are_not_waited_for():
    run = trained(ClusterRun())
    before = told(kept(run))
    run.add(PodSeen, task=1, name="other", uid="o", node="node-9", phase="Failed")
    assert told(kept(run)) == before


def test_a_whole_fallback_adds_up():
    ledger = kept(fallen_back())
    assert ledger.adds_up
    assert all(before.end_s == pytest.approx(after.begin_s) for before, after in pairwise(ledger.spans))


def test_kinds_of_faults_are_kinds():
    kinds = {str(fault.__struct_config__.tag) for fault in get_args(ClusterFault)}
    assert kinds > RUNS_ON | LASTING
    assert not RUNS_ON & LASTING


@given(TAME)
def test_whatever_is_seen_every_second_is_in_one_span(events: list[Event]):
    lineage = trace(events)
    for task in lineage.tasks:
        ledger = keep(lineage, task)
        assert ledger is not None
        assert ledger.adds_up


def test_a_job_that_backs_off_before_it_makes_another_pod_has_not_yet_asked_for_a_node():
    run = trained(ClusterRun())
    run.request("1-kill", "kill").pod(exit_code=137, reason="Error").pod(phase="Failed", exit_code=137).exit(signal=9, cause="fault")
    wait(run.observe("1-kill").heal("1-kill").submit(failed=1), 10)
    run.number = 1
    wait(run.pod("pod-1", node="", phase="Pending"), 1)
    run.pod("pod-1", phase="Pending").attempt(1).boot().start(0).step(1).step(2).step(3).done().exit(0)
    (recovery,) = kept(run).recoveries
    parts = {name: round(recovery.parts[name], 6) for name in ("detect", "requeue", "provision", "start")}
    assert parts == {"detect": 0.3, "requeue": 10.4, "provision": 1.1, "start": 0.3}
