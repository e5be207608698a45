"""Values of a log entry and of a filter: what a literal means once the type of the field is known."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

NANOSECONDS_A_SECOND = 1_000_000_000

SEVERITIES = {
    "DEFAULT": 0,
    "DEBUG": 100,
    "INFO": 200,
    "NOTICE": 300,
    "WARNING": 400,
    "ERROR": 500,
    "CRITICAL": 600,
    "ALERT": 700,
    "EMERGENCY": 800,
}
"""Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#LogSeverity"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?\s*([Zz]|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_DURATION = re.compile(r"([+-]?\d+(?:\.\d+)?)(h|m|s|ms|us|ns)", re.ASCII)
_SECONDS_A_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def parse_moment(text: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 moment; a date alone is its midnight, and no offset means UTC.

    Google's own client writes ``+0000`` into the filter that it adds, without the colon of RFC 3339.

    Returns:
        None when it is no moment, or one outside of the years 1 to 9999.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, offset = found.groups()
    try:
        moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC)
        whole_s = (moment - _offset(offset) - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return whole_s * NANOSECONDS_A_SECOND + int((fraction or "0").ljust(9, "0"))


def _offset(text: str | None) -> timedelta:
    if not text or text in "Zz":
        return timedelta(0)
    sign = -1 if text[0] == "-" else 1
    return sign * timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))


def format_moment(moment_ns: int) -> str:
    """The moment as Google writes it: UTC, with nanoseconds only where there are any."""
    whole_s, rest_ns = divmod(moment_ns, NANOSECONDS_A_SECOND)
    text = _format_second(whole_s)
    return f"{text}.{rest_ns:09d}".rstrip("0").rstrip(".") + "Z" if rest_ns else f"{text}Z"


@lru_cache(maxsize=256)
def _format_second(whole_s: int) -> str:
    """Many entries are of the same second."""
    return (_EPOCH + timedelta(seconds=whole_s)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


def to_nanoseconds(moment: datetime) -> int:
    """Nanoseconds since 1970 of a moment that knows its time zone, to the microsecond."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def parse_duration_s(text: str) -> float | None:
    """Seconds of a duration such as ``3.2s``; None when it is none."""
    found = _DURATION.fullmatch(text)
    return float(found[1]) * _SECONDS_A_UNIT[found[2]] if found else None


def parse_number(text: str) -> float | None:
    """The number, or None: what Python alone reads (``1_0``) is none."""
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def parse_severity(value: object) -> int | None:
    """The rank of a severity: a name in any case, or its number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    if value.isascii() and value.isdigit():
        return int(value[:6])
    return SEVERITIES.get(value.upper())
