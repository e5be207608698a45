"""Jobs and configurations that are wrong on a cluster, each with the promise that it breaks and the right one beside it.

What is wrong is often not the job but what the cluster was told about it: a label, a toleration, a budget.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from harness.scenario import Cluster, Injection, Platform, Scenario
from harness.scenario.cluster_faults import BreakNode, EvictPods
from harness.scenario.expectations import (
    AdmittedTo,
    ChargesRetries,
    Completes,
    ResumesFromNewestDurable,
    SameRun,
    SingleWriter,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from scenarios import CATALOGUE
from scenarios.cluster_jobs import DWS, EVERY, KEPT_S, ON_DEMAND, POD, TAKEN, on_cluster, paced
from scenarios.jobs import COUNTER, LINEAR

KILLED = Injection(fault=Kill(), at=AtStep(step=13))

WATCHED_S = 45.0
"""A job that will never start is watched for so long: a right one has long ended."""


@dataclass(frozen=True, kw_only=True)
class ClusterTrial:
    """One wrong thing.

    Attributes:
        scenario: What is run.
        promise: The one that must be found broken.
        others: Checkers that may accuse it too: of what follows from the same mistake.
        control: The right counterpart: a scenario of the catalogue that makes the same promise and keeps it.
    """

    scenario: Scenario
    promise: str
    others: tuple[str, ...]
    control: str


def _of_linear(module: str) -> Scenario:
    """A wrong job of ``workloads/broken`` whose pod is killed."""
    job = replace(
        paced(LINEAR, steps=40, step_s=0.1),
        name=module.replace("_", "-"),
        command=("{python}", "-m", f"workloads.broken.{module}"),
        sources=(f"workloads/broken/{module}.py", "workloads/linear", "workloads/protocol.py"),
    )
    return on_cluster(
        f"{job.name}-in-a-pod-that-is-killed",
        "an instrument is worth what it says where the answer is known",
        KILLED,
        expects=(
            Completes(),
            WithinRetries(attempts_max=2),
            ResumesFromNewestDurable(lost_steps_max=EVERY),
            SameRun(),
            SubmittedOnce(),
            AdmittedTo(flavors=((ON_DEMAND,),)),
        ),
        workload=job,
    )


RESUMES = "a-killed-container-costs-one-of-the-jobs-retries-and-its-next-pod-resumes"

CLUSTER_TRIALS = (
    ClusterTrial(
        scenario=_of_linear("names_its_run_by_time"),
        promise="same-run",
        others=("completes", "intact-checkpoints", "resumes-from-newest-durable"),
        control=RESUMES,
    ),
    ClusterTrial(
        scenario=_of_linear("saves_nothing"),
        promise="resumes-from-newest-durable",
        others=("completes",),
        control=RESUMES,
    ),
    ClusterTrial(
        scenario=on_cluster(
            "a-job-that-tolerates-no-queued-nodes-is-admitted-to-dws-and-never-runs",
            "guide B: GKE taints nodes of plan B, and a pod without the toleration binds to none of them",
            TAKEN,
            expects=(Completes(), AdmittedTo(flavors=((DWS,),)), WorkloadEnds(state="finished"), SubmittedOnce()),
            cluster=Cluster(tolerations=("google.com/tpu",)),
            deadline_s=WATCHED_S,
        ),
        promise="workload-ends",
        others=("completes",),
        control="a-job-that-finds-the-on-demand-quota-taken-falls-back-to-dws-by-itself",
    ),
    ClusterTrial(
        scenario=on_cluster(
            "a-job-with-the-label-of-no-queue-waits-for-ever",
            "guide B: the label routes the job to Kueue, which holds it until there is such a queue",
            expects=(Completes(), AdmittedTo(flavors=((ON_DEMAND,),)), WorkloadEnds(state="finished"), SubmittedOnce()),
            cluster=Cluster(queue="users-queue"),
            deadline_s=WATCHED_S,
        ),
        promise="admitted-to",
        others=("completes", "workload-ends"),
        control="a-job-in-the-queue-runs-on-demand-and-leaves-nothing-behind",
    ),
    ClusterTrial(
        scenario=on_cluster(
            "a-job-without-retries-is-over-with-its-first-lost-pod",
            "Kubernetes: backoffLimit 0",
            KILLED,
            expects=(Completes(), WithinRetries(attempts_max=2), SubmittedOnce(), AdmittedTo(flavors=((ON_DEMAND,),))),
            platform=Platform(max_retries=0),
        ),
        promise="completes",
        others=(),
        control=RESUMES,
    ),
    ClusterTrial(
        scenario=on_cluster(
            "a-job-without-a-fence-writes-beside-its-replacement-from-a-node-that-is-cut-off",
            "case 42: the next pod starts while the old one lives on, and both keep one file",
            Injection(fault=BreakNode(how="partition", duration_s=KEPT_S), at=AtStep(step=40)),
            expects=(SingleWriter(), SubmittedOnce(), AdmittedTo(flavors=((ON_DEMAND,),))),
            workload=paced(COUNTER, steps=600, step_s=0.25),
            cluster=Cluster(manifest="scenarios/manifests/job_with_two_writers.yaml"),
            deadline_s=150.0,
        ),
        promise="single-writer",
        others=(),
        control="a-pod-on-a-node-that-is-cut-off-never-writes-beside-its-replacement",
    ),
    ClusterTrial(
        scenario=on_cluster(
            "a-job-that-counts-disruptions-as-failures-is-charged-for-an-eviction",
            "Kubernetes: without a podFailurePolicy that ignores DisruptionTarget a drain uses up backoffLimit",
            Injection(fault=EvictPods(), at=AtStep(step=13)),
            expects=(Completes(), ChargesRetries(), SubmittedOnce(), AdmittedTo(flavors=((ON_DEMAND,),))),
            workload=POD,
        ),
        promise="charges-retries",
        others=(),
        control="a-job-that-ignores-disruptions-is-not-charged-for-an-eviction",
    ),
)

UNTRIED = {
    "submitted-once": "who submits a job again is a person or a controller above it, and none is part of these runs",
    "consumes-provisioning": "Kueue writes both annotations itself; a pod without them comes from elsewhere",
    "leaves-nothing": "Kueue and the Job controller clean up by themselves; a RayJob that keeps its cluster costs minutes",
    "recovers-within": "how long a recovery takes is measured in every run, and what is too long is a number that a user chooses",
}
"""Promises whose checkers are held to made-up histories alone (``tests/unit/checkers``), and why."""


def control_of(trial: ClusterTrial) -> Scenario:
    """The right counterpart."""
    return CATALOGUE[trial.control]
