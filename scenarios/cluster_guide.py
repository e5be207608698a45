"""The GKE guide's own proof, and its job with the checkpoints that the guide leaves out: RayJobs, each of which costs minutes."""

from harness.scenario import Cluster, Expectation, Injection, Platform, Scenario, Victim
from harness.scenario.cluster_faults import DeletePods, EvictWorkload, LosePool, RestartComponent
from harness.scenario.expectations import (
    AdmittedTo,
    Completes,
    ConsumesProvisioning,
    LeavesNothing,
    LogOrder,
    RanksAgree,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from scenarios.cluster_jobs import DWS, ON_DEMAND, goes_on, on_cluster, runs_through
from scenarios.jobs import GUIDE_B, JAX_SLICE

DEADLINE_S = 900.0
"""A RayJob of two hosts takes two minutes here, one of four alone three; a second cluster costs as much again."""

LOST_STEPS_MAX = 2 * JAX_SLICE.save_every
"""A report is committed at the controller's next look: the one before it is what a death may leave."""

ON_A_SLICE = Cluster(submits="ray-job")


def _on_a_slice(name: str, why: str, *injections: Injection, expects: tuple[Expectation, ...], tags: tuple[str, ...] = ()) -> Scenario:
    return on_cluster(
        name,
        why,
        *injections,
        expects=expects,
        workload=JAX_SLICE,
        cluster=ON_A_SLICE,
        deadline_s=DEADLINE_S,
        tags=("slow", "ray", *tags),
    )


def _goes_on(*flavors: str, attempts_max: int, failed_max: int = 0) -> tuple[Expectation, ...]:
    return (*goes_on(*flavors, attempts_max=attempts_max, failed_max=failed_max, lost_steps_max=LOST_STEPS_MAX), RanksAgree())


GUIDE = on_cluster(
    "the-guides-two-rayjobs-run-on-demand-and-on-dws-and-both-complete",
    "guide B's proof: two jobs two seconds apart, job 1 on plan A, job 2 on plan B by itself, both with `Training Complete!`",
    expects=(
        Completes(),
        WithinRetries(attempts_max=1),
        SubmittedOnce(),
        AdmittedTo(flavors=((ON_DEMAND,), (DWS,))),
        ConsumesProvisioning(),
        LogOrder(patterns=(r"Training Complete!", r"Training Complete!")),
        WorkloadEnds(state="finished"),
        LeavesNothing(),
    ),
    workload=GUIDE_B,
    platform=Platform(tasks=2),
    cluster=Cluster(submits="ray-job", manifest="scenarios/manifests/guide_b_rayjob.yaml"),
    deadline_s=DEADLINE_S,
    tags=("slow", "ray", "gke-guide"),
)

SLICES = (
    _on_a_slice(
        "a-rayjob-with-checkpoints-runs-on-a-slice-and-leaves-nothing",
        "finding 12: the guide's job with what it leaves out; a run name, storage that outlives nodes, retries",
        expects=runs_through(ON_DEMAND),
    ),
    _on_a_slice(
        "a-train-worker-that-dies-is-restarted-on-its-slice-within-the-raycluster",
        "finding 2: FailureConfig restarts the worker group from the last committed report, and Kueue hears nothing of it",
        Injection(fault=Kill(), at=AtStep(step=10), victim=Victim(rank=1)),
        expects=_goes_on(ON_DEMAND, attempts_max=1),
    ),
    _on_a_slice(
        "a-host-of-a-slice-that-is-deleted-is-replaced-and-training-resumes",
        "KubeRay: the hosts of a replica are replaced together, and Ray Train waits for them",
        Injection(fault=DeletePods(grace_s=0), at=AtStep(step=10), victim=Victim(rank=1)),
        expects=_goes_on(ON_DEMAND, attempts_max=1),
    ),
    _on_a_slice(
        "a-head-that-is-deleted-costs-a-raycluster-and-the-next-one-finds-the-run",
        "case 41: the driver dies with its head; the retry is a new RayCluster, made when the old one is gone, and must find the run",
        Injection(fault=DeletePods(part="head", grace_s=0), at=AtStep(step=10)),
        expects=_goes_on(ON_DEMAND, attempts_max=2, failed_max=1),
        tags=("case-41",),
    ),
    _on_a_slice(
        "a-submitter-that-is-deleted-comes-back-and-ends-nothing",
        "KubeRay: the submitter only waits; training goes on without it",
        Injection(fault=DeletePods(part="submitter", grace_s=0), at=AtStep(step=10)),
        expects=runs_through(ON_DEMAND),
    ),
    _on_a_slice(
        "a-restart-of-kuberay-is-nothing-to-a-running-rayjob",
        "KubeRay keeps its state in the API",
        Injection(fault=RestartComponent(component="kuberay"), at=AtStep(step=10)),
        expects=runs_through(ON_DEMAND),
    ),
    _on_a_slice(
        "a-rayjob-that-kueue-evicts-goes-on-in-a-new-raycluster-uncharged",
        "case 58; kueue and KubeRay: suspending a RayJob deletes its RayCluster, whose pods get their grace and whose job gets no signal",
        Injection(fault=EvictWorkload(duration_s=5.0), at=AtStep(step=10)),
        expects=_goes_on(ON_DEMAND, ON_DEMAND, attempts_max=2),
        tags=("case-58",),
    ),
    _on_a_slice(
        "a-rayjob-whose-pool-is-lost-waits-for-it-and-resumes-from-its-last-report",
        "finding 8: the guide's queue does not fall back on lost nodes; what it had is found when they return",
        Injection(fault=LosePool(duration_s=60.0), at=AtStep(step=10)),
        expects=_goes_on(ON_DEMAND, attempts_max=1),
    ),
)

SCENARIOS = (GUIDE, *SLICES)
