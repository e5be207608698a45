"""A directory of checkpoints that a kill at any moment cannot hurt.

``step_00000010/`` holds the files of a checkpoint and ``manifest.json`` with their sizes and SHA-256. It is written as
``step_00000010.tmp-<attempt>/``, everything in it is fsynced, and one rename commits it. Only then ``latest``, a hint
for people that recovery does not trust, is replaced; only then are older checkpoints removed.

``owner`` holds the number of the attempt that may write. A newer attempt takes it at its start, and the older one, still
alive in an overlap, stops at its next save. A lock keeps the taking apart from the last look at ``owner`` and the commit
after it; on storage without locks a conditional write would have to do that.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from workloads.protocol import emit

MANIFEST = "manifest.json"
LOCK_S = 5.0  # a commit takes milliseconds: who holds the lock for longer stands still, and the platform may try again later
_committed = re.compile(r"step_(\d{8,})")
_temporary = re.compile(r".+\.tmp-(\d+)")


class DamagedError(ValueError):
    """A checkpoint is incomplete, or its bytes are not those that were written."""


class FencedError(Exception):
    """A newer attempt owns the directory: this one must not write."""


class CheckpointDirectory:
    """The checkpoints of one job, as attempt number ``attempt`` sees them; the newest ``keep`` intact ones are kept."""

    def __init__(self, path: Path, attempt: int, keep: int) -> None:
        self.path = path
        self.attempt = attempt
        self.keep = max(1, keep)  # the newest is never old

    def take_ownership(self) -> None:
        """Fence off every older attempt, then remove what they left half written.

        Raises:
            FencedError: a newer attempt was here first.
            OSError: the directory cannot be written.
        """
        with self.alone():
            self.check_ownership()
        self.remove_stale()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the directory against other attempts; the lock ends with the process that holds it.

        Raises:
            FencedError: another attempt holds it and does not let go.
            OSError: the lock cannot be opened.
        """
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY)
        except FileNotFoundError:
            descriptor = os.open(self.path / "lock", os.O_RDONLY | os.O_CREAT, 0o644)
        end = time.monotonic() + LOCK_S
        try:
            while not self.try_lock(descriptor):
                if time.monotonic() > end:
                    raise FencedError(f"Another attempt has held {self.path} for {LOCK_S:g} s: attempt {self.attempt} stops.")
                time.sleep(0.01)
            yield
        finally:
            os.close(descriptor)

    def try_lock(self, descriptor: int) -> bool:
        """Take the lock if it is free."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def check_ownership(self) -> None:
        """Make sure that no newer attempt owns the directory, and that ``owner`` says so; raises as ``take_ownership``."""
        owner = self.read_owner()
        if owner > self.attempt:
            raise FencedError(f"Attempt {owner} owns {self.path}: attempt {self.attempt} stops without writing.")
        if owner < self.attempt:
            self.replace_file("owner", str(self.attempt).encode())

    def read_owner(self) -> int:
        """The attempt that owns the directory; -1 where nobody does or the file is damaged (the owner writes it again)."""
        try:
            return int((self.path / "owner").read_bytes())
        except (FileNotFoundError, ValueError):
            return -1

    def remove_stale(self) -> None:
        """Remove the temporaries of attempts up to this one; those of a newer attempt are not ours to touch."""
        for path in self.path.iterdir():
            match = _temporary.fullmatch(path.name)
            if match and int(match[1]) <= self.attempt:
                remove(path)

    def steps(self) -> list[int]:
        """Steps with a checkpoint directory, newest first, intact or not."""
        matches = (_committed.fullmatch(path.name) for path in self.path.iterdir())
        return sorted((int(match[1]) for match in matches if match), reverse=True)

    def newest_intact(self) -> int:
        """The newest step whose bytes are all there, 0 where there is none; says which ones it passes over."""
        for step in self.steps():
            try:
                self.read(step)
            except DamagedError as error:
                print(f"Skipping the checkpoint of step {step}: {error}.", flush=True)
            else:
                return step
        return 0

    def is_intact(self, step: int) -> bool:
        """Whether the checkpoint of ``step`` is committed and every byte is the one that was written."""
        try:
            self.read(step)
        except DamagedError:
            return False
        return True

    def read(self, step: int) -> dict[str, bytes]:
        """The files of a checkpoint, checked against its manifest; raises ``DamagedError`` with the file and what is wrong."""
        directory = self.directory_of(step)
        try:
            manifest = json.loads((directory / MANIFEST).read_bytes())
            of_step, entries = manifest["step"], [(name, int(size), str(sha256)) for name, (size, sha256) in manifest["files"].items()]
        except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise DamagedError(f"{MANIFEST} is unreadable ({error})") from error
        if of_step != step:
            raise DamagedError(f"{MANIFEST} is of step {of_step}")
        return {name: read_verified(directory / name, size, sha256) for name, size, sha256 in entries}

    def write(self, step: int, files: dict[str, bytes]) -> None:
        """Write a checkpoint under its temporary name, durable but not committed; removes it again when that fails."""
        directory = self.temporary_of(step)
        remove(directory)
        sizes_and_digests = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()}
        manifest = json.dumps({"step": step, "files": sizes_and_digests}).encode()
        try:
            directory.mkdir()
            for name, data in [*files.items(), (MANIFEST, manifest)]:
                emit("save.write", step=step, file=name)
                self.write_file(directory / name, data)
            self.sync_directory(directory)
        except OSError:
            remove(directory)
            raise

    def commit(self, step: int) -> None:
        """Give a written checkpoint its final name, unless a newer attempt has come; raises as ``take_ownership``."""
        try:
            self.check_ownership()
            if self.directory_of(step).exists():  # damaged, or it would not be saved again
                remove(self.set_aside(step))
            os.rename(self.temporary_of(step), self.directory_of(step))
            self.sync_directory(self.path)
        except (FencedError, OSError):
            remove(self.temporary_of(step))
            raise

    def point_latest(self, step: int) -> None:
        """Name the newest checkpoint for whoever looks into the directory."""
        self.replace_file("latest", self.directory_of(step).name.encode())

    def collect(self, step: int) -> None:
        """Remove intact checkpoints older than the newest ``keep`` up to ``step``; a damaged one stays to be looked at.

        A failure is only reported: ``step`` is durable, and the next collection tries again.
        """
        try:
            intact = [saved for saved in self.steps() if saved <= step and self.is_intact(saved)]
            for saved in intact[self.keep :]:
                remove(self.set_aside(saved))
        except OSError as error:
            print(f"Cannot remove old checkpoints: {error}.", flush=True)

    def set_aside(self, step: int) -> Path:
        """Rename a checkpoint away in one step, so that a removal cut short does not look like a checkpoint."""
        aside = self.path / f"{self.directory_of(step).name}-old.tmp-{self.attempt}"
        remove(aside)
        os.rename(self.directory_of(step), aside)
        return aside

    def directory_of(self, step: int) -> Path:
        """Where the checkpoint of ``step`` is once it is committed."""
        return self.path / f"step_{step:08d}"

    def temporary_of(self, step: int) -> Path:
        """Where this attempt writes it before."""
        return self.path / f"step_{step:08d}.tmp-{self.attempt}"

    def replace_file(self, name: str, data: bytes) -> None:
        """Replace a small file of the directory so that it is the old or the new one, never less."""
        temporary = self.path / f"{name}.tmp-{self.attempt}"
        self.write_file(temporary, data)
        os.replace(temporary, self.path / name)
        self.sync_directory(self.path)

    def write_file(self, path: Path, data: bytes) -> None:
        """Write a file and wait until the storage has it."""
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def sync_directory(self, path: Path) -> None:
        """Wait until the storage has the names in a directory."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_verified(path: Path, size: int, sha256: str) -> bytes:
    """Read a file; raises ``DamagedError`` when its bytes are not those of the manifest."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path.name} is unreadable ({error})") from error
    if len(data) != size:
        raise DamagedError(f"{path.name} has {len(data)} bytes of {size}")
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DamagedError(f"{path.name} has other bytes than were written")
    return data


def remove(path: Path) -> None:
    """Remove a file or a tree as far as it goes: what stays is a temporary, and the next attempt tries again."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        print(f"Cannot remove {path.name}: {error}.", flush=True)
