"""Validation shared by the documents: one sentence with the field, the value and what would be right."""

import math
import re

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
"""Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set."""

TAINT_KEY = re.compile(r"(?=.{1,316}$)([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""As that of a label: a name, and a domain before it. Source: as above."""


class RefusedValueError(ValueError):
    """A field whose value does not do; the reader of documents adds where the field stands."""

    def __init__(self, *, field: str, value: object, advice: str) -> None:
        self.field, self.value, self.advice = field, value, advice
        super().__init__(f"{field} is {value!r}: {advice}")


def require(holds: bool, field: str, value: object, advice: str) -> None:
    """Refuse a field.

    Raises:
        RefusedValueError: With the field, its value and what would be right.
    """
    if not holds:
        raise RefusedValueError(field=field, value=value, advice=advice)


def positive(field: str, value: float, *, zero_allowed: bool = False) -> None:
    """Refuse a duration or size that is not a finite, positive number.

    Raises:
        RefusedValueError: See ``require``.
    """
    holds = math.isfinite(value) and (value > 0 or (zero_allowed and value == 0))
    require(holds, field, value, "a finite number " + (">= 0" if zero_allowed else "> 0"))


def regular_expression(field: str, pattern: str) -> None:
    """Refuse what is no regular expression.

    Raises:
        RefusedValueError: See ``require``.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        require(False, field, pattern, f"not a regular expression: {error}")


def label_value(field: str, value: str) -> None:
    """Refuse what Kubernetes takes for no value of a label.

    Raises:
        RefusedValueError: See ``require``.
    """
    wanted = "the value of a label: at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit"
    require(bool(LABEL_VALUE.fullmatch(value)), field, value, wanted)
