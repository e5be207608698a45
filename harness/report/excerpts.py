"""What the log said around each fault: a few lines before, those up to its effect, a few after."""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.history import LogLine
from harness.report.record import Record
from harness.report.strikes import Strike
from harness.report.text import line

BEFORE, AFTER = 4, 8
"""Lines around a fault: enough to see what the job was at, and how it came back."""

LINES_MAX = 40
"""Of one excerpt; the whole log lies beside the report."""

EXCERPTS_MAX = 8

LAST_LINES = 12
"""Of a run without a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptLine:
    """One line; ``kind`` is ``job``, ``platform`` or ``fault``, the last for what the harness did between the lines."""

    t_s: float
    kind: str
    source: str
    text: str
    severity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Lines in the order of time."""

    title: str
    lines: tuple[ExcerptLine, ...]
    left_out: int

    @property
    def source_characters(self) -> int:
        """How wide the column is that says where a line comes from."""
        return max((len(row.source) for row in self.lines), default=0)


def excerpts_of(record: Record) -> tuple[Excerpt, ...]:
    """The excerpts; where no fault acted, the end of each task's log."""
    logs = sorted((event for event in record.events if isinstance(event, LogLine)), key=lambda event: event.t_s)
    strikes = sorted(record.strikes, key=lambda strike: strike.requested_s)
    if not strikes:
        return tuple(_ends(logs))
    groups = _groups(strikes, [log.t_s for log in logs])
    found: list[Excerpt] = []
    for first, last, group in groups[:EXCERPTS_MAX]:
        names = ", ".join(dict.fromkeys(strike.injection for strike in group))
        kept = logs[first:last][:LINES_MAX]
        found.append(_excerpt(f"Around {names} in attempt {group[0].attempt}", kept, group, last - first - len(kept)))
    return tuple(found)


def _ends(logs: Sequence[LogLine]) -> Iterator[Excerpt]:
    tasks = sorted({log.task for log in logs})
    for task in tasks[:EXCERPTS_MAX]:
        title = "The end of the log" if len(tasks) == 1 else f"The end of the log of task {task}"
        yield _excerpt(title, [log for log in logs if log.task == task][-LAST_LINES:], [], 0)


def _groups(strikes: Sequence[Strike], times_s: Sequence[float]) -> list[tuple[int, int, list[Strike]]]:
    """Ranges of lines, those that overlap joined."""
    groups: list[tuple[int, int, list[Strike]]] = []
    for strike in strikes:
        first = max(0, bisect.bisect_left(times_s, strike.requested_s) - BEFORE)
        until_s = strike.observed_s if strike.observed_s is not None else strike.requested_s
        last = min(len(times_s), bisect.bisect_right(times_s, until_s) + AFTER)
        if groups and first < groups[-1][1]:
            groups[-1] = (groups[-1][0], max(groups[-1][1], last), [*groups[-1][2], strike])
        else:
            groups.append((first, last, [strike]))
    return groups


def _excerpt(title: str, logs: Sequence[LogLine], strikes: Sequence[Strike], left_out: int) -> Excerpt:
    rows = [_line(log) for log in logs] + [row for strike in strikes for row in _acts(strike)]
    return Excerpt(title=title, lines=tuple(sorted(rows, key=lambda row: row.t_s)), left_out=left_out)


def _line(log: LogLine) -> ExcerptLine:
    is_platform = log.stream in ("system", "audit")
    where = f"task {log.task} attempt {log.attempt}" if log.task else f"attempt {log.attempt}"
    source = log.stream if log.stream == "audit" else f"{where} {log.stream}"
    text = line(log.text) + (f" [{line(log.reason)}]" if log.reason else "")
    severity = log.severity if log.severity not in ("DEFAULT", "INFO") else ""
    return ExcerptLine(t_s=log.t_s, kind="platform" if is_platform else "job", source=source, text=text, severity=severity)


def _acts(strike: Strike) -> Iterator[ExcerptLine]:
    for t_s, told in (
        (strike.requested_s, f"{strike.injection} requested"),
        (strike.observed_s, f"{strike.injection} observed"),
        (strike.failed_s, f"{strike.injection} could not act"),
    ):
        if t_s is not None:
            yield ExcerptLine(t_s=t_s, kind="fault", source="harness", text=told)
