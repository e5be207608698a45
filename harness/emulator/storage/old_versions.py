"""Versions of objects that are not live any more, in a bucket that keeps them: their records, and the content of what a caller wrote.

What a process has written over, or removed, is listed, and its content is not there: the file system had it, and does not any more.

Source: https://docs.cloud.google.com/storage/docs/object-versioning
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from harness.emulator.storage.records import ObjectRecord, read_document


class OldVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One.

    Attributes:
        record: As it was when it was live.
        deleted: When it ceased to be; RFC 3339.
        has_content: Whether its content was kept.
    """

    record: ObjectRecord
    deleted: str
    has_content: bool


class OldVersions:
    """Of one bucket. The caller serialises."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._by_name: dict[str, dict[int, OldVersion]] = {}
        for path in directory.glob("*.json"):
            found = read_document(path, OldVersion)
            self._by_name.setdefault(found.record.name, {})[found.record.generation] = found

    def keep(self, record: ObjectRecord, deleted: str, content: Iterable[bytes] | None) -> None:
        """Keep a version that ceases to be live; ``content`` None: it is gone already."""
        self._directory.mkdir(parents=True, exist_ok=True)
        if content is not None:
            with self._content(record).open("wb") as file:
                file.writelines(content)
        found = OldVersion(record=record, deleted=deleted, has_content=content is not None)
        self._document(record).write_bytes(msgspec.json.encode(found))
        self._by_name.setdefault(record.name, {})[record.generation] = found

    def get(self, name: str, generation: int | None) -> OldVersion | None:
        """One by its generation; None: it is not kept."""
        return self._by_name.get(name, {}).get(generation or 0)

    def of(self, name: str) -> Iterator[OldVersion]:
        """Those of a name, the oldest first."""
        found = self._by_name.get(name, {})
        yield from (found[generation] for generation in sorted(found))

    def names(self) -> set[str]:
        """Names that have any."""
        return {name for name, found in self._by_name.items() if found}

    def open(self, version: OldVersion) -> int:
        """A descriptor of its content, which the caller closes."""
        return os.open(self._content(version.record), os.O_RDONLY | os.O_CLOEXEC)

    def drop(self, version: OldVersion) -> None:
        """Delete it for good."""
        record = version.record
        self._document(record).unlink()
        self._content(record).unlink(missing_ok=True)
        del self._by_name[record.name][record.generation]

    def _document(self, record: ObjectRecord) -> Path:
        return self._directory / f"{_stem(record)}.json"

    def _content(self, record: ObjectRecord) -> Path:
        return self._directory / f"{_stem(record)}.content"


def _stem(record: ObjectRecord) -> str:
    return f"{hashlib.sha256(record.name.encode()).hexdigest()}-{record.generation}"
