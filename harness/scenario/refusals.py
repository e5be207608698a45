"""Why a document is refused, in one sentence: the field, its value, what is wrong with it and what would be right."""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import get_args

import msgspec
from msgspec import inspect

from harness.errors import InvalidDocumentError
from harness.scenario.expectations import Expectation, name_of
from harness.scenario.faults import Fault, kind_of
from harness.scenario.rules import RefusedValueError
from harness.scenario.triggers import Trigger

SHOWN_LENGTH_MAX = 80
"""Characters of a value that are shown: enough to find it in the document."""

_PATH = re.compile(r"^(?P<problem>.*?) - at `\$(?P<path>[^`]*)`$", re.DOTALL)
_PLACE = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")
_TYPES = re.compile(r"(?:^|\.)(?P<parent>fault|at|expects\[\d+\])\.type$")


def refusal(error: msgspec.MsgspecError, plain: object, kind: type, document: str) -> InvalidDocumentError:
    """The error for a document of ``kind`` that did not validate; ``plain`` is it as dictionaries and lists, None where it is none."""
    match = _PATH.match(str(error))
    problem, path = (match["problem"], match["path"].removeprefix(".")) if match else (str(error), "")
    cause = error.__cause__
    if isinstance(cause, RefusedValueError):
        field = f"{path}.{cause.field}" if path else cause.field
        return InvalidDocumentError(document=document, field=field, problem=f"it is {_shown(cause.value)}: {cause.advice}")
    if problem.startswith("Expected") and plain is not None:
        problem = f"it is {_shown(_value_at(plain, path))}: {problem[0].lower()}{problem[1:]}"
    return InvalidDocumentError(document=document, field=path, problem=problem, advice=_advice(problem, path, plain, kind))


def refused_value(error: RefusedValueError, document: str, *, place: str = "") -> InvalidDocumentError:
    """The error for a value that was refused outside of a document's own types; ``place`` is what its field is part of."""
    field = f"{place}.{error.field}" if place else error.field
    return InvalidDocumentError(document=document, field=field, problem=f"it is {_shown(error.value)}: {error.advice}")


def _value_at(plain: object, path: str) -> object:
    """What stands at a path; where the path ends in something that cannot be followed, what stands before that."""
    value = plain
    for place in _PLACE.finditer(f".{path}" if path and not path.startswith("[") else path):
        try:
            value = value[place["name"] or int(place["index"])]  # type: ignore[index]
        except (LookupError, TypeError):
            return value
    return value


def _advice(problem: str, path: str, plain: object, kind: type) -> str:
    unknown = _UNKNOWN.search(problem)
    if unknown is not None:
        return _meant(unknown["name"], _fields_beside(unknown["name"], _value_at(plain, path), kind)) or "remove it or correct its name"
    if problem.startswith("Invalid"):
        types = _TYPES.search(path)
        known = _names_of(types["parent"]) if types is not None else _choices(kind, path.rpartition(".")[2])
        return _meant(str(_value_at(plain, path)), known) or (f"known: {', '.join(sorted(known))}" if known else "")
    return "add it" if "missing required field" in problem else ""


def _meant(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, known, n=2)
    return f"did you mean {' or '.join(close)}?" if close else ""


def _fields_beside(unknown: str, place: object, kind: type) -> set[str]:
    """Fields that whatever stands at a place can have: those of the types that have all the fields that it has but the unknown one."""
    others = {*place} - {unknown} if isinstance(place, dict) else set()
    types = [{field.encode_name for field in struct.fields} | {struct.tag_field or ""} for struct in _structs(kind)]
    return {name for fields in types if others <= fields for name in fields}


def _names_of(parent: str) -> set[str]:
    if parent == "fault":
        return {kind_of(fault) for fault in get_args(Fault)}
    if parent == "at":
        return {str(trigger.__struct_config__.tag) for trigger in get_args(Trigger)}
    return {name_of(expectation) for expectation in get_args(Expectation)}


def _choices(kind: type, name: str) -> set[str]:
    """The words that a field of that name may hold, wherever in a kind of document it stands."""
    fields = [field.type for struct in _structs(kind) for field in struct.fields if field.encode_name == name]
    parts = [part for whole in fields for part in (whole.types if isinstance(whole, inspect.UnionType) else (whole,))]
    return {str(value) for part in parts if isinstance(part, inspect.LiteralType) for value in part.values}


def _structs(kind: type) -> Iterator[inspect.StructType]:
    """Every type with fields that a kind of document is made of."""
    unvisited: list[inspect.Type] = [inspect.type_info(kind)]
    known: set[type] = set()
    while unvisited:
        each = unvisited.pop()
        if isinstance(each, inspect.UnionType):
            unvisited += each.types
        elif isinstance(each, inspect.VarTupleType):
            unvisited.append(each.item_type)
        elif isinstance(each, inspect.StructType) and each.cls not in known:
            known.add(each.cls)
            unvisited += [field.type for field in each.fields]
            yield each


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_LENGTH_MAX else f"{text[: SHOWN_LENGTH_MAX - 1]}…"
