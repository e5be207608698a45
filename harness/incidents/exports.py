"""An export of Cloud Logging cut into its documents, whatever wrote it and whatever became of it since.

Read are a JSON array (the console's download, ``gcloud logging read --format=json``), an object with ``entries`` (``entries.list`` of the
API), JSON lines, and objects one after the other over several lines; each of them compressed by gzip too. What is no JSON is counted with
its line and not raised: one torn line must not hide an incident.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from harness.errors import InvalidDocumentError
from harness.history import open_regular

EXPORT_BYTES_MAX = 512 << 20
"""Unpacked. A month of a chatty job is a tenth of it, and one file of kilobytes that unpacks to a disk is no export."""

SAMPLE_CHARACTERS_MAX = 120
"""Of what could not be read: enough to find it."""

ENTRY_FIELDS = frozenset({"logName", "log_name", "timestamp", "insertId", "insert_id", "receiveTimestamp"})
"""A line that is an object with one of these is an entry by itself: then the export is JSON lines."""

_LINES_TRIED = 200
"""Lines that are looked at to tell JSON lines from objects that stand on several."""

_READ_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\[^\n])*+"|[{}\n]')
_BETWEEN = re.compile(rb"[\s,\[\]]*")


class Malformed(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an export that is no entry.

    Attributes:
        place: Where: ``line 12``, or ``entry 3`` of an array.
        problem: Why it cannot be read.
        sample: How it begins.
    """

    place: str
    problem: str
    sample: str


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON object of an export, not looked at yet."""

    value: dict[str, object]
    place: str


def read_file(path: Path) -> bytes:
    """The content of an export, unpacked.

    Raises:
        InvalidDocumentError: When it cannot be read, or is too large.
    """
    try:
        with open_regular(path) as file:
            return read_stream(file, str(path))
    except OSError as error:
        advice = "name a file that holds a log export, or - for standard input"
        raise InvalidDocumentError(document=str(path), field="", problem=error.strerror or str(error), advice=advice) from error


def read_stream(stream: BinaryIO, name: str) -> bytes:
    """The same of an open stream.

    Raises:
        InvalidDocumentError: When it is too large.
    """
    head = stream.read(_READ_BYTES)
    packed = head.startswith(_GZIP)
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    pieces: list[bytes] = []
    size = 0
    while head:
        piece = _unpack(unpacker, head) if packed else head
        size += len(piece)
        if size > EXPORT_BYTES_MAX:
            advice = "export one execution, or a shorter time"
            raise InvalidDocumentError(document=name, field="", problem=f"larger than {EXPORT_BYTES_MAX >> 20} MiB", advice=advice)
        pieces.append(piece)
        head = b"" if packed and not piece and unpacker.eof else stream.read(_READ_BYTES)
    return b"".join(pieces)


def _unpack(unpacker: "zlib._Decompress", packed: bytes) -> bytes:
    """What a piece unpacks to, bounded; of one that is damaged nothing, and what came before it stays."""
    try:
        return unpacker.decompress(packed, EXPORT_BYTES_MAX + 1)
    except zlib.error:
        return b""


def documents_of(data: bytes) -> Iterator[Document | Malformed]:
    """The documents of an export in the order they stand in it."""
    data = data.removeprefix(_BYTE_ORDER_MARK)
    whole = _whole_array(data)
    found: Iterator[Document | Malformed]
    if whole is not None:
        found = _decoded((f"entry {number}", bytes(raw)) for number, raw in enumerate(whole, start=1))
    elif _is_lines(data):
        found = _decoded((f"line {number}", line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip())
    else:
        found = _scan(data)
    for each in found:
        yield from _entries_in(each)


def _whole_array(data: bytes) -> list[msgspec.Raw] | None:
    if data.lstrip()[:1] != b"[":
        return None
    try:
        return msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _is_lines(data: bytes) -> bool:
    """Whether a line among the first is an entry by itself; what has no braces at all is told line by line too."""
    if b"{" not in data:
        return True
    lines = [line for line in data.split(b"\n", _LINES_TRIED)[:_LINES_TRIED] if line.strip()]
    documents = (_decode(line, "") for line in lines if line.lstrip().startswith(b"{"))
    return any(isinstance(each, Document) and not ENTRY_FIELDS.isdisjoint(each.value) for each in documents)


def _decoded(parts: Iterable[tuple[str, bytes]]) -> Iterator[Document | Malformed]:
    """Each part; one that equals the part before it is not read again, and its value is the same object."""
    before, found = b"", None
    for place, data in parts:
        if found is None or data != before:
            before, found = data, _decode(data, place)
        yield _at(found, place)


def _at(found: Document | Malformed, place: str) -> Document | Malformed:
    if isinstance(found, Document):
        return Document(found.value, place)
    return msgspec.structs.replace(found, place=place)


def _decode(data: bytes, place: str) -> Document | Malformed:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError) as error:
        return Malformed(place=place, problem=f"no JSON: {error}"[:SAMPLE_CHARACTERS_MAX], sample=_sample(data))
    if isinstance(value, dict):
        return Document(value, place)
    return Malformed(place=place, problem=f"no object, but {type(value).__name__}", sample=_sample(data))


def _entries_in(found: Document | Malformed) -> Iterator[Document | Malformed]:
    """The entries of a page of ``entries.list``; anything else is itself."""
    if isinstance(found, Malformed) or not ENTRY_FIELDS.isdisjoint(found.value) or not isinstance(found.value.get("entries"), list):
        yield found
        return
    entries = found.value["entries"]
    assert isinstance(entries, list)
    for number, value in enumerate(entries, start=1):
        place = f"{found.place}, entry {number}"
        if isinstance(value, dict):
            yield Document(value, place)
        else:
            yield Malformed(place=place, problem=f"no object, but {type(value).__name__}", sample=_sample(repr(value).encode()))


def _scan(data: bytes) -> Iterator[Document | Malformed]:
    """The outermost objects of a text, also of an array that was cut off; what stands between them and is no comma is told."""
    depth, begin, end, line, first_line = 0, 0, 0, 1, 1
    for token in _TOKEN.finditer(data):
        text = token.group()
        if text == b"\n":
            line += 1
        elif text == b"{":
            if depth == 0:
                yield from _junk(data[end : token.start()], line)
                begin, first_line = token.start(), line
            depth += 1
        elif text == b"}" and depth:
            depth -= 1
            if depth == 0:
                end = token.end()
                yield _decode(data[begin:end], f"line {first_line}")
    if depth:
        yield Malformed(place=f"line {first_line}", problem="the export ends in the middle of it", sample=_sample(data[begin:]))
    else:
        yield from _junk(data[end:], line)


def _junk(between: bytes, line: int) -> Iterator[Malformed]:
    if _BETWEEN.fullmatch(between) is None:
        yield Malformed(place=f"line {line}", problem="no object", sample=_sample(between))


def _sample(data: bytes) -> str:
    text = data[: 4 * SAMPLE_CHARACTERS_MAX].decode("utf-8", "replace").strip()
    return text if len(text) <= SAMPLE_CHARACTERS_MAX else f"{text[: SAMPLE_CHARACTERS_MAX - 1]}…"
