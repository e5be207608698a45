"""One task as a cluster has it: a submitted object, the attempts at it, and their pods. Data and rules, nothing that waits.

A Job of one host: each pod that runs is an attempt. A Job of several hosts: an attempt is one admission, from unsuspended to suspended or
to the end; pods that replace pods within it are lives of the same attempt. A RayJob: an attempt is one RayCluster.
"""

from dataclasses import dataclass, field
from typing import Literal

from harness.history import Cause
from harness.history.cluster import PodRole
from harness.targets.kubernetes.api import Object, labels_of, name_of, uid_of
from harness.targets.kubernetes.ends import SIGKILL, SIGTERM, End
from harness.targets.kubernetes.inventory import rank_of, role_of
from harness.targets.kubernetes.reading import has_started, job_status

Kind = Literal["pod", "admission", "ray-cluster"]
"""What an attempt is."""

OVERDUE_S = 5.0
"""What a kubelet needs to kill a pod whose grace is over; one on a node that is gone never says that it has."""

RAY_CLUSTER_LABEL = "ray.io/cluster"

RAY_ENDINGS = ("Complete", "Failed", "ValidationFailed")
"""``jobDeploymentStatus`` that is for ever. Source: kuberay v1.5.0, ray-operator/apis/ray/v1/rayjob_types.go (IsJobDeploymentTerminal)."""

RAY_PAUSES = ("Suspending", "Suspended", "Retrying", "Waiting")
"""The RayCluster of the attempt goes, or is gone. Retrying: its driver has failed."""


@dataclass(slots=True)
class Pod:
    """A pod of an attempt.

    Attributes:
        is_hurt: An injection took it, or its node, away.
        is_charged: Its failure counts against the retries of its Job: that of a pod which goes because the Job is suspended does not.
    """

    uid: str
    name: str
    role: PodRole
    rank: int
    started_s: float | None = None
    terminating_s: float | None = None
    grace_s: float = 0.0
    is_hurt: bool = False
    is_charged: bool = True
    end: End | None = None

    def is_over(self, now_s: float) -> bool:
        """Whether it has ended, or must have: its grace has passed and nobody can say so."""
        if self.end is not None:
            return True
        return self.terminating_s is not None and now_s > self.terminating_s + self.grace_s + OVERDUE_S

    def end_at(self, t_s: float) -> End:
        """Its end; where nobody has seen it, it was killed with its node."""
        return self.end or End(t_s=t_s, exit_code=None, signal=SIGKILL, cause="fault" if self.is_hurt else "platform")


@dataclass(slots=True)
class Attempt:
    """An attempt.

    Attributes:
        name: Of what it is: a pod, an admission, a RayCluster.
        number: -1 until one of its pods runs.
        is_closed: The cluster has given it up, or it is done.
        has_failed: Its driver has: what is taken down after that died of no fault.
    """

    name: str
    number: int = -1
    pods: dict[str, Pod] = field(default_factory=dict)
    is_closed: bool = False
    has_failed: bool = False
    is_told: bool = False
    is_finished: bool = False

    @property
    def hosts(self) -> list[Pod]:
        """The newest pod that has run of each rank, by rank."""
        newest = {pod.rank: pod for pod in self.pods.values() if pod.role == "host" and pod.started_s is not None}
        return [newest[rank] for rank in sorted(newest)]

    @property
    def began_s(self) -> float:
        """When the first of its pods ran."""
        return min(pod.started_s for pod in self.pods.values() if pod.started_s is not None)


@dataclass(slots=True)
class Task:
    """A task; ``started`` counts its attempts."""

    index: int
    kind: Kind
    attempts: list[Attempt] = field(default_factory=list)
    outcome: Literal["", "succeeded", "failed"] = ""
    detail: str = ""
    is_told: bool = False
    started: int = 0
    retries_max: int = 0
    _admissions: int = 0
    _is_admitted: bool = False
    _was_admitted: bool = False

    @property
    def running(self) -> list[Attempt]:
        """Attempts that were told to have started, and not to have ended."""
        return [attempt for attempt in self.attempts if attempt.is_told and not attempt.is_finished]

    def attempt_for(self, pod: Object) -> Attempt:
        """The attempt that a pod is of."""
        if self.kind == "pod":
            return self._named(uid_of(pod))
        if self.kind == "admission":
            return self._named(self._admission)
        name = labels_of(pod).get(RAY_CLUSTER_LABEL, "")
        return self._named(name or (self.attempts[-1].name if self.attempts else ""))  # a submitter is of the newest cluster

    def take_pod(self, attempt: Attempt, pod: Object, now_s: float) -> Pod:
        """Take in how a pod is now, but for its end."""
        known = attempt.pods.setdefault(uid_of(pod), Pod(uid_of(pod), name_of(pod), role_of(pod), rank_of(pod)))
        if pod["metadata"].get("deletionTimestamp") and known.terminating_s is None:
            known.terminating_s = now_s
        known.grace_s = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0.0)
        if has_started(pod):
            self.begin(attempt, known, now_s)
        if known.end is None:
            known.is_charged = self._is_admitted or not self._was_admitted
        return known

    def begin(self, attempt: Attempt, pod: Pod, now_s: float) -> None:
        """A pod runs; the first one of an attempt begins it."""
        if pod.started_s is None:
            pod.started_s = now_s
        if attempt.number < 0 and pod.role != "submitter":
            attempt.number, self.started = self.started, self.started + 1

    def take_job(self, job: Object) -> None:
        """Take in how a Job stands."""
        status = job_status(job)
        self.retries_max = int(job["spec"].get("backoffLimit", 6))
        is_running = status == "Running"
        if is_running and not self._is_admitted:
            self._admissions += 1
        if status == "Suspended" and self._is_admitted and self.kind == "admission":
            self._named(self._admission).is_closed = True
        self._is_admitted, self._was_admitted = is_running, self._was_admitted or is_running
        if status in ("Complete", "Failed"):
            self.conclude("succeeded" if status == "Complete" else "failed", _failure(job))

    def take_ray_job(self, job: Object) -> None:
        """Take in how a RayJob stands."""
        status = job.get("status") or {}
        deployment = str(status.get("jobDeploymentStatus", ""))
        if deployment in (*RAY_PAUSES, *RAY_ENDINGS) and self.attempts and not self.attempts[-1].is_closed:
            self.attempts[-1].is_closed = True
            self.attempts[-1].has_failed = deployment in ("Retrying", "Failed")
        if deployment in RAY_ENDINGS:
            is_success = deployment == "Complete" and status.get("jobStatus") == "SUCCEEDED"
            told = f"{status.get('reason') or deployment}: {status.get('message') or ''}".removesuffix(": ")
            self.conclude("succeeded" if is_success else "failed", "" if is_success else told)

    def close(self, name: str) -> None:
        """The cluster has given an attempt up."""
        self._named(name).is_closed = True

    def conclude(self, outcome: Literal["succeeded", "failed"], detail: str) -> None:
        """It will not be tried again."""
        if not self.outcome:
            self.outcome, self.detail = outcome, detail

    def is_over(self, attempt: Attempt, now_s: float) -> bool:
        """Whether an attempt has ended: a RayCluster with its hosts, whose notice it is; its head may take longer."""
        if self.kind == "ray-cluster":
            is_gone = attempt.is_closed and all(pod.is_over(now_s) for pod in attempt.pods.values() if pod.role == "host")
            return attempt.has_failed or bool(self.outcome) or is_gone
        is_closed = self.kind == "pod" or attempt.is_closed or bool(self.outcome)
        return is_closed and all(pod.is_over(now_s) for pod in attempt.pods.values())

    def end_of(self, attempt: Attempt, t_s: float) -> End:
        """The end of an attempt: that of its task, or of the first of its hosts that failed."""
        if self.outcome == "succeeded":
            return End(t_s=t_s, exit_code=0, signal=None, cause="job")
        ends = [pod.end_at(t_s) for pod in attempt.hosts if pod.end is not None or not attempt.has_failed]
        if self.kind == "ray-cluster" and not attempt.has_failed:
            return _end_of_cluster(ends, t_s)
        failed = sorted((end for end in ends if not end.is_success), key=lambda end: end.t_s)
        if failed:
            return failed[0]
        if attempt.has_failed:
            return End(t_s=t_s, exit_code=1, signal=None, cause="job")  # the driver's own code is nowhere to be seen
        return ends[0] if ends else End(t_s=t_s, exit_code=None, signal=SIGKILL, cause="platform")

    def is_retried(self, attempt: Attempt, end: End) -> bool:
        """Whether the cluster tries again after an attempt: a Job that has not used up its retries does.

        Source: kubernetes v1.34, pkg/controller/job (a suspended Job's pods are deleted and counted nowhere), seen so here.
        """
        if end.is_success or self.outcome:
            return False
        if self.kind != "pod" or not all(pod.is_charged for pod in attempt.pods.values()):
            return True
        pods = [pod for one in self.attempts for pod in one.pods.values() if pod.is_charged]
        return sum(pod.end is not None and not pod.end.is_success for pod in pods) <= self.retries_max

    @property
    def _admission(self) -> str:
        return f"admission {max(1, self._admissions)}"

    def _named(self, name: str) -> Attempt:
        found = next((attempt for attempt in self.attempts if attempt.name == name), None)
        if found is None:
            found = Attempt(name)
            self.attempts.append(found)
        return found


def _end_of_cluster(ends: list[End], t_s: float) -> End:
    """The end of a RayCluster that was taken down: its hosts' own codes are Ray's, and say nothing of the job."""
    killed = next((end for end in ends if end.signal is not None), None)
    cause: Cause = next((end.cause for end in ends if end.cause != "job"), "platform")
    return killed or End(t_s=t_s, exit_code=None, signal=SIGTERM, cause=cause)


def _failure(job: Object) -> str:
    conditions: list[Object] = (job.get("status") or {}).get("conditions") or []
    failed: Object = next((one for one in conditions if one["type"] == "Failed" and one["status"] == "True"), {})
    return f"{failed.get('reason', '')}: {failed.get('message', '')}".strip(": ")
