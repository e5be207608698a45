"""What a run has made on the cluster, written down before it is made: whoever finds the harness dead can take it away again."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import StoreError, TargetUnavailableError
from harness.kind.cache import cluster_dir

TURN_S_MAX = 1800.0
"""Longer than any scenario of a cluster takes; who holds the cluster for longer hangs."""

TURN_POLL_S = 0.5


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """An object beyond the namespace that the run has applied; ``before`` is what it was, as JSON, empty when it was not there."""

    api_version: str
    plural: str
    name: str
    before: str = ""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run on the cluster.

    Attributes:
        run_id: The run.
        namespace: Its own, with all that is in it.
        directory: Its part of the storage that outlives nodes.
        checkpoint_dir: Where its checkpoints belong when it is over; a link to ``directory`` while it lasts. Empty: they lie there already.
        replaced: Cluster-scoped objects.
    """

    run_id: str
    namespace: str
    directory: str
    checkpoint_dir: str = ""
    replaced: tuple[Replaced, ...] = ()


def record_path(cluster_name: str, run_id: str) -> Path:
    """Where the record of a run lies while the run lasts."""
    return cluster_dir(cluster_name) / "runs" / f"{run_id}.json"


def write_record(cluster_name: str, record: RunRecord) -> None:
    """Make a record durable.

    Raises:
        StoreError: When it cannot be; nothing may then be made.
    """
    path = record_path(cluster_name, record.run_id)
    temporary = path.with_suffix(".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StoreError(path=path, attempted="write", reason=error.strerror or str(error)) from error


def read_record(cluster_name: str, run_id: str) -> RunRecord | None:
    """The record of a run; None when it has left nothing, or what lies there is none."""
    try:
        return msgspec.json.decode(record_path(cluster_name, run_id).read_bytes(), type=RunRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def remove_record(cluster_name: str, run_id: str) -> None:
    """The run has left nothing."""
    record_path(cluster_name, run_id).unlink(missing_ok=True)


class Turn:
    """The right to use the cluster alone: queues and node pools are shared by all namespaces. Freed by the system when we die."""

    def __init__(self, cluster_name: str) -> None:
        self._path = cluster_dir(cluster_name) / "turn.lock"
        self._descriptor = -1

    @property
    def is_held(self) -> bool:
        """Whether it is ours."""
        return self._descriptor >= 0

    def take(self, clock: Clock, say: Callable[[str], None] = lambda _: None) -> float:
        """Wait for it, and say so once; returns for how many seconds.

        Raises:
            StoreError: When the lock file cannot be made.
            TargetUnavailableError: When another run holds it for longer than any run may take.
        """
        began_s = clock.monotonic_s()
        if not self.is_held and not self._try():
            say("waiting for another run on the cluster to end")
        while not self.is_held and not self._try():
            if clock.monotonic_s() > began_s + TURN_S_MAX:
                advice = "end that run, or run `harness clean`"
                raise TargetUnavailableError(target="kind", reason=f"another run has held the cluster for {TURN_S_MAX:g} s", advice=advice)
            clock.sleep(TURN_POLL_S)
        return clock.monotonic_s() - began_s

    def free(self) -> None:
        """Let the next run have it; harmless twice."""
        if self.is_held:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextmanager
    def held(self, clock: Clock) -> Iterator[None]:
        """Hold it for a while; one that is held already stays held."""
        was_held = self.is_held
        self.take(clock)
        try:
            yield
        finally:
            if not was_held:
                self.free()

    def _try(self) -> bool:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(path=self._path, attempted="lock", reason=error.strerror or str(error)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True
