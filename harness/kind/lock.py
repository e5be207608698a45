"""A file that one process at a time holds: the system frees it when its holder ends, however that is."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from harness.clock import Clock
from harness.errors import StoreError, TargetUnavailableError
from harness.kind.cache import CACHE_ADVICE, next_path, turn_path

POLL_S = 0.5

TURN_S_MAX = 1800.0
"""Longer than any scenario of a cluster takes; who holds the cluster for longer hangs."""


class _Holder(NamedTuple):
    """Who had it last, and when it took it: by the content of the file, and the time of that."""

    process: str = ""
    since_ns: int = 0

    def __str__(self) -> str:
        return f"process {self.process or 'of unknown id'}"

    @property
    def since(self) -> str:
        """Whoever waits compares it with a clock on a wall: no day, for nobody may have it for that long."""
        return f"{datetime.fromtimestamp(self.since_ns / 1e9, UTC):%H:%M:%S} UTC"


class Lock:
    """Alone, for a while; who waits comes before who gives it back and wants it again.

    Whoever wants it first takes a second file, the place of the one who is next, and keeps that until it has the lock. Neither is ever
    removed: whoever waits would then hold another file than whoever comes after.

    Args:
        path: Of the file; it holds the process id of whoever has it.
        target: That cannot be used for want of it.
        others: What its holder does, for the messages: ``runs on the cluster``.
        patience_s: After this its holder hangs.
    """

    def __init__(self, path: Path, *, target: str, others: str, patience_s: float) -> None:
        self._path, self._target, self._others, self._patience_s = path, target, others, patience_s
        self._descriptor = -1

    @property
    def is_held(self) -> bool:
        """Whether it is ours."""
        return self._descriptor >= 0

    def take(self, clock: Clock, say: Callable[[str], None] = lambda _: None) -> float:
        """Wait for it, and say for whom, again when another has it; returns for how many seconds.

        Raises:
            StoreError: When the lock file cannot be made.
            TargetUnavailableError: When one other process has it for longer than it may.
        """
        if self.is_held:
            return 0.0
        began_s = clock.monotonic_s()
        wait = self._wait(clock, say)
        place = _hold(next_path(self._path), wait)
        try:
            self._descriptor = _hold(self._path, wait)
        finally:
            os.close(place)
        with suppress(OSError):  # a full disk keeps nobody from it, least of all from cleaning; its holder is unknown then
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())
        return clock.monotonic_s() - began_s

    def free(self) -> None:
        """Let the next one have it; harmless twice."""
        if self.is_held:
            os.close(self._descriptor)
            self._descriptor = -1

    def is_taken(self) -> bool:
        """Whether somebody has it just now, without waiting; one that nobody can tell of is taken for free."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _is_locked(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def held(self, clock: Clock, say: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Hold it for a while; one that is held already stays held."""
        was_held = self.is_held
        self.take(clock, say)
        try:
            yield
        finally:
            if not was_held:
                self.free()

    def _wait(self, clock: Clock, say: Callable[[str], None]) -> Iterator[None]:
        """Let time pass, step by step, while others have it; for each holder as long as one may have it."""
        holder, since_s = self._holder(), clock.monotonic_s()
        say(self._waiting_for(holder))
        while clock.monotonic_s() <= since_s + self._patience_s:
            clock.sleep(POLL_S)
            yield
            if holder != (holder := self._holder()):
                since_s = clock.monotonic_s()
                say(self._waiting_for(holder))
        reason = f"{holder} {self._others} and has not ended within {self._patience_s:g} s"
        raise TargetUnavailableError(target=self._target, reason=reason, advice="end it, then run `harness clean`")

    def _waiting_for(self, holder: _Holder) -> str:
        since = f", since {holder.since}" if holder.since_ns else ""
        return f"{holder} {self._others}{since}; waiting for it to end"

    def _holder(self) -> _Holder:
        """The process that had it last; nobody when none ever had."""
        try:
            return _Holder(self._path.read_text().strip(), self._path.stat().st_mtime_ns)
        except FileNotFoundError:
            return _Holder()


def _hold(path: Path, wait: Iterator[None]) -> int:
    """Open a file and lock it; what waits is asked for another moment each time that somebody else has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(path=path, attempted="lock", reason=error.strerror or str(error), advice=CACHE_ADVICE) from error
    try:
        while not _is_locked(descriptor):
            next(wait)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Turn(Lock):
    """The right to use the cluster alone: queues and node pools are shared by all namespaces, and nobody removes it under a run."""

    def __init__(self, cluster_name: str) -> None:
        super().__init__(turn_path(cluster_name), target="kind", others=f"works on the cluster {cluster_name}", patience_s=TURN_S_MAX)
