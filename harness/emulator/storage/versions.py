"""What an object's file is now, set against what was known of it: the same version, or a new generation."""

import os
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from harness.emulator.storage.checksums import read_pieces, sum_up
from harness.emulator.storage.generations import NS_PER_US, Checksums, FileIdentity, identify, identify_folder, is_settled, next_generation
from harness.emulator.storage.object_files import ObjectFiles
from harness.emulator.storage.records import ObjectMetadata, ObjectRecord, Pending, Records
from harness.emulator.storage.staging import Staging

READS_MAX = 5
"""How often a file is read again because it changed meanwhile; the last reading counts as it is, unsettled."""


class Versions:
    """Versions of the objects of one bucket. The caller serialises; ``superseded`` is told of each that a process has ended."""

    def __init__(
        self, files: ObjectFiles, records: Records, staging: Staging, superseded: Callable[[ObjectRecord], None] = lambda _: None
    ) -> None:
        self._files, self._records, self._staging = files, records, staging
        self._superseded = superseded
        self._mounts: set[str] = set()

    def mount(self, below: str) -> None:
        """Directories below a prefix are as in a mount of a flat bucket."""
        self._mounts.add(below.strip("/") + "/" if below.strip("/") else "")

    def is_below_mount(self, name: str) -> bool:
        """Whether a name lies below a mount, and is not its root."""
        return any(name != mount and name.startswith(mount) for mount in self._mounts)

    def hide(self, folder: str) -> None:
        """A directory is no object, only the way to others."""
        descriptor = self._files.open(folder)
        if descriptor is None:
            return
        identity = identify_folder(os.fstat(descriptor))
        os.close(descriptor)
        self._records.put(msgspec.structs.replace(self._records.get(folder), identity=None, hidden=identity))

    def look(self, name: str) -> tuple[ObjectRecord, int] | None:
        """The live version and its open file, which the caller closes; None when there is no such object."""
        known = self._records.get(name)
        descriptor = self._files.open(name)
        if descriptor is None:
            self._end(known)
            return None
        try:
            record = self._look_at_folder(known, descriptor) if known.is_folder else self._look_at_file(known, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if record is None:
            os.close(descriptor)
            return None
        return record, descriptor

    def begin(
        self,
        name: str,
        identity: FileIdentity,
        checksums: Checksums,
        moment: datetime,
        *,
        pending: Pending | None,
        settled: bool = False,
    ) -> ObjectRecord:
        """Record a new generation."""
        record = ObjectRecord(
            name=name,
            generation=next_generation(self._records.get(name).generation, _microseconds(moment)),
            identity=identity,
            is_settled=settled,
            crc32c=checksums.crc32c,
            md5=checksums.md5,
            created=to_text(moment),
            updated=to_text(moment),
            metadata=pending.metadata if pending else ObjectMetadata(),
            component_count=pending.component_count if pending else 0,
        )
        self._records.put(record)
        return record

    def _end(self, known: ObjectRecord) -> None:
        """A process has removed, or written over, what was live."""
        if known.identity is not None and not known.is_folder:
            self._superseded(known)
            self._records.put(msgspec.structs.replace(self._records.get(known.name), identity=None))

    def _look_at_folder(self, known: ObjectRecord, descriptor: int) -> ObjectRecord | None:
        """A directory is an object when an upload has made it one, or below a mount a process; and it is the same directory still."""
        status = os.fstat(descriptor)
        identity = identify_folder(status)
        if known.identity == identity:
            return known
        if known.hidden == identity or not self.is_below_mount(known.name):
            return None
        made = datetime.fromtimestamp(status.st_ctime_ns / 1e9, tz=UTC)
        return self.begin(known.name, identity, sum_up(()), made, pending=None, settled=True)

    def _look_at_file(self, known: ObjectRecord, descriptor: int) -> ObjectRecord:
        status = os.fstat(descriptor)
        if known.identity == identify(status) and known.is_settled:
            return known
        for _ in range(READS_MAX):
            tick_ns = self._staging.tick_ns()
            before = identify(os.fstat(descriptor))
            checksums = sum_up(read_pieces(descriptor))
            status = os.fstat(descriptor)
            if identify(status) == before and checksums.size == before.size:
                break
        identity = identify(status)
        settled = identity == before and is_settled(identity, tick_ns)
        if known.identity == identity and (known.crc32c, known.md5) == (checksums.crc32c, checksums.md5):
            if settled:
                known = msgspec.structs.replace(known, is_settled=True)
                self._records.put(known)
            return known
        changed = datetime.fromtimestamp(status.st_ctime_ns / 1e9, tz=UTC)
        pending = known.pending if known.pending and known.pending.is_of(status) else None
        self._end(known)
        return self.begin(known.name, identity, checksums, changed, pending=pending, settled=settled)


def to_text(moment: datetime) -> str:
    """RFC 3339 with milliseconds, as Cloud Storage writes it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _microseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1e9) // NS_PER_US
