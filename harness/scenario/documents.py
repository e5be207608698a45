"""Scenarios and schedules to and from JSON, and their JSON Schema; documents that people write in TOML."""

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.errors import InvalidDocumentError
from harness.history import read_document
from harness.scenario.model import Scenario, Schedule
from harness.scenario.refusals import refusal

T = TypeVar("T")


def decode(data: bytes | str, kind: type[T], *, document: str) -> T:
    """Read a document of ``kind`` from JSON.

    Raises:
        InvalidDocumentError: With the document, the field's path, its value, the problem, and what would be right.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise refusal(error, _plain(data), kind, document) from error
    except (UnicodeError, RecursionError) as error:
        raise InvalidDocumentError(document=document, field="", problem=f"not a document of UTF-8 text: {error}") from error


def convert(value: object, kind: type[T], *, document: str) -> T:
    """Make a ``kind`` of plain dictionaries and lists, as TOML gives them.

    Raises:
        InvalidDocumentError: As ``decode``.
    """
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.MsgspecError as error:
        raise refusal(error, value, kind, document) from error


def encode(document: msgspec.Struct) -> bytes:
    """Write a document as indented JSON with a line at the end; equal documents give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2) + b"\n"


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a file.

    Raises:
        InvalidDocumentError: When the file cannot be read or does not validate.
    """
    return decode(_bytes_of(path), Scenario, document=str(path))


def read_schedule(path: Path) -> Schedule:
    """Read a schedule from a file.

    Raises:
        InvalidDocumentError: When the file cannot be read or does not validate.
    """
    return decode(_bytes_of(path), Schedule, document=str(path))


def read_toml(path: Path, *, advice: str) -> dict[str, object]:
    """Read a file of TOML, to be converted; ``advice`` is what to do where it cannot be read.

    Raises:
        InvalidDocumentError: When it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(_bytes_of(path, advice).decode())
    except (ValueError, RecursionError) as error:  # what is no TOML, no UTF-8, or a number of more digits than Python reads
        raise InvalidDocumentError(document=str(path), field="", problem=f"not TOML: {error}") from error


def schema() -> dict[str, object]:
    """The JSON Schema of a scenario."""
    return msgspec.json.schema(Scenario)


def _bytes_of(path: Path, advice: str = "name a readable file") -> bytes:
    try:
        return read_document(path)
    except OSError as error:
        raise InvalidDocumentError(document=str(path), field="", problem=error.strerror or str(error), advice=advice) from error


def _plain(data: bytes | str) -> object:
    """A document without its types, to show what it holds; None where it is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
