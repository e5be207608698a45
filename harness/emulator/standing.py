"""Emulators that stand, written down before anything is made: what one that was killed has left is found by ``harness clean``."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.errors import StoreError, UsageError
from harness.store import Owner
from harness.undo import identify

LOCK_NAME = "emulator.lock"
"""Below the root; held while an emulator keeps its things there, and let go with its process."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """An emulator, and whose it is.

    Attributes:
        owner: The process, and the id that a command beside the emulator carries.
        directory: Where it keeps everything.
        is_temporary: Whether that goes with it.
    """

    owner: Owner
    directory: str
    is_temporary: bool

    @property
    def root(self) -> Path:
        """The directory."""
        return Path(self.directory)

    @property
    def is_dead(self) -> bool:
        """Whether its process is gone, on this machine."""
        return self.owner.is_dead

    def run_ids(self) -> list[str]:
        """What processes that it has started carry: a command beside it, and each execution."""
        executions = self.root / "executions"
        return [self.owner.run_id, *sorted(path.name for path in executions.iterdir())] if executions.is_dir() else [self.owner.run_id]


@contextlib.contextmanager
def standing(root: Path | None) -> Iterator[Standing]:
    """Have a root for one emulator, a temporary one where none is named; who is interrupted on the way leaves it to ``harness clean``.

    Raises:
        UsageError: When the root cannot be had, or another emulator has it, or something in it, or what it is in.
        StoreError: When it cannot be written down, or not removed.
    """
    run_id = uuid.uuid4().hex
    place = root.resolve() if root is not None else Path(tempfile.gettempdir()) / f"harness-emulator-{run_id}"
    if place == Path(place.anchor):
        raise UsageError(f"the emulator does not keep its things in {place}, the root of the file system; name a directory of its own")
    owner = Owner(run_id=run_id, process=identify([os.getpid()])[0], host=os.uname().nodename)
    found = Standing(owner=owner, directory=str(place), is_temporary=root is None)
    _write(found)
    try:
        if root is not None:
            _refuse_nested(found)
        with _held(place, makes_parents=root is not None):
            yield found
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        try:
            forget(found)
        except StoreError as left:
            error.add_note(str(left))
        raise
    forget(found)


def dead_ones() -> list[Standing]:
    """Those that were killed on this machine."""
    return [each for each in _written() if each.is_dead]


def forget(found: Standing) -> None:
    """Remove what goes with an emulator, and then what is written down of it. Its processes are gone.

    Raises:
        StoreError: When it cannot be removed; it stays written down then.
    """
    try:
        if found.is_temporary and found.root.exists():
            shutil.rmtree(found.root)
        _path_of(found).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(path=found.root, attempted="remove", reason=error.strerror or str(error)) from error


def standing_directory() -> Path:
    """Where they are written down, of this user."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "harness" / "emulators"


def _written() -> list[Standing]:
    found: list[Standing] = []
    for path in sorted(standing_directory().glob("*.json")):
        with contextlib.suppress(OSError, msgspec.MsgspecError):  # it goes away just now
            found.append(msgspec.json.decode(path.read_bytes(), type=Standing))
    return found


def _refuse_nested(mine: Standing) -> None:
    """One emulator's buckets are no place for another; it is written down before, so that of two that come at once one sees the other."""
    for other in _written():
        if other.owner.run_id == mine.owner.run_id or other.is_dead or other.owner.is_elsewhere or other.root == mine.root:
            continue
        if mine.root.is_relative_to(other.root) or other.root.is_relative_to(mine.root):
            raise UsageError(f"another emulator has {other.root}, and {mine.root} overlaps with it; end it, or name another directory")


def _path_of(found: Standing) -> Path:
    return standing_directory() / f"{found.owner.run_id}.json"


def _write(found: Standing) -> None:
    path = _path_of(found)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staged = path.with_suffix(".new")
        staged.write_bytes(msgspec.json.encode(found))
        staged.replace(path)
    except OSError as error:
        raise StoreError(path=path, attempted="write down an emulator in", reason=error.strerror or str(error)) from error


@contextlib.contextmanager
def _held(root: Path, *, makes_parents: bool) -> Iterator[None]:
    try:
        root.mkdir(mode=0o700, parents=makes_parents, exist_ok=True)
        descriptor = os.open(root / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(
            f"the emulator cannot keep its things in {root}: {error.strerror}; name a directory that can be written"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UsageError(f"another emulator has {root}; end it, or name another directory") from error
    try:
        yield
    finally:
        os.close(descriptor)
