"""Which moments a filter can match at all: what lies outside need not be looked at."""

from dataclasses import dataclass

from harness.emulator.logging.query.syntax import AllOf, Comparison, Expression


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """From the first to the last moment in nanoseconds since 1970, both included; None is open."""

    first_ns: int | None = None
    last_ns: int | None = None


def find_time_bounds(expression: Expression) -> TimeBounds:
    """The bounds that every match keeps; open where the filter does not say for sure."""
    parts = expression.parts if isinstance(expression, AllOf) else (expression,)
    first_ns: int | None = None
    last_ns: int | None = None
    for part in parts:
        if isinstance(part, AllOf):
            within = find_time_bounds(part)
            first_ns = _later(first_ns, within.first_ns)
            last_ns = _earlier(last_ns, within.last_ns)
        elif isinstance(part, Comparison) and part.path == ("timestamp",) and part.literal.moment_ns is not None:
            moment_ns = part.literal.moment_ns
            if part.operator in (">", ">=", "=", ":"):
                first_ns = _later(first_ns, moment_ns)
            if part.operator in ("<", "<=", "=", ":"):
                last_ns = _earlier(last_ns, moment_ns)
    return TimeBounds(first_ns, last_ns)


def _later(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else max(left, right)


def _earlier(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else min(left, right)
