"""What is known of an object besides its file, in a document each outside of the directory that jobs write to."""

import hashlib
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.emulator.storage.generations import Checksums, FileIdentity
from harness.errors import StoreError


class ObjectMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a caller may set."""

    content_type: str | None = None
    cache_control: str | None = None
    content_disposition: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    custom_time: str | None = None
    storage_class: str | None = None
    metadata: dict[str, str] = {}


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An upload that is about to be renamed to its place: should we be killed in between, its metadata is found again by the file.

    Attributes:
        inode: Of the file, which a rename keeps.
        size: In bytes.
        modified_ns: When it was written, which a rename keeps too.
        metadata: To have once it is there.
        component_count: How many objects it was composed of; 0: it was not.
    """

    inode: int
    size: int
    modified_ns: int
    metadata: ObjectMetadata
    component_count: int = 0

    def is_of(self, status: os.stat_result) -> bool:
        """Whether a file is the one that was uploaded."""
        return (status.st_ino, status.st_size, status.st_mtime_ns) == (self.inode, self.size, self.modified_ns)


class ObjectRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a name, also when no object has it any more: generations never go back.

    Attributes:
        name: Of the object.
        generation: The highest that the name ever had.
        identity: Of the file that has this generation; None: there is none.
        is_settled: Whether a change of the file must show in the identity.
        metageneration: Of this generation.
        crc32c: Of its content.
        md5: Of its content.
        created: RFC 3339.
        updated: RFC 3339.
        metadata: What callers have set.
        component_count: How many objects it was composed of; 0: it was not.
        pending: An upload on its way.
        hidden: The directory of a folder's name that is no object: only the way to objects below it.
    """

    name: str
    generation: int = 0
    identity: FileIdentity | None = None
    is_settled: bool = False
    metageneration: int = 1
    crc32c: str = ""
    md5: str = ""
    created: str = ""
    updated: str = ""
    metadata: ObjectMetadata = ObjectMetadata()
    component_count: int = 0
    pending: Pending | None = None
    hidden: FileIdentity | None = None

    @property
    def size(self) -> int:
        """Of the content, in bytes."""
        return self.identity.size if self.identity else 0

    @property
    def checksums(self) -> Checksums:
        """Of the content."""
        return Checksums(crc32c=self.crc32c, md5=self.md5, size=self.size)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder's placeholder."""
        return self.name.endswith("/")


Shape = TypeVar("Shape", bound=msgspec.Struct)


def read_document(path: Path, kind: type[Shape]) -> Shape:
    """A document that the emulator has written.

    Raises:
        FileNotFoundError: When there is none.
        StoreError: When it is none of ours.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise StoreError(path=path, attempted="read", reason=str(error), advice="remove the bucket's directory to begin anew") from error


class Records:
    """The records of one bucket. The caller serialises."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._by_name: dict[str, ObjectRecord] = {}
        for path in directory.glob("*.json"):
            record = read_document(path, ObjectRecord)
            self._by_name[record.name] = record

    def get(self, name: str) -> ObjectRecord:
        """The record of a name; an empty one when nothing is known."""
        return self._by_name.get(name) or ObjectRecord(name=name)

    def names(self) -> list[str]:
        """Names that a version was live of when they were looked at last."""
        return [name for name, record in self._by_name.items() if record.identity is not None]

    def put(self, record: ObjectRecord) -> None:
        """Keep a record: whole or not at all."""
        path = self._directory / f"{hashlib.sha256(record.name.encode()).hexdigest()}.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.encode(record))
        temporary.replace(path)
        self._by_name[record.name] = record
