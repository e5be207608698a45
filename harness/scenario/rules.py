"""Validation shared by the documents: one sentence with the field, the value and what would be right."""

import math


def require(holds: bool, field: str, value: object, advice: str) -> None:
    """Refuse a field.

    Raises:
        ValueError: With the field, its value and what would be right; the reader of documents adds where it stands.
    """
    if not holds:
        raise ValueError(f"{field} is {value!r}: {advice}")


def positive(field: str, value: float, *, zero_allowed: bool = False) -> None:
    """Refuse a duration or size that is not a finite, positive number.

    Raises:
        ValueError: See ``require``.
    """
    holds = math.isfinite(value) and (value > 0 or (zero_allowed and value == 0))
    require(holds, field, value, "a finite number " + (">= 0" if zero_allowed else "> 0"))
