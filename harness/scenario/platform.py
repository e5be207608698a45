"""What the platform grants a job, and the grace profiles as data with their sources.

A value marked ``verified=False`` is assumed from a neighbouring document; reports print it with that mark.
"""

import msgspec

from harness.scenario.rules import positive, require

MEMORY_MIB_MIN = 6
"""Docker refuses to start a container with less. Source: https://docs.docker.com/engine/containers/resource_constraints/"""

MEMORY_NEED = f"0 (no limit), or at least {MEMORY_MIB_MIN}"


class Platform(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the job is run: the words and defaults of Cloud Run jobs.

    Attributes:
        tasks: Tasks of the execution, each with its ``CLOUD_RUN_TASK_INDEX``.
        parallelism: Tasks that run at once; 0 means all.
        max_retries: Attempts after the first, a task. Default 3.
        timeout_s: Per attempt, seconds. Default 600.
        grace_s: Seconds between SIGTERM and SIGKILL. Default 10.
        memory_mib: Memory of a task; what goes over it is killed. 0: no limit; other values need a target that can limit memory.

    Source: https://docs.cloud.google.com/run/docs/reference/rest/v2/projects.locations.jobs#TaskTemplate (maxRetries, timeout);
        https://docs.cloud.google.com/run/docs/container-contract#instance-shutdown (10 seconds, documented for instances).
    """

    tasks: int = 1
    parallelism: int = 0
    max_retries: int = 3
    timeout_s: float = 600.0
    grace_s: float = 10.0
    memory_mib: int = 0

    def __post_init__(self) -> None:
        require(1 <= self.tasks <= 10_000, "tasks", self.tasks, "1 to 10000")
        require(0 <= self.parallelism <= self.tasks, "parallelism", self.parallelism, "0 (all) to the number of tasks")
        require(0 <= self.max_retries <= 10, "max_retries", self.max_retries, "0 to 10, as Cloud Run allows")
        positive("timeout_s", self.timeout_s)
        positive("grace_s", self.grace_s)
        require(self.memory_mib == 0 or self.memory_mib >= MEMORY_MIB_MIN, "memory_mib", self.memory_mib, MEMORY_NEED)


class GraceProfile(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind of interruption treats a process, and where that is written."""

    name: str
    signals: str
    budget_s: float
    retry: str
    source: str
    verified: bool


GRACE_PROFILES: tuple[GraceProfile, ...] = (
    GraceProfile(
        name="cloudrun-job-gpu-maintenance",
        signals="SIGTERM, then SIGKILL",
        budget_s=10.0,
        retry="attempt + 1, up to max_retries; a non-zero exit uses one",
        source="the guide for long GPU jobs on Cloud Run (about 10 s); GPU tasks are terminated, not migrated: "
        "https://docs.cloud.google.com/run/docs/configuring/task-timeout",
        verified=True,
    ),
    GraceProfile(
        name="cloudrun-job-cpu-maintenance",
        signals="SIGTSTP, then SIGCONT after the migration",
        budget_s=10.0,
        retry="same attempt, the process lives",
        source="https://docs.cloud.google.com/run/docs/configuring/task-timeout",
        verified=True,
    ),
    GraceProfile(
        name="cloudrun-job-timeout",
        signals="SIGTERM, then SIGKILL",
        budget_s=10.0,
        retry="attempt + 1, up to max_retries",
        source="https://docs.cloud.google.com/run/docs/container-contract#instance-shutdown (written for instances, not for jobs)",
        verified=False,
    ),
    GraceProfile(
        name="cloudrun-job-cancel",
        signals="SIGTERM, then SIGKILL",
        budget_s=10.0,
        retry="none",
        source="https://docs.cloud.google.com/run/docs/container-contract#instance-shutdown (written for instances, not for jobs)",
        verified=False,
    ),
    GraceProfile(
        name="ray-drain",
        signals="none; ray.train.get_preemption_info()",
        budget_s=120.0,
        retry="worker group restart within the same attempt",
        source="ray 2.60.0, ray/train/v2 (default drain deadline), run locally",
        verified=True,
    ),
    GraceProfile(
        name="gke-maintenance-graceful",
        signals="a label; later label and taint, then SIGTERM; SIGKILL after the pod's own grace",
        budget_s=30.0,
        retry="new pod; the pod's terminationGracePeriodSeconds is granted, an upper bound of 60 minutes is quoted for accelerators",
        source="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu",
        verified=False,
    ),
    GraceProfile(
        name="gke-spot",
        signals="SIGTERM, then SIGKILL",
        budget_s=15.0,
        retry="new pod; at most 15 s, whatever terminationGracePeriodSeconds says",
        source="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms",
        verified=True,
    ),
    GraceProfile(
        name="gke-host-error",
        signals="none",
        budget_s=0.0,
        retry="new pod",
        source="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu",
        verified=True,
    ),
)
"""Those of Cloud Run jobs and of Ray are played by the local target, those of GKE by the cluster."""


def grace_profile(name: str) -> GraceProfile:
    """The profile of that name.

    Raises:
        KeyError: When there is none; names in scenarios are validated before.
    """
    return next(profile for profile in GRACE_PROFILES if profile.name == name)
