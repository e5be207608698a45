"""Nodes are cordoned, drained, cut off, broken and lost, one by one and as a whole pool; GKE takes them for maintenance.

The guide's queue knows quota and no nodes: it admits nobody anew when nodes are gone. ``queues_node_loss.yaml`` does.
"""

import msgspec

from harness.scenario import Cluster, Injection
from harness.scenario.cluster_faults import BreakNode, CordonNode, DrainNode, InterruptNode, LoseNode, LosePool
from harness.scenario.expectations import BitExactResume, ConsumesProvisioning, GraceConduct, RanksAgree, RecoversWithin, SingleWriter
from harness.scenario.triggers import AtStep
from scenarios.cluster_jobs import DWS, KEPT_S, LONG_POD, ON_DEMAND, goes_on, on_cluster, paced, runs_through
from scenarios.jobs import JAX_HOSTS

DEADLINE_S = 300.0
"""The node controller waits 40 s before it gives a silent node up, pod garbage collection as long for a node that is gone."""

CUT_OFF_HOST = msgspec.structs.replace(paced(JAX_HOSTS, steps=400, step_s=0.25), ranks=1)
"""One host that trains for a hundred seconds: long after its node has been given up it would still save."""

CUT_OFF_S = 100.0
"""Long enough for the replacement to train beside the old pod. A Job is not complete before its last pod has ended: the cut must heal."""

WORKING_NODES = (
    on_cluster(
        "a-cordoned-node-keeps-the-pods-that-it-has",
        "Kubernetes: a cordon is about new pods",
        Injection(fault=CordonNode(duration_s=5.0), at=AtStep(step=13)),
        expects=runs_through(ON_DEMAND),
        workload=LONG_POD,
    ),
    on_cluster(
        "a-drained-node-is-left-with-a-save-and-the-job-goes-on-on-another",
        "Kubernetes: a drain cordons and evicts; the replacement must find another node of the flavor",
        Injection(fault=DrainNode(duration_s=30.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=1, after_sigterm_max=0), GraceConduct(margin_s_min=2.0)),
    ),
    on_cluster(
        "maintenance-of-a-node-is-announced-and-costs-no-step",
        "GKE: graceful maintenance is told by labels, and the node is tainted before its pods are evicted",
        Injection(fault=InterruptNode(profile="gke-maintenance-graceful", notice_s=2.0, duration_s=20.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=1, after_sigterm_max=0), GraceConduct(margin_s_min=2.0)),
        deadline_s=DEADLINE_S,
    ),
    on_cluster(
        "a-spot-node-that-is-taken-away-leaves-fifteen-seconds-which-are-enough",
        "GKE: at most 15 s, whatever terminationGracePeriodSeconds says",
        Injection(fault=InterruptNode(profile="gke-spot", notice_s=0.0, duration_s=20.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=1, after_sigterm_max=0), GraceConduct(margin_s_min=2.0)),
        deadline_s=DEADLINE_S,
    ),
)

BROKEN_NODES = (
    on_cluster(
        "a-kubelet-that-stops-for-ten-seconds-costs-the-job-nothing",
        "Kubernetes: containers run on without their kubelet, and the node is given 40 s",
        Injection(fault=BreakNode(how="kubelet", duration_s=10.0), at=AtStep(step=13)),
        expects=runs_through(ON_DEMAND),
        workload=LONG_POD,
    ),
    on_cluster(
        "a-node-cut-off-for-twenty-seconds-costs-the-job-nothing",
        "Kubernetes: a node that answers again within its grace was never lost; the job's storage is not behind the cut",
        Injection(fault=BreakNode(how="partition", duration_s=20.0), at=AtStep(step=13)),
        expects=runs_through(ON_DEMAND),
        workload=LONG_POD,
    ),
    on_cluster(
        "a-node-without-power-for-twenty-seconds-costs-a-pod-and-one-interval",
        "Kubernetes: the node comes back with its object, its containers do not; restartPolicy Never makes that a failed pod",
        Injection(fault=BreakNode(how="power-off", duration_s=20.0), at=AtStep(step=13)),
        expects=goes_on(ON_DEMAND, attempts_max=2, failed_max=1),
        deadline_s=DEADLINE_S,
    ),
    on_cluster(
        "a-pod-on-a-node-that-is-cut-off-never-writes-beside-its-replacement",
        "case 42: podReplacementPolicy lets the next pod start while the old one lives on, cut off; the job must fence it off",
        Injection(fault=BreakNode(how="partition", duration_s=CUT_OFF_S), at=AtStep(step=40)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=2), SingleWriter()),
        workload=CUT_OFF_HOST,
        cluster=Cluster(manifest="scenarios/manifests/job_with_two_writers.yaml"),
        deadline_s=DEADLINE_S,
        tags=("case-42",),
    ),
)

LOST_NODES = (
    on_cluster(
        "a-host-error-costs-a-pod-and-one-interval",
        "GKE: a host error gives no grace, and the node object goes with its machine",
        Injection(fault=InterruptNode(profile="gke-host-error", duration_s=30.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=1), RecoversWithin(total_s=150.0)),
        deadline_s=DEADLINE_S,
    ),
    on_cluster(
        "two-hosts-that-lose-one-of-their-nodes-resume-together-bit-exactly",
        "finding 7: a lost node closes no connection, so the other host must give it up by its heartbeat",
        Injection(fault=LoseNode(duration_s=30.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=1, failed_max=4), BitExactResume(), RanksAgree()),
        workload=JAX_HOSTS,
        deadline_s=DEADLINE_S,
    ),
    on_cluster(
        "the-guides-queue-does-not-fall-back-when-its-pool-is-lost-and-the-job-resumes-when-it-returns",
        "finding 8: Kueue falls back on quota, and lost nodes change no quota: the workload stays admitted to the pool that is gone",
        Injection(fault=LosePool(duration_s=40.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=1, failed_max=4), RanksAgree(), RecoversWithin(total_s=240.0)),
        workload=JAX_HOSTS,
        deadline_s=DEADLINE_S,
    ),
    on_cluster(
        "a-queue-that-knows-its-nodes-falls-back-to-dws-when-its-pool-is-lost",
        "finding 15: with a topology of nodes the loss evicts the workload, and the next flavor with room takes it",
        Injection(fault=LosePool(duration_s=KEPT_S), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, DWS, attempts_max=2), ConsumesProvisioning(), RecoversWithin(total_s=150.0)),
        cluster=Cluster(queues="scenarios/manifests/queues_node_loss.yaml", manifest="scenarios/manifests/job_for_known_nodes.yaml"),
        deadline_s=DEADLINE_S,
    ),
)

SCENARIOS = (*WORKING_NODES, *BROKEN_NODES, *LOST_NODES)
