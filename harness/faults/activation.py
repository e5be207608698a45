"""From a fault as data to a fault that acts, and what a target must offer for it."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.capabilities import (
    Cancellable,
    CheckpointStorage,
    Overlappable,
    Processes,
    RayHost,
    Signalable,
    StorageInterposable,
    Target,
    Terminable,
    Timeoutable,
)
from harness.faults.active import ActiveFault, Scene
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
from harness.faults.process import ActiveKill, ActivePause, ActiveTerminate
from harness.faults.ray import ActiveDrain, ActiveRayKill
from harness.faults.storage import ActiveStorageRule
from harness.scenario import Fault, Injection, Layout, kind_of
from harness.scenario.faults import (
    AddEmptyStep,
    AddStaleTemporary,
    CancelExecution,
    DamageFault,
    DeletePath,
    DrainRayNode,
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

CPU_MAINTENANCE = "cloudrun-job-cpu-maintenance"


class _Need(NamedTuple):
    """A capability, and what it is called where a scenario is refused for want of it."""

    capability: type
    words: str


_SIGNALS = _Need(Signalable, "signals to processes")
_NOTICE = _Need(Terminable, "termination with notice")
_TIMEOUT = _Need(Timeoutable, "a timeout that can be made to expire")
_CANCEL = _Need(Cancellable, "an execution that can be cancelled")
_OVERLAP = _Need(Overlappable, "attempts that can overlap")
_DIRECTORY = _Need(CheckpointStorage, "a checkpoint directory that can be changed from outside")
_OPERATIONS = _Need(StorageInterposable, "storage operations that can be made to fail or be slow")
_RAY = _Need(RayHost, "a Ray cluster of the job's own")


def missing_capability(fault: Fault, target: Target) -> str:
    """What the target lacks for a fault, in words; empty when it lacks nothing."""
    for need in _needs_of(fault):
        if not isinstance(target, need.capability):
            return f"{need.words} ({need.capability.__name__})"
    if isinstance(fault, FailWrites | SlowWrites) and isinstance(target, StorageInterposable):
        problem = target.storage_problem()
        return f"{_OPERATIONS.words} ({problem})" if problem else ""
    return ""


def activate(injection: Injection, name: str, *, target: Target, victim: Processes, layout: Layout, kept_dir: Path) -> ActiveFault:
    """Make an injection ready to act in one attempt; nothing has happened yet.

    Args:
        injection: The fault as data.
        name: What it is called in the history.
        target: On which it acts.
        victim: Whom it hits, in this attempt.
        layout: How the job lays out its checkpoints.
        kept_dir: For originals of what it damages.

    Raises:
        InjectionError: When the target lacks what the fault needs, or no execution runs.
    """
    scene = Scene(injection=name, fault=kind_of(injection.fault), target=target, victim=victim, layout=layout, kept_dir=kept_dir)
    missing = missing_capability(injection.fault, target)
    if missing:
        raise scene.failed(f"target {target.name!r} does not offer {missing}")
    try:
        return _active(injection.fault, scene)
    except LookupError as error:
        raise scene.failed(error) from error


def _active(fault: Fault, scene: Scene) -> ActiveFault:
    match fault:
        case Terminate() | Kill() | Pause():
            return _active_process(fault, scene)
        case Maintenance() | ExpireTimeout() | CancelExecution() | OverlapAttempts():
            return _active_maintenance(fault, scene)
        case KillRayProcess():
            return ActiveRayKill(scene, fault)
        case DrainRayNode():
            return ActiveDrain(scene, fault)
        case FailWrites() | SlowWrites():
            return ActiveStorageRule(scene, fault)
        case _:
            return _active_damage(fault, scene)


def _active_process(fault: ProcessFault, scene: Scene) -> ActiveFault:
    match fault:
        case Terminate():
            return ActiveTerminate(scene)
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


def _needs_of(fault: Fault) -> tuple[_Need, ...]:
    match fault:
        case Kill() | Pause():
            return (_SIGNALS,)
        case Terminate():
            return (_NOTICE,)
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
