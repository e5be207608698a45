"""Recoveries beside one another, or alone: those of one job may get in one another's way by a port, a lock file, a common directory.

Locks of the kernel, which go with their process. Whoever wants to be alone waits at the gate too, so that the others cannot keep it waiting
for ever by taking turns. Workers on several machines, or of several nodes on one, have no directory in common and do not know each other.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from harness.clock import Clock
from harness.errors import HarnessError

LOOK_S = 0.02

GATE, ROOM = ".gate", ".room"


class CompanyStaysError(HarnessError):
    """Others did not make room in time, so nothing is known of the state."""

    def __init__(self, *, wait_s_max: float) -> None:
        self.wait_s_max = wait_s_max
        super().__init__(f"other recoveries of the job did not make room within {wait_s_max:g} s; explore with --jobs 1")


class Company:
    """All who try recoveries of a job by contents of one directory.

    Args:
        directory: Of the contents; it gets two files to lock.
        clock: For waiting.
        wait_s_max: How long to wait for the others: each ends by its own time limit.

    Raises:
        OSError: When the directory is not there and cannot be made.
    """

    def __init__(self, directory: Path, clock: Clock, *, wait_s_max: float) -> None:
        self._directory, self._clock, self._wait_s_max = directory, clock, wait_s_max
        directory.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def beside_others(self) -> Iterator[None]:
        """While others may run.

        Raises:
            CompanyStaysError: When one that wants to be alone does not end.
            OSError: When there is nothing to lock.
        """
        with contextlib.ExitStack() as held:
            with self._locked(GATE, fcntl.LOCK_EX):
                held.enter_context(self._locked(ROOM, fcntl.LOCK_SH))
            yield

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else runs, and nobody begins.

        Raises:
            CompanyStaysError: When others do not end.
            OSError: When there is nothing to lock.
        """
        with self._locked(GATE, fcntl.LOCK_EX), self._locked(ROOM, fcntl.LOCK_EX):
            yield

    @contextlib.contextmanager
    def _locked(self, name: str, kind: int) -> Iterator[None]:
        descriptor = os.open(self._directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._lock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int, kind: int) -> None:
        deadline_s = self._clock.monotonic_s() + self._wait_s_max
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._clock.monotonic_s() >= deadline_s:
                    raise CompanyStaysError(wait_s_max=self._wait_s_max) from None
                self._clock.sleep(LOOK_S)
            else:
                return
