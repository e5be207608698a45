"""Pods of a job in a queue die, are deleted and evicted, of one host or of two that train together; and parts of the control plane do."""

from harness.scenario import Cluster, Injection, Platform, Victim
from harness.scenario.cluster_faults import DeletePods, EvictPods, ForgetImage, LimitNamespace, RestartComponent
from harness.scenario.expectations import (
    BitExactResume,
    ChargesRetries,
    Completes,
    ExactlyOnceData,
    ExitCodes,
    GraceConduct,
    IntactCheckpoints,
    LeavesNothing,
    NoHang,
    RanksAgree,
    RecoversWithin,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import Kill, Pause, Terminate
from harness.scenario.triggers import AtMarker, AtStep, AtSubmission
from scenarios.cluster_jobs import EVERY, LONG_POD, ON_DEMAND, goes_on, on_cluster, runs_through
from scenarios.jobs import JAX_HOSTS

EXACTLY = (BitExactResume(), ExactlyOnceData())
QUIET_S = 60.0
"""JAX is imported and compiled in silence, and hosts wait for one another's pods."""

TOGETHER = (RanksAgree(), NoHang(quiet_s=QUIET_S))

ONE_HOST = (
    on_cluster(
        "a-job-in-the-queue-runs-on-demand-and-leaves-nothing-behind",
        "guide B: the job takes plan A while there is quota; what it held is free when it is over",
        expects=(*runs_through(ON_DEMAND), ExitCodes(), SavesAtCadence(every=EVERY)),
    ),
    on_cluster(
        "a-killed-container-costs-one-of-the-jobs-retries-and-its-next-pod-resumes",
        "Kubernetes: a container that ends by a signal fails its pod, and the Job makes another one, charged to backoffLimit",
        Injection(fault=Kill(), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=1), *EXACTLY, RecoversWithin(total_s=60.0)),
    ),
    on_cluster(
        "a-pod-killed-during-a-save-leaves-the-checkpoint-before-it",
        "case 14 on storage that pods mount: the next pod sees what the last one had renamed, and nothing half written",
        Injection(fault=Kill(), at=AtMarker(event="save.begin", nth=3)),
        expects=goes_on(ON_DEMAND, attempts_max=2, failed_max=1),
        tags=("case-14",),
    ),
    on_cluster(
        "sigterm-to-a-container-saves-and-the-next-pod-loses-no-step",
        "Kubernetes: a container gets SIGTERM and its grace; as the first process of its pod it must have a handler, or the signal is lost",
        Injection(fault=Terminate(), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=1, after_sigterm_max=0), ExitCodes(), GraceConduct(margin_s_min=2.0)),
    ),
    on_cluster(
        "a-deleted-pod-saves-in-its-grace-and-its-replacement-loses-no-step",
        "Kubernetes: a pod that is deleted gets SIGTERM and terminationGracePeriodSeconds",
        Injection(fault=DeletePods(), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=1, after_sigterm_max=0), GraceConduct(margin_s_min=2.0)),
    ),
    on_cluster(
        "a-pod-deleted-without-grace-costs-no-more-than-one-interval",
        "Kubernetes: with a grace of 0 the object is gone before its container: there is no final save",
        Injection(fault=DeletePods(grace_s=0), at=AtStep(step=13)),
        expects=goes_on(ON_DEMAND, attempts_max=2, failed_max=1),
    ),
    on_cluster(
        "an-evicted-pod-saves-in-its-grace-and-its-replacement-loses-no-step",
        "Kubernetes: the Eviction API is how drains and autoscalers take pods away",
        Injection(fault=EvictPods(), at=AtStep(step=13)),
        expects=(*goes_on(ON_DEMAND, attempts_max=2, failed_max=1, after_sigterm_max=0), GraceConduct(margin_s_min=2.0)),
    ),
    on_cluster(
        "a-job-that-ignores-disruptions-is-not-charged-for-an-eviction",
        "Kubernetes: a podFailurePolicy tells what Kubernetes took away from what the job broke",
        Injection(fault=EvictPods(), at=AtStep(step=13)),
        expects=goes_on(ON_DEMAND, attempts_max=2, after_sigterm_max=0),
        cluster=Cluster(manifest="scenarios/manifests/job_ignoring_disruptions.yaml"),
    ),
    on_cluster(
        "without-retries-a-killed-container-fails-the-job-with-its-checkpoint-intact",
        "Kubernetes: backoffLimit 0 makes the first lost pod the end of the Job",
        Injection(fault=Kill(), at=AtStep(step=13)),
        expects=(Completes(), IntactCheckpoints(), WithinRetries(attempts_max=1), ChargesRetries(failed_max=1), LeavesNothing()),
        platform=Platform(max_retries=0),
        within_budget=False,
    ),
)

TWO_HOSTS = (
    on_cluster(
        "the-death-of-one-host-of-two-ends-the-other-and-both-resume-bit-exactly",
        "finding 7: survivors must not wait for a dead rank for ever; the Job makes a new pod for each index",
        Injection(fault=Kill(), at=AtStep(step=13), victim=Victim(rank=1)),
        expects=(*goes_on(ON_DEMAND, attempts_max=1, failed_max=2), *EXACTLY, *TOGETHER),
        workload=JAX_HOSTS,
    ),
    on_cluster(
        "the-deletion-of-the-coordinators-pod-ends-the-other-host-and-both-resume",
        "finding 7: the coordinator is a pod like any other to Kubernetes, and not to the other hosts",
        Injection(fault=DeletePods(grace_s=0), at=AtStep(step=13), victim=Victim(rank="coordinator")),
        expects=(*goes_on(ON_DEMAND, attempts_max=1, failed_max=2), *TOGETHER),
        workload=JAX_HOSTS,
    ),
    on_cluster(
        "the-eviction-of-one-host-of-two-is-one-save-of-one-step-by-both",
        "finding 6: jax.distributed tells all hosts of a signal to one, and they agree on the step to save",
        Injection(fault=EvictPods(), at=AtStep(step=13), victim=Victim(rank=1)),
        expects=(*goes_on(ON_DEMAND, attempts_max=1, failed_max=2), *EXACTLY, *TOGETHER),
        workload=JAX_HOSTS,
    ),
    on_cluster(
        "a-host-that-stands-still-for-two-seconds-delays-the-other-and-ends-nothing",
        "case 34 in small: a container that is frozen and thawed is not dead",
        Injection(fault=Pause(duration_s=2.0), at=AtStep(step=13), victim=Victim(rank=1)),
        expects=(*runs_through(ON_DEMAND), NoHang(quiet_s=QUIET_S)),
        workload=JAX_HOSTS,
        tags=("case-34",),
    ),
)

AROUND = (
    on_cluster(
        "an-image-that-cannot-be-pulled-delays-the-start-and-costs-no-retry",
        "Kubernetes: ErrImagePull and ImagePullBackOff are waits, which no budget of the Job counts",
        Injection(fault=ForgetImage(duration_s=15.0), at=AtSubmission()),
        expects=runs_through(ON_DEMAND),
    ),
    on_cluster(
        "a-namespace-without-quota-for-its-pods-delays-the-start-of-an-admitted-job",
        "a ResourceQuota is not Kueue's: the workload is admitted, and its pods are refused until the quota is lifted",
        Injection(fault=LimitNamespace(chips=0, duration_s=10.0), at=AtSubmission()),
        expects=runs_through(ON_DEMAND),
    ),
    on_cluster(
        "a-restart-of-the-api-server-is-nothing-to-a-running-job",
        "Kubernetes: pods run on while the control plane is away; what ended meanwhile is seen afterwards",
        Injection(fault=RestartComponent(component="api-server"), at=AtStep(step=13)),
        expects=(Completes(), IntactCheckpoints(), WithinRetries(attempts_max=1)),  # what was in the queue meanwhile nobody could see
        workload=LONG_POD,
    ),
    on_cluster(
        "a-restart-of-kueue-evicts-nobody",
        "Kueue keeps its state in the API: a new controller finds what the old one had admitted",
        Injection(fault=RestartComponent(component="kueue"), at=AtStep(step=13)),
        expects=runs_through(ON_DEMAND),
        workload=LONG_POD,
    ),
)

SCENARIOS = (*ONE_HOST, *TWO_HOSTS, *AROUND)
