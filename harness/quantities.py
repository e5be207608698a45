"""Quantities as Kubernetes writes them: ``4``, ``1k``, ``500m``."""

import re
from collections.abc import Mapping
from decimal import Decimal

_FACTORS: Mapping[str, Decimal] = {"": Decimal(1), "m": Decimal("0.001")} | {
    suffix: Decimal(factor)
    for power, prefix in enumerate("kMGTPE", start=1)
    for suffix, factor in ((prefix, 1000**power), (f"{prefix.upper()}i", 1024**power))
}
_QUANTITY = re.compile(rf"(?P<number>[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{{1,2}})?)(?P<suffix>{'|'.join(_FACTORS)})")


def whole_number(quantity: object) -> int:
    """A quantity of whole things, as chips are; the API server writes 1000 of them as ``1k``.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.

    Raises:
        ValueError: When it is none.
    """
    text = str(quantity)
    match = _QUANTITY.fullmatch(text)
    number = Decimal(match["number"]) * _FACTORS[match["suffix"]] if match is not None else Decimal("0.5")
    if number != number.to_integral_value():
        raise ValueError(f"{text!r} is no quantity of whole things")
    return int(number)


def is_same_quantity(one: str, other: str) -> bool:
    """Whether two stand for the same number: the API server writes 1000 of a thing as ``1k``."""
    try:
        return one == other or whole_number(one) == whole_number(other)
    except ValueError:
        return False
