"""The states that were tried, on disk: the evidence, read back one at a time, since thousands of recoveries do not belong in memory."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from harness.errors import InvalidDocumentError, StoreError
from harness.explore.executors.wire import decode, encode
from harness.explore.recipe import StateTask, Tried


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One state, and what came of it.

    Attributes:
        task: The state.
        tried: What came of it.
    """

    task: StateTask
    tried: Tried


class TrialsFile:
    """Appends trials, one a line, and reads them back by the name of the state.

    Raises:
        StoreError: When it cannot be written or read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, tuple[int, int]] = {}
        try:
            self._file = path.open("w+b", buffering=0)
        except OSError as error:
            raise StoreError(path=path, attempted="make", reason=error.strerror or str(error)) from error
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def __contains__(self, state: str) -> bool:
        return state in self._places

    def __len__(self) -> int:
        return len(self._places)

    def keep(self, trial: Trial) -> None:
        """Append a trial."""
        line = encode(trial)
        try:
            self._file.seek(self._end)
            written = 0
            while written < len(line):
                written += self._file.write(line[written:]) or 0
        except OSError as error:
            raise StoreError(path=self._path, attempted="write", reason=error.strerror or str(error)) from error
        self._places[trial.task.state] = (self._end, len(line))
        self._end += len(line)

    def read(self, state: str) -> Trial:
        """The trial of a state that was kept."""
        start, size = self._places[state]
        self._file.seek(start)
        return decode(self._file.read(size) or b"", Trial)


def read_trials(path: Path) -> Iterator[Trial]:
    """All trials of a file; a line that was torn at the end is none.

    Raises:
        InvalidDocumentError: When it is not there or damaged.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield _decoded(line, path, number)
    except OSError as error:
        advice = "explore again, with --keep where the job is right"
        raise InvalidDocumentError(document=str(path), field="", problem=error.strerror or str(error), advice=advice) from error


def _decoded(line: bytes, path: Path, number: int) -> Trial:
    try:
        return decode(line, Trial)
    except ValueError as error:
        raise InvalidDocumentError(document=str(path), field=f"line {number}", problem=str(error), advice="explore again") from error
