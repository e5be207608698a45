"""The queue decides: which flavor, in which order, who is evicted and preempted; and what of that is charged to the job."""

from harness.scenario import Cluster, Injection, Platform, PoolAnswer
from harness.scenario.cluster_faults import EvictWorkload, LowerQuota, PreemptWorkload
from harness.scenario.expectations import (
    AdmittedTo,
    Completes,
    ConsumesProvisioning,
    ExactlyOnceData,
    LeavesNothing,
    RanksAgree,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.scenario.triggers import AtStep, AtSubmission
from scenarios.cluster_jobs import DWS, KEPT_S, LONG_POD, ON_DEMAND, TAKEN, goes_on, on_cluster, runs_through
from scenarios.jobs import JAX_HOSTS

FALLBACK_S = 30.0
"""Kueue decides in milliseconds, and the emulated DWS grants at once: nodes that start are what takes time."""

FALLBACK = (
    on_cluster(
        "a-job-that-finds-the-on-demand-quota-taken-falls-back-to-dws-by-itself",
        "guide B: when plan A's quota is used up Kueue assigns the job to plan B; finding 8: quota is what it falls back on",
        TAKEN,
        expects=(
            *(promise for promise in runs_through(DWS) if not isinstance(promise, AdmittedTo)),
            AdmittedTo(flavors=((DWS,),), within_s=FALLBACK_S),
            ConsumesProvisioning(),
        ),
    ),
    on_cluster(
        "two-hosts-that-find-the-on-demand-quota-lowered-start-together-on-dws",
        "guide B: the pods of a slice are one workload, which goes to one flavor as a whole",
        Injection(fault=LowerQuota(to=4, duration_s=KEPT_S), at=AtSubmission()),
        expects=(*runs_through(DWS), ConsumesProvisioning()),
        workload=JAX_HOSTS,
    ),
    on_cluster(
        "of-three-jobs-for-two-places-the-third-goes-to-dws",
        "guide B's proof in small: job 1 takes plan A, the one that finds it full goes to plan B, and all of them end",
        expects=(
            Completes(),
            WithinRetries(attempts_max=1),
            SubmittedOnce(),
            AdmittedTo(flavors=((ON_DEMAND,), (ON_DEMAND,), (DWS,))),
            ConsumesProvisioning(),
            WorkloadEnds(state="finished"),
            LeavesNothing(),
        ),
        workload=LONG_POD,
        platform=Platform(tasks=3),
        cluster=Cluster(chips=8, apart_s=1.0),
    ),
    on_cluster(
        "quota-that-is-lowered-under-a-running-job-evicts-nobody",
        "Kueue: quota is looked at when a workload is admitted, and not again",
        Injection(fault=LowerQuota(to=0, duration_s=KEPT_S), at=AtStep(step=13)),
        expects=runs_through(ON_DEMAND),
        workload=LONG_POD,
    ),
)

NO_FALLBACK = (
    on_cluster(
        "a-stockout-of-on-demand-nodes-does-not-fall-back-and-the-job-starts-when-nodes-come",
        "case 48, finding 8: Kueue admits on quota; that the autoscaler finds no nodes it never hears",
        expects=runs_through(ON_DEMAND),
        cluster=Cluster(on_demand_nodes=0, on_demand=PoolAnswer(answer="stockout", for_s=15.0)),
        tags=("case-48",),
    ),
    on_cluster(
        "an-exceeded-project-quota-for-on-demand-nodes-does-not-fall-back-either",
        "case 48: Google's quota is not Kueue's",
        expects=runs_through(ON_DEMAND),
        cluster=Cluster(on_demand_nodes=0, on_demand=PoolAnswer(answer="quota-exceeded", for_s=15.0)),
        tags=("case-48",),
    ),
    on_cluster(
        "a-pool-that-is-empty-is-scaled-up-for-an-admitted-job",
        "guide B: both pools are autoscaled from 0",
        expects=runs_through(ON_DEMAND),
        cluster=Cluster(on_demand_nodes=0),
    ),
)

EVICTED = (
    on_cluster(
        "a-job-that-kueue-evicts-saves-and-goes-on-when-it-is-active-again-uncharged",
        "case 58: an eviction by the queue is nobody's failure, and must not use up the job's retries",
        Injection(fault=EvictWorkload(duration_s=5.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, ON_DEMAND, attempts_max=2, after_sigterm_max=0), ExactlyOnceData()),
        tags=("case-58",),
    ),
    on_cluster(
        "two-hosts-that-kueue-evicts-save-one-step-and-go-on-together-uncharged",
        "case 58, finding 6: all pods of the workload get SIGTERM at once",
        Injection(fault=EvictWorkload(duration_s=5.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, ON_DEMAND, attempts_max=2, after_sigterm_max=0), RanksAgree()),
        workload=JAX_HOSTS,
        tags=("case-58",),
    ),
    on_cluster(
        "a-job-preempted-by-one-of-higher-priority-goes-on-on-dws-uncharged",
        "case 58: preemption is counted toward no budget; what was on-demand is another's now, and dws has room",
        Injection(fault=LowerQuota(to=4, duration_s=KEPT_S), at=AtSubmission(), name="one-place"),
        Injection(fault=PreemptWorkload(duration_s=60.0), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, DWS, attempts_max=2, after_sigterm_max=0), ConsumesProvisioning()),
        cluster=Cluster(queues="scenarios/manifests/queues_preempting.yaml", priority="low"),
        tags=("case-58",),
    ),
)

SCENARIOS = (*FALLBACK, *NO_FALLBACK, *EVICTED)
