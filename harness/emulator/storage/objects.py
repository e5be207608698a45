"""The objects of one bucket: files that jobs and callers write, with generations, checksums and metadata.

Below a mount (see ``BucketObjects.mount``) directories are as gcsfuse makes them in a flat bucket: one that a job makes is an empty object
``a/``; one that only leads to objects of callers is none, and goes with the last of them. Elsewhere, and in buckets with a hierarchical
namespace, directories are folders: they are not listed and stay; an object ``a/`` exists when a caller has uploaded it.

What a process rewrites is a new object: generation up, metageneration 1, default metadata. A rename of a directory by a process is atomic
here, which it is in no flat bucket.

Source: https://github.com/GoogleCloudPlatform/gcsfuse/blob/master/docs/semantics.md (directories)
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.emulator.storage.checksums import read_pieces
from harness.emulator.storage.generations import Checksums, identify, identify_folder
from harness.emulator.storage.listing import ListQuery, Page, list_page
from harness.emulator.storage.object_files import ObjectFiles
from harness.emulator.storage.object_names import split_name, unstorable
from harness.emulator.storage.old_versions import OldVersions
from harness.emulator.storage.preconditions import NOTHING_DEMANDED, Preconditions
from harness.emulator.storage.records import ObjectMetadata, ObjectRecord, Pending, Records
from harness.emulator.storage.refusals import no_such_object, not_covered
from harness.emulator.storage.staging import Staged, Staging
from harness.emulator.storage.versions import Versions, to_text


class BucketObjects:
    """All objects of a bucket.

    Attributes:
        bucket: Its name.
        directory: Where they are files.
        staging: Where content waits until it is complete.
    """

    def __init__(self, bucket: str, root: Path, clock: Clock, is_versioned: Callable[[], bool] = lambda: False) -> None:
        self.bucket = bucket
        self.directory = root / "objects"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.staging = Staging(root / "staging")
        self._files = ObjectFiles(self.directory)
        self._records = Records(root / "records")
        self._versions = Versions(self._files, self._records, self.staging, self._supersede)
        self._old = OldVersions(root / "old")
        self._is_versioned = is_versioned
        self._clock = clock
        self._lock = threading.RLock()

    def mount(self, below: str) -> None:
        """From now on directories below a prefix are as in a mount of a flat bucket; ``""``: below the bucket itself."""
        with self._lock:
            self._versions.mount(below)

    def find(self, name: str) -> ObjectRecord | None:
        """The live version of an object as its file is now."""
        with self._lock:
            found = self._versions.look(name)
            if found is None:
                return None
            record, descriptor = found
            os.close(descriptor)
            return record

    def get(self, name: str, generation: int | None = None) -> ObjectRecord:
        """The live version.

        Args:
            name: Of the object.
            generation: That the caller wants; None: whatever is live.

        Raises:
            ApiError: 404.
        """
        record = self.find(name)
        if record is not None and generation in (None, record.generation):
            return record
        with self._lock:
            old = self._old.get(name, generation)
        if old is None:
            raise no_such_object(self.bucket, name)
        return old.record

    @contextmanager
    def read(
        self, name: str, generation: int | None = None, conditions: Preconditions = NOTHING_DEMANDED
    ) -> Iterator[tuple[ObjectRecord, int]]:
        """The live version with its open file, whose content stays the same when the object is replaced meanwhile.

        Raises:
            ApiError: 404, 412 or 304.
        """
        with self._lock:
            record, descriptor = self._open(name, generation)
        try:
            if record is None or generation not in (None, record.generation):
                raise no_such_object(self.bucket, name)
            conditions.check(record, is_read=True)
            yield record, descriptor
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _open(self, name: str, generation: int | None) -> tuple[ObjectRecord | None, int]:
        found = self._versions.look(name)
        if found is not None and generation in (None, found[0].generation):
            return found
        if found is not None:
            os.close(found[1])
        old = self._old.get(name, generation)
        if old is None:
            return None, -1
        if not old.has_content:
            raise not_covered("the content of a version that a process has written over, or removed")
        return old.record, self._old.open(old)

    def page(self, query: ListQuery) -> tuple[list[ObjectRecord], Page]:
        """A page of what is there now; what vanishes while we look is left out."""
        with self._lock:
            names = {name for name in self._files.names(query.prefix) if not name.endswith("/") or self.find(name)}
            page = list_page(names, query)
            return [record for name in page.names if (record := self.find(name))], page

    def page_of_versions(self, query: ListQuery) -> tuple[list[tuple[ObjectRecord, str]], Page]:
        """A page of all versions, the oldest of a name first, each with when it ceased to be live; empty: it is.

        What the page may have at most counts names here, and versions at Google's.
        """
        with self._lock:
            there = {*self._files.names(query.prefix), *self._records.names()}  # a process may have removed what is known
            live = {name: record for name in there if (record := self.find(name)) is not None}
            page = list_page({*live, *self._old.names()}, query)
            found: list[tuple[ObjectRecord, str]] = []
            for name in page.names:
                found += [(old.record, old.deleted) for old in self._old.of(name)]
                if name in live:
                    found.append((live[name], ""))
            return found, page

    def is_empty(self) -> bool:
        """Whether there is no object, and no version of one."""
        return not self.page(ListQuery(results_max=1))[1].names and not self._old.names()

    def write(
        self,
        name: str,
        staged: Staged,
        metadata: ObjectMetadata,
        *,
        conditions: Preconditions = NOTHING_DEMANDED,
        component_count: int = 0,
    ) -> ObjectRecord:
        """Let staged content be the object.

        Raises:
            ApiError: 400 for a name that cannot be kept, 412.
        """
        _check_folder(name, staged.checksums)
        with self._lock:
            current = self.find(name)
            conditions.check(current)
            if current is not None:
                self._supersede(current, is_there=True)
            status = staged.path.stat()
            pending = Pending(
                inode=status.st_ino,
                size=status.st_size,
                modified_ns=status.st_mtime_ns,
                metadata=metadata,
                component_count=component_count,
            )
            self._records.put(msgspec.structs.replace(self._records.get(name), pending=pending))
            made: list[str] = []
            placed = self._files.place(staged.path, name, made)
            for folder in made:
                self._versions.hide(folder)
            identity = identify(placed) if split_name(name)[-1] else identify_folder(placed)
            now = self._clock.utc()
            return self._versions.begin(name, identity, staged.checksums, now, pending=pending)

    def patch(
        self,
        name: str,
        change: Callable[[ObjectMetadata], ObjectMetadata],
        *,
        generation: int | None = None,
        conditions: Preconditions = NOTHING_DEMANDED,
    ) -> ObjectRecord:
        """Change the metadata; the content and its generation stay.

        Raises:
            ApiError: 404, 412, or what ``change`` raises.
        """
        with self._lock:
            record = self.get(name, generation)
            if record.generation != self._records.get(name).generation:
                raise not_covered("metadata of a version that is not live")
            conditions.check(record)
            changed = msgspec.structs.replace(
                record, metadata=change(record.metadata), metageneration=record.metageneration + 1, updated=to_text(self._clock.utc())
            )
            self._records.put(changed)
            return changed

    def delete(self, name: str, *, generation: int | None = None, conditions: Preconditions = NOTHING_DEMANDED) -> None:
        """Remove an object: where versions are kept it ceases to be live; one that is named by its generation is gone for good.

        Raises:
            ApiError: 404, 412.
        """
        with self._lock:
            record = self.get(name, generation)
            conditions.check(record)
            old = self._old.get(name, generation)
            if old is not None:
                self._old.drop(old)
                return
            if generation is None:
                self._supersede(record, is_there=True)
            self._files.remove(name)
            self._records.put(msgspec.structs.replace(record, identity=None, pending=None))
            if record.is_folder:
                self._versions.hide(name)
            self._prune(name)

    def _supersede(self, record: ObjectRecord, *, is_there: bool = False) -> None:
        """Keep a version that ceases to be live, in a bucket that does so; ``is_there``: its file still is."""
        if record.is_folder or not self._is_versioned():
            return
        descriptor = self._files.open(record.name) if is_there else None
        now = to_text(self._clock.utc())
        if descriptor is None:
            self._old.keep(record, now, None)
            return
        try:
            self._old.keep(record, now, read_pieces(descriptor))
        finally:
            os.close(descriptor)

    def _prune(self, name: str) -> None:
        """Remove the directories above an object that has gone which led to nothing else."""
        folder = name.rstrip("/").rpartition("/")[0] + "/"
        while folder != "/" and self._versions.is_below_mount(folder) and self.find(folder) is None:
            self._files.remove(folder)
            folder = folder.rstrip("/").rpartition("/")[0] + "/"


def _check_folder(name: str, checksums: Checksums) -> None:
    if name.endswith("/") and checksums.size:
        raise unstorable(name, "it has content, and a name that ends in '/' is a directory")
