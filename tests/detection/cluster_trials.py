"""Jobs and configurations that are wrong on a cluster, each with the promise that it breaks and the right one beside it.

What is wrong is often not the job but what the cluster was told about it: a label, a toleration, a budget.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from harness.checkers import ALWAYS
from harness.scenario import Cluster, Injection, Phase, Platform, Scenario
from harness.scenario.cluster_faults import BreakNode, EvictPods
from harness.scenario.expectations import (
    AdmittedTo,
    ChargesRetries,
    Completes,
    ConsumesProvisioning,
    LeavesNothing,
    ResumesFromNewestDurable,
    SameRun,
    SingleWriter,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.verdict import Outcome, Verdict
from scenarios import CATALOGUE
from scenarios.cluster_guide import DEADLINE_S as RAY_JOB_S
from scenarios.cluster_jobs import DWS, EVERY, KEPT_S, ON_DEMAND, POD, TAKEN, on_cluster, paced, script
from scenarios.jobs import COUNTER, LINEAR

KILLED = Injection(fault=Kill(), at=AtStep(step=13))

WATCHED_S = 45.0
"""A job that will never start has so long from the start of the execution on: a right one has long ended. Checkers accuse it only when it
was seen to stand still for a while of that (``harness.scenario.expectations.WATCHED_S``)."""


@dataclass(frozen=True, kw_only=True)
class ClusterTrial:
    """One wrong thing.

    Attributes:
        scenario: What is run.
        promise: The one that must be found broken, or unproved.
        others: Checkers that may say so too, of what follows from the same mistake.
        control: The right counterpart: a scenario of the catalogue that makes the same promise and keeps it.
        outcome: What the whole run must come to. Where it is unknown nothing is broken: what was to be proved never happened.
    """

    scenario: Scenario
    promise: str
    others: tuple[str, ...]
    control: str
    outcome: Outcome = Outcome.INVALID


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
    ClusterTrial(
        scenario=on_cluster(
            "a-queue-that-provisions-gpus-starts-a-job-of-chips-on-dws-without-a-request",
            "case 61; Kueue: a workload that asks for none of managedResources needs no request, and its check is passed",
            TAKEN,
            expects=(Completes(), AdmittedTo(flavors=((DWS,),)), ConsumesProvisioning(), WorkloadEnds(state="finished"), SubmittedOnce()),
            cluster=Cluster(queues="scenarios/manifests/queues_provisioning_gpus.yaml"),
            deadline_s=WATCHED_S,
        ),
        promise="consumes-provisioning",
        others=("completes", "workload-ends"),
        control="a-job-that-finds-the-on-demand-quota-taken-falls-back-to-dws-by-itself",
    ),
    ClusterTrial(
        scenario=on_cluster(
            "a-rayjob-that-keeps-its-cluster-for-an-hour-leaves-it-on-the-chips",
            "KubeRay: ttlSecondsAfterFinished is how long a RayCluster outlives its job, whose quota Kueue has freed by then",
            expects=(Completes(), AdmittedTo(flavors=((ON_DEMAND,),)), WorkloadEnds(state="finished"), SubmittedOnce(), LeavesNothing()),
            workload=paced(COUNTER, steps=10, step_s=0.2),
            cluster=Cluster(submits="ray-job", manifest="scenarios/manifests/rayjob_keeping_its_cluster.yaml"),
            deadline_s=RAY_JOB_S,
            tags=("slow", "ray"),
        ),
        promise="leaves-nothing",
        others=(),
        control="a-rayjob-with-checkpoints-runs-on-a-slice-and-leaves-nothing",
    ),
    ClusterTrial(
        scenario=on_cluster(
            "a-request-that-nobody-makes-is-never-left-unanswered",
            "no evidence, no verdict: the job finds on-demand free, so what DWS was to refuse is never asked for",
            expects=(Completes(), AdmittedTo(flavors=((ON_DEMAND,),)), WorkloadEnds(state="finished"), SubmittedOnce()),
            cluster=Cluster(provisioning=(script(Phase(state="never")),)),
        ),
        promise="landed",
        others=(),
        control="a-request-that-is-never-answered-leaves-the-job-pending",
        outcome=Outcome.UNKNOWN,
    ),
)

UNTRIED = {
    "submitted-once": "who submits a job again is a person or a controller above it, and none is part of these runs",
    "recovers-within": "how long a recovery takes is measured in every run, and what is too long is a number that a user chooses",
}
"""Promises whose checkers are held to made-up histories alone (``tests/unit/checkers``), and why."""


def control_of(trial: ClusterTrial) -> Scenario:
    """The right counterpart."""
    return CATALOGUE[trial.control]


def mistaken(trial: ClusterTrial, verdict: Verdict) -> str:
    """What a verdict on the wrong thing has missed, or says too much; empty when it is as it must be."""
    said = {outcome: {finding.checker for finding in verdict.findings if finding.outcome is outcome} for outcome in Outcome}
    if verdict.outcome is not trial.outcome:
        return f"the verdict is {verdict.outcome}, and must be {trial.outcome}"
    if trial.promise not in said[trial.outcome]:
        return f"{trial.promise} is not {trial.outcome}"
    others = said[trial.outcome] - {trial.promise, *trial.others}
    if others:
        return f"{', '.join(sorted(others))} must not be {trial.outcome}"
    unproved = ALWAYS.keys() - {trial.promise} - said[Outcome.VALID]
    return f"{', '.join(sorted(unproved))} must be valid" if unproved else ""
