"""Filters of lists, as far as the emulator reads them: comparisons with ``=``, ``!=``, ``eq``, ``ne`` and ``:``, all of which must hold.

``OR``, ``NOT``, numbers, regular expressions are not covered; a filter with them is refused and never taken for something else.

Source: https://docs.cloud.google.com/compute/docs/reference/rest/v1/instances/list (parameter ``filter``)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.emulator.compute.refusals import invalid_field

_COMPARISON = re.compile(
    r"""\s*\(?\s*(?P<field>[A-Za-z][\w.-]*)\s*(?P<operator>!=|=|:|\s(?:eq|ne)\s)\s*(?:"(?P<quoted>[^"\\]*)"|(?P<plain>[\w./*-]+))\s*\)?\s*"""
)
_CONJUNCTION = re.compile(r"AND\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One condition.

    Attributes:
        field: Like ``labels.harness-run``.
        operator: ``=``, ``!=`` or ``:``.
        value: What it is compared with; with ``:``, ``*`` means that the field is there.
    """

    field: str
    operator: str
    value: str

    def holds(self, document: Mapping[str, object]) -> bool:
        """Whether a resource has it."""
        found = _value(document, self.field)
        if self.operator == ":":
            return found is not None and (self.value == "*" or self.value in found)
        return (found == self.value) == (self.operator == "=")


def read_filter(text: str) -> tuple[Comparison, ...]:
    """The conditions of a filter; none for an empty one.

    Raises:
        ApiError: INVALID_ARGUMENT when it is none, or is not covered.
    """
    comparisons: list[Comparison] = []
    place = 0
    while place < len(text):
        match = _COMPARISON.match(text, place)
        if match is None or match.group(0).count("(") != match.group(0).count(")"):
            raise invalid_field("filter", text[:200], "Invalid list filter expression (or one that the emulator does not cover).")
        operator = {"eq": "=", "ne": "!="}.get(match["operator"].strip(), match["operator"].strip())
        value = match["quoted"] if match["quoted"] is not None else match["plain"]
        comparisons.append(Comparison(field=match["field"], operator=operator, value=value))
        conjunction = _CONJUNCTION.match(text, match.end())
        place = conjunction.end() if conjunction else match.end()
        if conjunction and not text[place:].strip():
            raise invalid_field("filter", text[:200], "Invalid list filter expression.")
    return tuple(comparisons)


def _value(document: Mapping[str, object], field: str) -> str | None:
    if field.startswith("labels."):
        labels = document.get("labels")
        found = labels.get(field.removeprefix("labels.")) if isinstance(labels, dict) else None
    else:
        found = document.get(field)
    if isinstance(found, bool):
        return str(found).lower()
    return None if found is None else str(found)
