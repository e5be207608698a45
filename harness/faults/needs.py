"""What a target must offer for a fault."""

from typing import NamedTuple

from harness.capabilities import (
    Cancellable,
    CheckpointStorage,
    ControlPlaneHost,
    FaultChecking,
    GraceExpirable,
    NodeHost,
    OperationStops,
    Overlappable,
    PodHost,
    QueueHost,
    RayHost,
    Signalable,
    StorageInterposable,
    Target,
    Terminable,
    Timeoutable,
)
from harness.scenario import Fault, Trigger, kind_of
from harness.scenario.cluster_faults import (
    BreakNode,
    ClusterFault,
    CordonNode,
    DeletePods,
    DrainNode,
    EvictPods,
    EvictWorkload,
    ForgetImage,
    InterruptNode,
    LimitNamespace,
    LoseNode,
    LosePool,
    LowerQuota,
    OccupyCapacity,
    PreemptWorkload,
    RestartComponent,
    RevokeCapacity,
)
from harness.scenario.faults import (
    AddEmptyStep,
    AddStaleTemporary,
    CancelExecution,
    DeletePath,
    DrainRayNode,
    EndGrace,
    ExpireTimeout,
    FailWrites,
    FlipByte,
    Kill,
    KillRayProcess,
    Maintenance,
    OverlapAttempts,
    Pause,
    SlowWrites,
    TearRename,
    Terminate,
    TruncateFile,
)
from harness.scenario.triggers import AtOperation

CPU_MAINTENANCE = "cloudrun-job-cpu-maintenance"


class _Need(NamedTuple):
    """A capability, and what it is called where a scenario is refused for want of it."""

    capability: type
    words: str


_SIGNALS = _Need(Signalable, "signals to processes")
_NOTICE = _Need(Terminable, "termination with notice")
_GRACE = _Need(GraceExpirable, "a grace that can be made to be over")
_TIMEOUT = _Need(Timeoutable, "a timeout that can be made to expire")
_CANCEL = _Need(Cancellable, "an execution that can be cancelled")
_OVERLAP = _Need(Overlappable, "attempts that can overlap")
_DIRECTORY = _Need(CheckpointStorage, "a checkpoint directory that can be changed from outside")
_OPERATIONS = _Need(StorageInterposable, "storage operations that can be made to fail or be slow")
_STOPS = _Need(OperationStops, "operations that can be stopped at")
_RAY = _Need(RayHost, "a Ray cluster of the job's own")
_PODS = _Need(PodHost, "pods that can be deleted")
_NODES = _Need(NodeHost, "nodes that can be taken away")
_QUEUE = _Need(QueueHost, "a queue with quota")
_CONTROL_PLANE = _Need(ControlPlaneHost, "a control plane of its own")


def missing_capability(fault: Fault, target: Target) -> str:
    """What the target lacks for a fault, in words; empty when it lacks nothing."""
    problem = target.fault_problem(fault) if isinstance(target, FaultChecking) else ""
    if problem:
        return f"{kind_of(fault)}, which it cannot cause: {problem}"
    for need in _needs_of(fault):
        if not isinstance(target, need.capability):
            return f"{need.words} ({need.capability.__name__})"
    if isinstance(fault, FailWrites | SlowWrites) and isinstance(target, StorageInterposable):
        problem = target.storage_problem()
        return f"{_OPERATIONS.words} ({problem})" if problem else ""
    return ""


def missing_for_trigger(at: Trigger, target: Target) -> str:
    """What the target lacks to act at a moment, in words; empty when it lacks nothing."""
    if not isinstance(at, AtOperation):
        return ""
    if not isinstance(target, OperationStops):
        return f"{_STOPS.words} ({OperationStops.__name__})"
    problem = target.stops_problem()
    return f"{_STOPS.words} ({problem})" if problem else ""


def _needs_of(fault: Fault) -> tuple[_Need, ...]:
    match fault:
        case Kill() | Pause():
            return (_SIGNALS,)
        case Terminate():
            return (_NOTICE,)
        case EndGrace():
            return (_GRACE, _NOTICE)
        case Maintenance():
            return (_SIGNALS,) if fault.profile == CPU_MAINTENANCE else (_NOTICE,)
        case ExpireTimeout():
            return (_TIMEOUT,)
        case CancelExecution():
            return (_CANCEL,)
        case OverlapAttempts():
            return (_OVERLAP, _SIGNALS)
        case KillRayProcess():
            return (_SIGNALS,) if fault.component == "worker" else (_RAY, _SIGNALS)
        case DrainRayNode():
            return (_RAY,)
        case FlipByte() | TruncateFile() | DeletePath() | TearRename() | AddEmptyStep() | AddStaleTemporary():
            return (_DIRECTORY,)
        case FailWrites() | SlowWrites():
            return (_OPERATIONS,)
        case _:
            return _cluster_needs_of(fault)


def _cluster_needs_of(fault: ClusterFault) -> tuple[_Need, ...]:
    match fault:
        case DeletePods() | EvictPods():
            return (_PODS,)
        case DrainNode() | InterruptNode():
            return (_NODES, _PODS)
        case CordonNode() | BreakNode() | LoseNode() | LosePool():
            return (_NODES,)
        case EvictWorkload() | PreemptWorkload() | LowerQuota() | LimitNamespace() | OccupyCapacity() | RevokeCapacity():
            return (_QUEUE,)
        case RestartComponent():
            return (_CONTROL_PLANE,)
        case ForgetImage():
            return (_CONTROL_PLANE, _NODES)
