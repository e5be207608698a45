"""What an entry is about, by fields that filters name most: their entries are found without looking at all the others.

Cloud Logging has such indexes, too. Source: https://docs.cloud.google.com/logging/docs/view/logging-query-language#indexed-fields
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.emulator.logging.query.matching import find_values
from harness.emulator.logging.query.syntax import AllOf, AnyOf, Comparison, Expression

INDEXED: Sequence[tuple[str, ...]] = (
    ("logName",),
    ("labels", "run.googleapis.com/execution_name"),
    ("protoPayload", "resourceName"),
)
"""The log, and whose entry it is: the execution's own, or one of the audit log about it."""


class Subject(NamedTuple):
    """A value of an indexed field; ``value`` is folded, and None stands for one that is no text: it may equal anything."""

    path: tuple[str, ...]
    value: str | None


def subjects_of(entry: Mapping[str, object]) -> frozenset[Subject]:
    """What the entry, in its JSON form, is found by."""
    return frozenset(
        Subject(path, value.casefold() if isinstance(value, str) else None) for path in INDEXED for value in find_values(entry, path)
    )


def find_subjects(expression: Expression) -> Sequence[frozenset[Subject]]:
    """Sets of subjects, of each of which every match has one at least; none where the filter does not say for sure."""
    if isinstance(expression, AllOf):
        return [found for part in expression.parts for found in find_subjects(part)]
    if isinstance(expression, Comparison):
        asked = expression.literal
        is_exact = expression.operator == "=" and not asked.is_any and expression.path in INDEXED and bool(asked.text)
        return [frozenset({Subject(expression.path, asked.folded), Subject(expression.path, None)})] if is_exact else []
    if isinstance(expression, AnyOf):
        ways = [min(find_subjects(part), key=len, default=None) for part in expression.parts]
        known = [way for way in ways if way is not None]
        return [frozenset().union(*known)] if known and len(known) == len(ways) else []
    return []
