"""A file that one process at a time holds: the system frees it when its holder ends, however that is."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.clock import Clock
from harness.errors import StoreError, TargetUnavailableError
from harness.kind.cache import turn_path

POLL_S = 0.5

TURN_S_MAX = 1800.0
"""Longer than any scenario of a cluster takes; who holds the cluster for longer hangs."""


class Lock:
    """Alone, for a while.

    The file is never removed: whoever waits would then hold another one than whoever comes after.

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
        """Wait for it, and say so once; returns for how many seconds.

        Raises:
            StoreError: When the lock file cannot be made.
            TargetUnavailableError: When another process has it for longer than it may.
        """
        began_s = clock.monotonic_s()
        if not self.is_held and not self._try():
            say(f"another process {self._others}; waiting for it to end")
        while not self.is_held and not self._try():
            if clock.monotonic_s() > began_s + self._patience_s:
                holder = self._path.read_text().strip()
                reason = f"process {holder or 'of unknown id'} {self._others} and has not ended within {self._patience_s:g} s"
                advice = "end it, then run `harness clean`"
                raise TargetUnavailableError(target=self._target, reason=reason, advice=advice)
            clock.sleep(POLL_S)
        return clock.monotonic_s() - began_s

    def free(self) -> None:
        """Let the next one have it; harmless twice."""
        if self.is_held:
            os.close(self._descriptor)
            self._descriptor = -1

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
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return True


class Turn(Lock):
    """The right to use the cluster alone: queues and node pools are shared by all namespaces, and nobody removes it under a run."""

    def __init__(self, cluster_name: str) -> None:
        super().__init__(turn_path(cluster_name), target="kind", others=f"works on the cluster {cluster_name}", patience_s=TURN_S_MAX)
