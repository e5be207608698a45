"""The undo of each fault: written and made durable before the fault acts, finished by ``harness clean`` when we were killed in between.

A process id alone is not a process: it may belong to another one by the time the undo runs. So each is kept with its start, which must
not be a time of day: that changes for every process when somebody sets the clock, and a living run would pass for a dead one.
"""

import os
import signal
import sys
from collections.abc import Sequence
from enum import Enum, auto
from pathlib import Path

import msgspec
import psutil

from harness.errors import StoreError
from harness.history import read_regular
from harness.machine import boot_id, machine, pid_namespace
from harness.quantities import is_same_quantity

START_TOLERANCE_S = 0.05
"""psutil derives starts from clock ticks (10 ms), which rounding moves by some more."""


class ProcessId(msgspec.Struct, frozen=True, kw_only=True):
    """A process that cannot be mistaken for another.

    Attributes:
        pid: Its id.
        started_s: Its start, in seconds since the machine was booted; where that is not to be had (not Linux), since 1970.
        boot_id: Which boot that was; empty where the system does not say.
        pid_namespace: In which its id is that; empty where the system, or the version that wrote it, did not say.
        machine: On which machine; likewise, and empty for a process in a container.
    """

    pid: int
    started_s: float
    boot_id: str = ""
    pid_namespace: str = ""
    machine: str = ""


class ContinueProcesses(msgspec.Struct, frozen=True, kw_only=True, tag="continue-processes", tag_field="type"):
    """Undo of a pause: SIGCONT."""

    processes: tuple[ProcessId, ...]


class KillProcesses(msgspec.Struct, frozen=True, kw_only=True, tag="kill-processes", tag_field="type"):
    """Undo of an overlap: the zombie attempt must not outlive the run."""

    processes: tuple[ProcessId, ...]


class NothingToUndo(msgspec.Struct, frozen=True, kw_only=True, tag="nothing", tag_field="type"):
    """The fault leaves nothing behind that outlives the run's own processes and directory; ``why`` says so."""

    why: str


class KeptOriginal(msgspec.Struct, frozen=True, kw_only=True, tag="kept-original", tag_field="type"):
    """Undo of damage to storage: the original is kept at ``copy`` for whoever wants it back; ``path`` is damaged or gone.

    It is not put back by itself: the directory is the run's own, and the job under test has moved on from the damage.
    """

    path: str
    copy: str


class Uncordon(msgspec.Struct, frozen=True, kw_only=True, tag="uncordon", tag_field="type"):
    """A node takes pods again."""

    node: str


class MendNode(msgspec.Struct, frozen=True, kw_only=True, tag="mend-node", tag_field="type"):
    """A node's machine runs, its kubelet too, and its network reaches the control plane; labels and taint of maintenance are gone."""

    node: str


class RestoreQuota(msgspec.Struct, frozen=True, kw_only=True, tag="restore-quota", tag_field="type"):
    """The nominal quota of a flavor is what it was.

    Attributes:
        queue: Of whom.
        flavor: Of what.
        resource: Of that.
        quota: What it was.
        wrote: What the fault has written there: another value is somebody else's since, and is left. Empty in journals of a version that
            did not say: it is restored whatever stands there.
    """

    queue: str
    flavor: str
    resource: str
    quota: str
    wrote: str = ""

    def why_left(self, stands: str) -> str:
        """Why it is not restored where another quota ``stands`` there; empty: it is."""
        if not self.wrote or is_same_quantity(stands, self.wrote) or is_same_quantity(stands, self.quota):
            return ""
        return (
            f"the quota of flavor {self.flavor} in queue {self.queue} is {stands}, and the fault had written {self.wrote}: "
            f"somebody has changed it since, and it is left; before the fault it was {self.quota}"
        )


class DeleteObject(msgspec.Struct, frozen=True, kw_only=True, tag="delete-object", tag_field="type"):
    """An object that a fault made is gone; ``resource`` is the plural in its path, like ``resourcequotas``."""

    api_version: str
    resource: str
    namespace: str
    name: str


class Reactivate(msgspec.Struct, frozen=True, kw_only=True, tag="reactivate", tag_field="type"):
    """A workload is active again, if it is there still."""

    namespace: str
    name: str


class RestoreImage(msgspec.Struct, frozen=True, kw_only=True, tag="restore-image", tag_field="type"):
    """The job's image is known on a node."""

    node: str
    image: str


class AwaitControlPlane(msgspec.Struct, frozen=True, kw_only=True, tag="await-control-plane", tag_field="type"):
    """The API server answers, and the webhooks behind it: what was killed comes back by itself, and nothing can be undone before."""


ClusterAction = Uncordon | MendNode | RestoreQuota | DeleteObject | Reactivate | RestoreImage | AwaitControlPlane


class RestoreCluster(msgspec.Struct, frozen=True, kw_only=True, tag="restore-cluster", tag_field="type"):
    """Undo of a fault in a cluster, done by the target (``harness.targets.perform``): all of ``actions``, each harmless twice.

    Attributes:
        cluster: Its name.
        actions: What is to be done.
        uid: Tells it from a later cluster of the same name, to which nothing was done; empty in journals of a version that did not say.
    """

    cluster: str
    actions: tuple[ClusterAction, ...]
    uid: str = ""


class ResizeNodePool(msgspec.Struct, frozen=True, kw_only=True, tag="resize-node-pool", tag_field="type"):
    """A node pool has the size that it had.

    Attributes:
        name: Its full name.
        node_count: In each of its zones.
        wrote: The size that the fault has given it: with another one but that it is somebody else's since, and is left. None in journals
            of a version that did not say: it is resized whatever it has.
    """

    name: str
    node_count: int
    wrote: int | None = None


class RestoreAutoscaling(msgspec.Struct, frozen=True, kw_only=True, tag="restore-autoscaling", tag_field="type"):
    """The autoscaling of a node pool is what it was; done after ``ResizeNodePool``, or the autoscaler works against that.

    Attributes:
        name: Full name of the pool.
        enabled: Whether it is on.
        min_node_count: Per zone.
        max_node_count: Per zone.
        total_min_node_count: Of all zones.
        total_max_node_count: Of all zones.
        location_policy: ``BALANCED`` or ``ANY``; empty: not said.
        autoprovisioned: Whether the autoscaler may delete the pool when nobody needs it.
        is_off_by_fault: Whether the fault has switched it off: where it is on, it is somebody else's since, and is left. False in journals
            of a version that did not say: it is set whatever it is.
    """

    name: str
    enabled: bool
    min_node_count: int = 0
    max_node_count: int = 0
    total_min_node_count: int = 0
    total_max_node_count: int = 0
    location_policy: str = ""
    autoprovisioned: bool = False
    is_off_by_fault: bool = False


class DeleteNodePool(msgspec.Struct, frozen=True, kw_only=True, tag="delete-node-pool", tag_field="type"):
    """A pool that a fault made to occupy capacity is gone; ``run_id`` must be on it, or it is another's."""

    name: str
    run_id: str


class DeleteInstance(msgspec.Struct, frozen=True, kw_only=True, tag="delete-instance", tag_field="type"):
    """A machine that a fault made to occupy capacity is gone; ``run_id`` must be on it, or it is another's."""

    zone: str
    name: str
    run_id: str


class CancelRunExecution(msgspec.Struct, frozen=True, kw_only=True, tag="cancel-execution", tag_field="type"):
    """An execution runs no more; ``name`` is its full name."""

    name: str


class RestoreInCluster(msgspec.Struct, frozen=True, kw_only=True, tag="restore-in-cluster", tag_field="type"):
    """Something inside a GKE cluster is as it was; ``cluster`` is its full name, and it tells one of that name made later by ``uid``."""

    cluster: str
    uid: str
    action: Uncordon | DeleteObject | RestoreQuota | Reactivate


ProjectAction = ResizeNodePool | RestoreAutoscaling | DeleteNodePool | DeleteInstance | CancelRunExecution | RestoreInCluster


class RestoreProject(msgspec.Struct, frozen=True, kw_only=True, tag="restore-project", tag_field="type"):
    """Undo of a fault on a Google Cloud project, done by the target (``harness.targets.perform``): all of ``actions``, each harmless twice.

    Attributes:
        project: Its ID; nothing outside of it is touched.
        actions: What is to be done, in this order.
        emulator: Of a run on an emulator, its addresses as in ``HARNESS_GCP_EMULATOR``: a real project of that name is another one.
    """

    project: str
    actions: tuple[ProjectAction, ...]
    emulator: str = ""


LocalUndo = ContinueProcesses | KillProcesses | NothingToUndo | KeptOriginal
Undo = LocalUndo | RestoreCluster | RestoreProject


def restored_by(undo: Undo) -> frozenset[str]:
    """What an undo puts back, in words; two that name the same thing would each take the other's work for what was there before."""
    if isinstance(undo, ContinueProcesses):
        return frozenset(f"process {process.pid}" for process in undo.processes)
    if isinstance(undo, RestoreProject):
        return frozenset(map(_restored_of_project, undo.actions))
    return frozenset(filter(None, map(_restored, undo.actions))) if isinstance(undo, RestoreCluster) else frozenset()


def _restored(action: ClusterAction) -> str:
    match action:
        case Uncordon():
            return f"whether node {action.node} is schedulable"
        case MendNode():
            return f"the machine of node {action.node}"
        case RestoreQuota():
            return f"the quota of {action.resource} of flavor {action.flavor} in queue {action.queue}"
        case DeleteObject():
            return f"{action.resource} {action.name}" + (f" in namespace {action.namespace}" if action.namespace else "")
        case Reactivate():
            return f"workload {action.name} in namespace {action.namespace}"
        case RestoreImage():
            return f"image {action.image} on node {action.node}"
        case AwaitControlPlane():
            return ""  # what was killed comes back by itself, as often as it is killed


def _restored_of_project(action: ProjectAction) -> str:
    match action:
        case ResizeNodePool():
            return f"the size of node pool {action.name}"
        case RestoreAutoscaling():
            return f"the autoscaling of node pool {action.name}"
        case DeleteNodePool():
            return f"node pool {action.name}"
        case DeleteInstance():
            return f"instance {action.name} in {action.zone}"
        case CancelRunExecution():
            return f"execution {action.name}"
        case RestoreInCluster():
            return f"{_restored(action.action)} of {action.cluster}"


class UndoEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the journal: an undo that is owed, or (``done``) no longer."""

    injection: str
    undo: Undo | None = None
    done: bool = False


class UndoJournal:
    """``undo.jsonl`` of a run; every line is durable when the method returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def owe(self, injection: str, undo: Undo) -> None:
        """Write down an undo, before the fault acts.

        Raises:
            StoreError: When it could not be made durable; the fault must then not act.
        """
        self._append(UndoEntry(injection=injection, undo=undo))

    def settle(self, injection: str) -> None:
        """Write down that the undo was done."""
        self._append(UndoEntry(injection=injection, done=True))

    def owed(self) -> list[UndoEntry]:
        """What is not settled yet, in the order it was written; a line that is no entry is passed over.

        Such a line was never durable, so its fault never acted; it must not keep the undos beside it from being done.
        """
        try:
            data = read_regular(self.path)
        except FileNotFoundError:
            return []
        entries = [entry for line in data.split(b"\n")[:-1] if (entry := _entry_in(line)) is not None]
        settled = {entry.injection for entry in entries if entry.done}
        return [entry for entry in entries if entry.undo is not None and entry.injection not in settled]

    def _append(self, entry: UndoEntry) -> None:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                _write_line(descriptor, msgspec.json.encode(entry) + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(path=self.path, attempted="write the undo journal", reason=error.strerror or str(error)) from error


def _write_line(descriptor: int, line: bytes) -> None:
    """Write a line whole or not at all: the next one must not stand behind half of it, nor this one behind what a killed writer left."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    written = 0
    try:
        while written < len(line):
            written += os.write(descriptor, line[written:])
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _entry_in(line: bytes) -> UndoEntry | None:
    try:
        return msgspec.json.decode(line, type=UndoEntry)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def identify(pids: Sequence[int]) -> tuple[ProcessId, ...]:
    """Name processes so that they cannot be mistaken; those already gone are left out."""
    found: list[ProcessId] = []
    for pid in pids:
        try:
            found.append(_identify(psutil.Process(pid)))
        except psutil.NoSuchProcess:
            continue
    return tuple(found)


def find(process: ProcessId) -> psutil.Process | None:
    """The process, if it is there still and no zombie."""
    try:
        found = psutil.Process(process.pid)
        now = _identify(found)
        if found.status() == psutil.STATUS_ZOMBIE:
            return None
    except psutil.NoSuchProcess:
        return None
    is_same = now.boot_id == process.boot_id and abs(now.started_s - process.started_s) <= START_TOLERANCE_S
    return found if is_same and _is_same_where_known(now.pid_namespace, process.pid_namespace) else None


class Seen(Enum):
    """What can be said here of a process that was named somewhere."""

    ALIVE = auto()
    DEAD = auto()
    UNKNOWN = auto()
    """It is of another machine, or of another container: nobody here sees whether it lives."""


def see(process: ProcessId) -> Seen:
    """Whether a process lives, as far as that can be known here.

    It is dead where it was of this boot and of our PID namespace and is not there, or of another boot of this very machine. Names of hosts
    prove nothing: two machines may have the same one, and so may two containers of one machine.
    """
    if boot_id() != process.boot_id:
        here = machine()
        return Seen.DEAD if process.boot_id and here and here == process.machine else Seen.UNKNOWN
    if not _is_same_where_known(pid_namespace(), process.pid_namespace):
        return Seen.UNKNOWN
    return Seen.ALIVE if find(process) is not None else Seen.DEAD


def _is_same_where_known(here: str, there: str) -> bool:
    return not here or not there or here == there


def _identify(process: psutil.Process) -> ProcessId:
    started_s = process.create_time()
    if sys.platform.startswith("linux"):
        started_s -= psutil.boot_time()  # psutil has added it: the time of day when the kernel, by the clock of now, was started
    return ProcessId(pid=process.pid, started_s=started_s, boot_id=boot_id(), pid_namespace=pid_namespace(), machine=machine())


def perform(undo: LocalUndo) -> str:
    """Do an undo on this machine and say what was done; doing it twice is harmless.

    One of a cluster or a project takes more than this room knows: ``harness.targets.perform`` does both.
    """
    if isinstance(undo, ContinueProcesses):
        return f"SIGCONT to {_send(undo.processes, signal.SIGCONT)} processes"
    if isinstance(undo, KillProcesses):
        return f"SIGKILL to {_send(undo.processes, signal.SIGKILL)} processes"
    if isinstance(undo, KeptOriginal):
        return f"the original of {undo.path} is kept at {undo.copy}"
    return undo.why


def _send(processes: Sequence[ProcessId], number: signal.Signals) -> int:
    reached = 0
    for process in processes:
        found = find(process)
        if found is None:
            continue
        try:
            found.send_signal(number)
            reached += 1
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # gone, or by now somebody else's
            continue
    return reached
