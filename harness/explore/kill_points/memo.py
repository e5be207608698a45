"""What was tried in a session of tests, on disk: several processes look there first, so a state is tried once however many leave it."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StoreError
from harness.explore.executors.wire import decode, encode
from harness.explore.trials_file import Trial
from harness.store import write_whole

LOCK_NAME = "turns.lock"

_OFFSET_DIGITS = 15
"""Of a state's name, in hexadecimal: as many as an offset in a file can be."""


class Memo:
    """Trials by the name of the state, in a directory that is made when it is not there.

    Raises:
        StoreError: When something cannot be written or read.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(path=directory, attempted="make", reason=error.strerror or str(error)) from error

    def find(self, state: str) -> Trial | None:
        """The trial of a state; None: there was none."""
        path = self._directory / f"{state}.json"
        try:
            return decode(path.read_bytes(), Trial)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(path=path, attempted="read", reason=str(error)) from error

    def keep(self, trial: Trial) -> None:
        """Keep a trial, whole or not at all."""
        write_whole(self._directory / f"{trial.task.state}.json", encode(trial))

    def states(self) -> list[str]:
        """The names of all states that were tried, sorted."""
        return sorted(path.stem for path in self._directory.glob("[!.]*.json"))

    @contextlib.contextmanager
    def turn(self, state: str) -> Iterator[None]:
        """Hold the right to try a state, against every other process; freed by the system when we die. One turn at a time in a process."""
        path = self._directory / LOCK_NAME
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(path=path, attempted="open", reason=error.strerror or str(error)) from error
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, int(state[:_OFFSET_DIGITS], 16))  # one byte a state: no file for each
            yield
        finally:
            os.close(descriptor)
