"""Whether an entry matches a filter.

Source: https://docs.cloud.google.com/logging/docs/view/logging-query-language#comparisons
"""

import hashlib
import ipaddress
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from harness.emulator.logging.query.fields import ANYTHING, DURATION, MOMENT, SEVERITY, FieldType
from harness.emulator.logging.query.syntax import (
    AllOf,
    AnyOf,
    Comparison,
    Expression,
    IsInNetwork,
    Literal,
    LogIdIs,
    Not,
    Sample,
    TextSearch,
)
from harness.emulator.logging.query.values import parse_duration_s, parse_moment, parse_number, parse_severity

_LEAVES_MAX = 100_000
"""Values of one entry that a search looks at: an entry holds at most 256 KiB, so this bounds entries that were never let in."""

_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    ":": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_STRING_ORDERS: dict[str, Callable[[str, str], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def matches(expression: Expression, entry: Mapping[str, object]) -> bool:
    """Whether the entry, in its JSON form, matches."""
    match expression:
        case AllOf(parts):
            return all(matches(part, entry) for part in parts)
        case AnyOf(parts):
            return any(matches(part, entry) for part in parts)
        case Not(part):
            return not matches(part, entry)
        case Comparison():
            return _compare(expression, entry)
        case TextSearch(literal):
            return literal.is_any or _has_anywhere(entry, literal)
        case LogIdIs(log_id):
            return unquote(str(entry.get("logName", "")).partition("/logs/")[2]) == log_id
        case Sample(path, fraction):
            return any(_share(value) < fraction for value in find_values(entry, path))
        case IsInNetwork(path, network):
            return any(_is_in_network(value, network) for value in find_values(entry, path))


def find_values(value: object, path: Sequence[str]) -> Iterator[object]:
    """What the path leads to: through lists to each element; nothing when it is missing."""
    if isinstance(value, list):
        for element in value:
            yield from find_values(element, path)
    elif not path:
        yield value
    elif isinstance(value, Mapping) and path[0] in value:
        yield from find_values(value[path[0]], path[1:])


def _compare(comparison: Comparison, entry: Mapping[str, object]) -> bool:
    found = list(find_values(entry, comparison.path))
    if comparison.literal.is_any:
        return bool(found)
    if not found and comparison.type.default is not None:
        found = [comparison.type.default]
    return any(_compare_value(value, comparison.operator, comparison.literal, comparison.type) for value in found)


def _compare_value(value: object, sign: str, literal: Literal, kind: FieldType) -> bool:
    if sign in ("=~", "!~"):
        return _matches_pattern(value, sign, literal)
    if kind.kind == SEVERITY:
        return _in_order(parse_severity(value), sign, literal.severity)
    if kind.kind == MOMENT:
        return _in_order(parse_moment(str(value)), sign, literal.moment_ns)
    if kind.kind == DURATION:
        return _in_order(parse_duration_s(str(value)), sign, literal.duration_s)
    if isinstance(value, bool):
        return literal.folded in ("true", "false") and _in_order(value, sign, literal.folded == "true")
    if isinstance(value, int | float):
        return _in_order(value, sign, literal.number)
    if isinstance(value, str):
        # A number of 64 bits is a string in JSON: where the field is known to be a number it is compared as one.
        return _in_order(parse_number(value), sign, literal.number) if kind.kind == "number" else _compare_text(value, sign, literal)
    if isinstance(value, Mapping):
        return sign == ":" and (literal.text in value or _has_anywhere(value, literal))
    return value is None and kind.kind == ANYTHING and sign in ("=", ":") and literal.folded == "null"


def _in_order(left: float | None, sign: str, right: float | None) -> bool:
    return left is not None and right is not None and _ORDERS[sign](left, right)


def _compare_text(value: str, sign: str, literal: Literal) -> bool:
    if sign == ":":
        return literal.folded in value.casefold()
    if sign in ("=", "!="):
        return (value.casefold() == literal.folded) == (sign == "=")
    return _STRING_ORDERS[sign](value, literal.text)


def _matches_pattern(value: object, sign: str, literal: Literal) -> bool:
    if not isinstance(value, str) or literal.pattern is None:
        return False
    return (literal.pattern.search(value) is not None) == (sign == "=~")


def _has_anywhere(value: object, literal: Literal) -> bool:
    """Whether a value within has the literal: text as a part of it, numbers and truth values as a whole."""
    waiting, looked_at = [value], 0
    while waiting and looked_at < _LEAVES_MAX:
        value, looked_at = waiting.pop(), looked_at + 1
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            if literal.folded in value.casefold():
                return True
        elif isinstance(value, bool):
            if literal.folded == str(value).lower():
                return True
        elif isinstance(value, int | float) and literal.number is not None and value == literal.number:
            return True
    return False


def _share(value: object) -> float:
    digest = hashlib.sha256(str(value).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _is_in_network(value: object, network: str) -> bool:
    try:
        return ipaddress.ip_address(str(value)) in ipaddress.ip_network(network)
    except ValueError:
        return False
