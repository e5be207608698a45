"""Pieces of the bundle: each keyed by its inputs, built in a scratch folder, and there whole or not at all."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from harness.errors import BrokenHarnessError
from harness.kind.cache import bundle_dir
from harness.kind.commands import CommandFailedError, run_command

KEY_LENGTH = 12
"""Hexadecimal digits: no two inputs of one machine meet by chance, and the name of an image stays readable."""

INSPECT_S = 30.0

SCRATCH_PREFIX = ".building-"


class CacheError(BrokenHarnessError):
    """The cache cannot be written."""

    def __init__(self, *, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"cannot build {path}: {reason}; check the disk and the permissions, or set HARNESS_CACHE_DIR to another place")


class Piece(Protocol):
    """Something that the cluster is made of.

    Attributes:
        name: Shown, and asked for with ``--only``.
        expected_s: What a cold build takes on two cores, so that a person knows what to wait for.
    """

    @property
    def name(self) -> str:
        """See the class."""

    @property
    def expected_s(self) -> int:
        """See the class."""

    def is_present(self) -> bool:
        """Whether it was built from these inputs."""

    def build(self, log: Path) -> None:
        """Build it; what the builders print goes to ``log``.

        Raises:
            CommandFailedError: When a builder fails.
        """


def key_of(*inputs: str | bytes) -> str:
    """The key of a piece: changes with any input, and with their order."""
    digest = hashlib.sha256()
    for part in inputs:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:KEY_LENGTH]


class DirectoryPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Where a piece that is a directory lies."""

    name: str
    key: str

    @property
    def path(self) -> Path:
        """Exists only when the piece is whole."""
        return bundle_dir() / self.name / self.key

    def fill(self, fill: Callable[[Path], None]) -> None:
        """Let ``fill`` write into a scratch folder, then rename it into place.

        Raises:
            CacheError: When the cache cannot be written.
        """
        scratch = self.path.parent / f"{SCRATCH_PREFIX}{self.key}"
        try:
            remove_tree(scratch)
            scratch.mkdir(parents=True)
            fill(scratch)
            scratch.rename(self.path)
        except OSError as error:
            raise CacheError(path=self.path, reason=error.strerror or str(error)) from error

    def fill_and_discard(self, fill: Callable[[Path], None]) -> None:
        """The same for what ends elsewhere, such as an image: the folder goes when it is done.

        Raises:
            CacheError: When the cache cannot be written.
        """
        self.fill(fill)
        remove_tree(self.path)


def has_image(reference: str) -> bool:
    """Whether Docker has an image of that name."""
    try:
        run_command(["docker", "image", "inspect", "--format", "{{.Id}}", reference], deadline_s=INSPECT_S)
    except CommandFailedError:
        return False
    return True


def remove_tree(path: Path) -> None:
    """Remove a folder of the bundle, its read-only folders too.

    Raises:
        OSError: When it is not inside the bundle, or something is mounted below it: what is removed there would be removed elsewhere.
    """
    folder = path.resolve()
    if bundle_dir().resolve() not in folder.parents:
        raise OSError(f"{path} is not in the bundle {bundle_dir()}; nothing was removed")
    if not folder.exists():
        return
    mounted = [point for point in mount_points() if Path(point).is_relative_to(folder)]
    if mounted:
        raise OSError(f"{mounted[0]} is still mounted; unmount it, then build again")
    for directory, _, _ in os.walk(folder):
        Path(directory).chmod(0o755)  # Go's module folders are read-only
    shutil.rmtree(folder)


def mount_points() -> list[str]:
    """Where something is mounted on this machine."""
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
