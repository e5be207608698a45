"""From a fault as data to a fault that acts."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.capabilities import ManagedCluster, Processes, Target
from harness.faults.active import ActiveFault, Scene
from harness.faults.control_plane import ActiveForgetting, ActiveRestart
from harness.faults.damage import (
    ActiveAddition,
    ActiveDamage,
    add_empty_step,
    add_stale_temporary,
    delete_path,
    flip_byte,
    tear_rename,
    truncate_file,
)
from harness.faults.maintenance import ActiveCancel, ActiveCpuMaintenance, ActiveGpuMaintenance, ActiveOverlap, ActiveTimeout
from harness.faults.managed_nodes import ActivePlatformLoss, ActivePlatformMaintenance
from harness.faults.needs import CPU_MAINTENANCE, missing_capability
from harness.faults.nodes import ActiveBreakage, ActiveCordon, ActiveInterruption, ActiveLoss
from harness.faults.pods import deletion, eviction
from harness.faults.process import ActiveEndGrace, ActiveKill, ActivePause, ActiveTerminate
from harness.faults.queue import ActiveEviction, ActivePreemption, ActiveRevocation
from harness.faults.quota import ActiveLimit, ActiveOccupation, ActiveQuota
from harness.faults.ray import ActiveDrain, ActiveRayKill
from harness.faults.storage import ActiveStorageRule
from harness.scenario import Fault, Injection, Layout, kind_of
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
    NodeFault,
    OccupyCapacity,
    PreemptWorkload,
    QueueFault,
    RestartComponent,
    RevokeCapacity,
)
from harness.scenario.faults import (
    AddEmptyStep,
    AddStaleTemporary,
    CancelExecution,
    DamageFault,
    DeletePath,
    DrainRayNode,
    EndGrace,
    ExpireTimeout,
    FailWrites,
    FlipByte,
    Kill,
    KillRayProcess,
    Maintenance,
    MaintenanceFault,
    OverlapAttempts,
    Pause,
    ProcessFault,
    SlowWrites,
    TearRename,
    Terminate,
    TruncateFile,
)


def activate(
    injection: Injection, name: str, *, target: Target, victim: Processes, layout: Layout, kept_dir: Path, now_s: Callable[[], float]
) -> ActiveFault:
    """Make an injection ready to act in one attempt; nothing has happened yet.

    Args:
        injection: The fault as data.
        name: What it is called in the history.
        target: On which it acts.
        victim: Whom it hits, in this attempt.
        layout: How the job lays out its checkpoints.
        kept_dir: For originals of what it damages.
        now_s: Seconds since the run was opened.

    Raises:
        InjectionError: When the target lacks what the fault needs, or no execution runs.
    """
    kind = kind_of(injection.fault)
    scene = Scene(injection=name, fault=kind, target=target, victim=victim, layout=layout, kept_dir=kept_dir, now_s=now_s)
    missing = missing_capability(injection.fault, target)
    if missing:
        raise scene.failed(f"target {target.name!r} does not offer {missing}")
    try:
        return _active(injection.fault, scene)
    except LookupError as error:
        raise scene.failed(error) from error


def _active(fault: Fault, scene: Scene) -> ActiveFault:
    match fault:
        case Terminate() | EndGrace() | Kill() | Pause():
            return _active_process(fault, scene)
        case Maintenance() | ExpireTimeout() | CancelExecution() | OverlapAttempts():
            return _active_maintenance(fault, scene)
        case KillRayProcess():
            return ActiveRayKill(scene, fault)
        case DrainRayNode():
            return ActiveDrain(scene, fault)
        case FailWrites() | SlowWrites():
            return ActiveStorageRule(scene, fault)
        case FlipByte() | TruncateFile() | DeletePath() | TearRename() | AddEmptyStep() | AddStaleTemporary():
            return _active_damage(fault, scene)
        case _:
            return _active_cluster_fault(fault, scene)


def _active_process(fault: ProcessFault, scene: Scene) -> ActiveFault:
    match fault:
        case Terminate():
            return ActiveTerminate(scene)
        case EndGrace():
            return ActiveEndGrace(scene)
        case Kill():
            return ActiveKill(scene)
        case Pause():
            return ActivePause(scene, fault)


def _active_maintenance(fault: MaintenanceFault, scene: Scene) -> ActiveFault:
    match fault:
        case Maintenance():
            return ActiveCpuMaintenance(scene) if fault.profile == CPU_MAINTENANCE else ActiveGpuMaintenance(scene)
        case ExpireTimeout():
            return ActiveTimeout(scene)
        case CancelExecution():
            return ActiveCancel(scene)
        case OverlapAttempts():
            return ActiveOverlap(scene, fault)


def _active_damage(fault: DamageFault, scene: Scene) -> ActiveFault:
    match fault:
        case FlipByte():
            return ActiveDamage(scene, fault.path_class, partial(flip_byte, fault=fault))
        case TruncateFile():
            return ActiveDamage(scene, fault.path_class, partial(truncate_file, fault=fault))
        case DeletePath():
            return ActiveDamage(scene, fault.path_class, partial(delete_path, fault=fault))
        case TearRename():
            return ActiveDamage(scene, "step", partial(tear_rename, scene, fault=fault))
        case AddEmptyStep():
            return ActiveAddition(scene, partial(add_empty_step, fault=fault))
        case AddStaleTemporary():
            return ActiveAddition(scene, add_stale_temporary)


def _active_cluster_fault(fault: ClusterFault, scene: Scene) -> ActiveFault:
    match fault:
        case DeletePods():
            return deletion(scene, fault)
        case EvictPods():
            return eviction(scene, fault)
        case RestartComponent():
            return ActiveRestart(scene, fault)
        case ForgetImage():
            return ActiveForgetting(scene, fault)
        case CordonNode() | DrainNode() | BreakNode() | LoseNode() | LosePool() | InterruptNode():
            return _active_node_fault(fault, scene)
        case _:
            return _active_queue_fault(fault, scene)


def _active_node_fault(fault: NodeFault, scene: Scene) -> ActiveFault:
    match fault:
        case CordonNode() | DrainNode():
            return ActiveCordon(scene, fault)
        case BreakNode():
            return ActiveBreakage(scene, fault)
        case LoseNode() | LosePool():
            is_managed = isinstance(scene.target, ManagedCluster)
            return ActivePlatformLoss(scene, fault) if is_managed else ActiveLoss(scene, fault)
        case InterruptNode():
            return ActivePlatformMaintenance(scene, fault) if isinstance(scene.target, ManagedCluster) else ActiveInterruption(scene, fault)


def _active_queue_fault(fault: QueueFault, scene: Scene) -> ActiveFault:
    match fault:
        case EvictWorkload():
            return ActiveEviction(scene, fault)
        case PreemptWorkload():
            return ActivePreemption(scene, fault)
        case LowerQuota():
            return ActiveQuota(scene, fault)
        case LimitNamespace():
            return ActiveLimit(scene, fault)
        case OccupyCapacity():
            return ActiveOccupation(scene, fault)
        case RevokeCapacity():
            return ActiveRevocation(scene, fault)
