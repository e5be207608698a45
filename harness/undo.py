"""The undo of each fault: written and made durable before the fault acts, finished by ``harness clean`` when we were killed in between.

A process id alone is not a process: it may belong to another one by the time the undo runs. So each is kept with its start, which must
not be a time of day: that changes for every process when somebody sets the clock, and a living run would pass for a dead one.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil

from harness.errors import StoreError
from harness.history import read_regular

START_TOLERANCE_S = 0.05
"""psutil derives starts from clock ticks (10 ms), which rounding moves by some more."""

BOOT_ID_PATH = Path("/proc/sys/kernel/random/boot_id")


class ProcessId(msgspec.Struct, frozen=True, kw_only=True):
    """A process that cannot be mistaken for another.

    Attributes:
        pid: Its id.
        started_s: Its start, in seconds since the machine was booted; where that is not to be had (not Linux), since 1970.
        boot_id: Which boot that was; empty where the system does not say.
    """

    pid: int
    started_s: float
    boot_id: str = ""


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
    """The nominal quota of a flavor is what it was."""

    queue: str
    flavor: str
    resource: str
    quota: str


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


LocalUndo = ContinueProcesses | KillProcesses | NothingToUndo | KeptOriginal
Undo = LocalUndo | RestoreCluster


def restored_by(undo: Undo) -> frozenset[str]:
    """What an undo puts back, in words; two that name the same thing would each take the other's work for what was there before."""
    if isinstance(undo, ContinueProcesses):
        return frozenset(f"process {process.pid}" for process in undo.processes)
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
    return found if is_same else None


def _identify(process: psutil.Process) -> ProcessId:
    started_s = process.create_time()
    if sys.platform.startswith("linux"):
        started_s -= psutil.boot_time()  # psutil has added it: the time of day when the kernel, by the clock of now, was started
    try:
        boot_id = BOOT_ID_PATH.read_text().strip()
    except OSError:
        boot_id = ""
    return ProcessId(pid=process.pid, started_s=started_s, boot_id=boot_id)


def perform(undo: LocalUndo) -> str:
    """Do an undo on this machine and say what was done; doing it twice is harmless.

    One of a cluster takes more than this room knows: ``harness.targets.perform`` does both.
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
