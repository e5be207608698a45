"""Verdicts that are remembered: nothing is run twice, in this process or, with a directory, in the next."""

import contextlib
from pathlib import Path

import msgspec

from harness.errors import StoreError
from harness.explore.schedules.cases import Trial
from harness.store import write_whole
from harness.verdict import Outcome


class VerdictMemory:
    """By the key of a case, what came of it.

    An unknown verdict is none: it is remembered in this process alone, until somebody knows better, so that Hypothesis, which calls a test
    that failed once more, is told the same. What has failed once has failed: that it went well another time takes nothing back.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._known: dict[str, Trial] = {}

    def find(self, key: str) -> Trial | None:
        """What is remembered; a note that cannot be read is none."""
        known = self._known.get(key)
        if self._directory is not None and (known is None or known.outcome is Outcome.UNKNOWN):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                self._known[key] = msgspec.json.decode(self._path(key).read_bytes(), type=Trial)
        return self._known.get(key)

    def keep(self, key: str, trial: Trial) -> None:
        """Remember what came of a case.

        Raises:
            StoreError: When it cannot be written; it is remembered in this process all the same.
        """
        known = self.find(key)
        if known is not None and (known.outcome is Outcome.INVALID or trial.outcome is Outcome.UNKNOWN):
            return
        self._known[key] = trial
        if self._directory is None or trial.outcome is Outcome.UNKNOWN:
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(path=self._directory, attempted="create", reason=error.strerror or str(error)) from error
        write_whole(self._path(key), msgspec.json.encode(trial))

    def forget(self, key: str) -> None:
        """What is remembered of a case does not hold any more."""
        self._known.pop(key, None)
        if self._directory is not None:
            with contextlib.suppress(OSError):
                self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        assert self._directory is not None
        return self._directory / f"{key}.json"
