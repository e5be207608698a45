"""The page over all runs while runs go on: there from the beginning, renewed as they end."""

import contextlib
from pathlib import Path

from harness.clock import Clock
from harness.errors import StoreError
from harness.report import write_index
from harness.store import RunStore

REST_RATIO = 20
"""Times as long as it took it is left alone after it was written: it reads a file of each run, and thousands must not slow down a batch."""


class StandingIndex:
    """Renews the page when runs have ended, not too often."""

    def __init__(self, store: RunStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._is_stale = True
        self._due_s = float("-inf")

    def write(self) -> Path:
        """Write it now and return its path.

        Raises:
            StoreError: When it cannot be written; an older page is intact.
        """
        began_s = self._clock.monotonic_s()
        path = write_index(self._store)
        ended_s = self._clock.monotonic_s()
        self._is_stale, self._due_s = False, ended_s + REST_RATIO * (ended_s - began_s)
        return path

    def finish(self, *, is_trouble_told: bool) -> Path:
        """Write it when all is over, and return its path. A full disk that has ended a run, and was told with it, is not told again.

        Raises:
            StoreError: When it cannot be written, and nothing that went wrong before says why.
        """
        try:
            return self.write()
        except StoreError:
            if not is_trouble_told:
                raise
            return self._store.index_path

    def age(self) -> None:
        """A run has ended: the page does not show it."""
        self._is_stale = True

    def renew(self) -> None:
        """Write it where it is stale, unless that was done just now; one that cannot be written keeps no run from going on."""
        if self._is_stale and self._clock.monotonic_s() >= self._due_s:
            with contextlib.suppress(StoreError):
                self.write()
