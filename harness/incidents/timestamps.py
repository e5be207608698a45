"""Moments of log entries: whole nanoseconds since 1970, for a float keeps no microseconds of this century."""

import re
from datetime import UTC, datetime, timedelta

FIRST_YEAR, LAST_YEAR = 2014, 2099
"""Cloud Logging began in 2014, and refuses entries that are more than a day ahead: what lies outside is a wrong clock, and no moment of
an incident. Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry (timestamp)."""

NANOSECONDS = 1_000_000_000

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,18}))?\s*(?:[Zz]|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_timestamp(text: str) -> int:
    """A moment as RFC 3339 writes it, without an offset as UTC.

    Raises:
        ValueError: When it is none, or not of the years of Cloud Logging.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is no timestamp")
    *numbers, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = map(int, numbers)
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise ValueError(f"the year {year} is not among {FIRST_YEAR} to {LAST_YEAR}")
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)  # a leap second is the second before it
    except ValueError as error:
        raise ValueError(f"{text[:40]!r} is no timestamp: {error}") from error
    if sign:
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        moment += -offset if sign == "+" else offset
    nanoseconds = int((fraction or "0")[:9].ljust(9, "0"))
    return int((moment - _EPOCH) / timedelta(seconds=1)) * NANOSECONDS + nanoseconds


def write_timestamp(t_ns: int) -> str:
    """The same moment as Cloud Logging writes it, to the microsecond."""
    seconds, nanoseconds = divmod(t_ns, NANOSECONDS)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds // 1000:06d}Z"
