"""Content on its way into a bucket: a file beside the objects, complete before it takes its name."""

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.emulator.storage.checksums import RunningChecksums
from harness.emulator.storage.generations import Checksums


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A complete file and its checksums."""

    path: Path
    checksums: Checksums


class Staging:
    """The directory of such files. What a killed emulator left there is removed at the next start."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        for path in directory.iterdir():
            path.unlink()

    def new_path(self) -> Path:
        """A path that nobody else has."""
        return self._directory / secrets.token_hex(12)

    @contextlib.contextmanager
    def stage(self, pieces: Iterable[bytes]) -> Iterator[Staged]:
        """Write content; the file is gone afterwards unless it was renamed."""
        path = self.new_path()
        running = RunningChecksums()
        try:
            with path.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
                    running.update(piece)
            yield Staged(path=path, checksums=running.result())
        finally:
            path.unlink(missing_ok=True)

    def tick_ns(self) -> int:
        """The time of the file system: what a file that is changed now gets."""
        path = self._directory.with_name(f"{self._directory.name}.tick")
        with path.open("wb") as file:
            os.utime(file.fileno())
            return os.fstat(file.fileno()).st_ctime_ns
