"""Scenarios and schedules to and from JSON, and their JSON Schema."""

import re
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.errors import InvalidDocumentError
from harness.scenario.model import Scenario, Schedule

T = TypeVar("T")
_PATH = re.compile(r"^(?P<problem>.*?) - at `(?P<path>[^`]+)`$", re.DOTALL)


def decode(data: bytes | str, kind: type[T], *, document: str) -> T:
    """Read a document of ``kind`` from JSON.

    Raises:
        InvalidDocumentError: With the document, the field's path, the problem with its value, and what would be right.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise _refusal(error, document) from error
    except UnicodeDecodeError as error:
        raise InvalidDocumentError(document=document, field="", problem=f"not UTF-8: {error}") from error


def convert(value: object, kind: type[T], *, document: str) -> T:
    """Make a ``kind`` of plain dictionaries and lists, as TOML gives them.

    Raises:
        InvalidDocumentError: As ``decode``.
    """
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.MsgspecError as error:
        raise _refusal(error, document) from error


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


def schema() -> dict[str, object]:
    """The JSON Schema of a scenario."""
    return msgspec.json.schema(Scenario)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidDocumentError(
            document=str(path), field="", problem=error.strerror or str(error), advice="name a readable file"
        ) from error


def _refusal(error: msgspec.MsgspecError, document: str) -> InvalidDocumentError:
    match = _PATH.match(str(error))
    problem, path = (match["problem"], match["path"]) if match else (str(error), "")
    return InvalidDocumentError(document=document, field=path.removeprefix("$").removeprefix("."), problem=problem)
