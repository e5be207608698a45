"""What is seen of a cluster: pods, nodes, Kueue's workloads, requests for capacity, the submitted objects, and what was left of them.

Each event is the state of one object when something in it changed; fields that the object does not have are empty. Times are ours: when we
saw it, which is at most a watch behind the API server. ``attempt`` is the attempt that was current then.
"""

from typing import Literal

import msgspec

from harness.history.events import Event, Located

CONSUME_ANNOTATION = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS_ANNOTATION = "autoscaling.x-k8s.io/provisioning-class-name"
"""On a pod: the request for capacity whose nodes it may use, and the class of that request.

Source: kueue, pkg/controller/admissionchecks/provisioning/constants.go.
"""

PodRole = Literal["host", "head", "submitter"]
"""What a pod is to its job: one of the hosts that train, Ray's head, or the pod that submits to it."""


class PodSeen(Located, frozen=True, kw_only=True, tag="pod"):
    """A pod of the job.

    Attributes:
        role: What it is to the job.
        rank: Which host it is, from 0; -1 for others.
        pool: Node pool of the node it was bound to; empty while it is not bound.
        phase: As the API has it, and ``Deleted`` once the object is gone.
        reason: Why it is not running, or why it ended: ``Unschedulable``, ``ImagePullBackOff``, ``OOMKilled``, ``DeletionByTaintManager`` …
        exit_code: Of its main container; None while it has not ended or nobody knows.
        grace_s: ``deletionGracePeriodSeconds`` while it is terminating: between its SIGTERM and its SIGKILL.
        provisioning_request: From annotation ``autoscaling.x-k8s.io/consume-provisioning-request``.
        provisioning_class: From annotation ``autoscaling.x-k8s.io/provisioning-class-name``.
        selector: Its node selector, as ``key=value``.
    """

    name: str
    uid: str
    role: PodRole = "host"
    rank: int = -1
    node: str = ""
    pool: str = ""
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown", "Deleted"] = "Pending"
    is_ready: bool = False
    is_terminating: bool = False
    reason: str = ""
    exit_code: int | None = None
    grace_s: float | None = None
    provisioning_request: str = ""
    provisioning_class: str = ""
    selector: tuple[str, ...] = ()


class NodeSeen(Event, frozen=True, kw_only=True, tag="node"):
    """A node of a pool.

    Attributes:
        state: The condition ``Ready``: ``True``, ``False``, ``Unknown``; ``Deleted`` once the object is gone.
        is_schedulable: False while cordoned.
        taints: As ``key:effect``.
        labels: Those of maintenance and of provisioning, as ``key=value``.
    """

    name: str
    uid: str
    pool: str
    state: Literal["True", "False", "Unknown", "Deleted"]
    is_schedulable: bool = True
    taints: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


class CheckState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An admission check of a workload."""

    name: str
    state: Literal["Pending", "Ready", "Retry", "Rejected"]
    message: str = ""


class ConditionState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A condition as Kubernetes has it; ``status`` is ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class WorkloadSeen(Located, frozen=True, kw_only=True, tag="workload"):
    """A workload of Kueue.

    Attributes:
        is_active: ``spec.active``: false once it was deactivated, which nothing undoes by itself.
        conditions: All of them; ``QuotaReserved``, ``Admitted``, ``PodsReady``, ``Evicted``, ``Requeued``, ``Finished`` …
        flavors: By pod set: the flavor that ``google.com/tpu`` was assigned, or ``cpu`` where it asks for no chips; empty without quota.
        checks: Its admission checks.
        requeues: ``status.requeueState.count``.
        replaces: Of a slice of an elastic job that has grown: the workload that it is made for, as ``namespace/name``.
    """

    name: str
    uid: str
    queue: str = ""
    is_active: bool = True
    conditions: tuple[ConditionState, ...] = ()
    flavors: dict[str, str] = msgspec.field(default_factory=dict)
    checks: tuple[CheckState, ...] = ()
    requeues: int = 0
    replaces: str = ""

    def condition(self, kind: str) -> ConditionState | None:
        """Its condition of a type; None when it has none."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def holds(self, kind: str) -> bool:
        """Whether the condition of a type is ``True``."""
        condition = self.condition(kind)
        return condition is not None and condition.status == "True"


class ProvisioningSeen(Located, frozen=True, kw_only=True, tag="provisioning-request"):
    """A ProvisioningRequest; ``number`` is the attempt in its name, from 1. ``is_deleted``: the object is gone."""

    name: str
    uid: str
    number: int = 1
    conditions: tuple[ConditionState, ...] = ()
    is_deleted: bool = False


class SubmissionSeen(Located, frozen=True, kw_only=True, tag="submission"):
    """The object that was submitted: a Job or a RayJob.

    Attributes:
        status: Of a Job ``Suspended``, ``Running``, ``Complete``, ``Failed``; of a RayJob its ``jobDeploymentStatus``. ``Deleted``: gone.
        job_status: Of a RayJob, what Ray says of the job.
        reason: Why it failed.
        failed: Failures that were charged to its own retry budget (``status.failed``).
        ray_cluster: Name of the RayCluster that runs it.
    """

    object_kind: Literal["Job", "RayJob"]
    name: str
    uid: str
    status: str = ""
    job_status: str = ""
    reason: str = ""
    failed: int = 0
    ray_cluster: str = ""


class ClusterEventSeen(Event, frozen=True, kw_only=True, tag="cluster-event"):
    """An Event object of Kubernetes, ``object_name`` as ``kind/name``."""

    object_name: str
    reason: str
    message: str = ""
    is_warning: bool = False


class PoolScaled(Event, frozen=True, kw_only=True, tag="pool-scaled"):
    """The emulated autoscaler changed a node pool to ``nodes``, or could not: ``error`` holds Google's code."""

    pool: str
    nodes: int
    why: str
    error: str = ""


class ClusterLeft(Event, frozen=True, kw_only=True, tag="cluster-left"):
    """Seen after the job's end and before anything was cleaned: an object of the job that should be gone, or quota that is still taken.

    ``quota``: a workload that still has it, or, named ``queue/flavor``, chips that a queue counts as reserved and none has. Nodes are
    the autoscaler's to take away, and are not looked at; a pod that keeps one is. ``what`` is ``none`` when the look found nothing: that
    somebody has looked is evidence too.
    """

    what: Literal["none", "ray-cluster", "workload", "pod", "provisioning-request", "quota"]
    name: str = ""
    detail: str = ""
