"""All runs on one page: the newest of each scenario on each target first, older ones below, and why others cannot be shown."""

import os.path
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import msgspec

from harness.errors import HarnessError
from harness.report.summary import Summary, summarize
from harness.report.templating import render
from harness.store import RunDirectory, RunStore
from harness.verdict import Outcome

_ORDER: dict[str, int] = {Outcome.INVALID: 0, Outcome.UNKNOWN: 1, Outcome.VALID: 2}


@dataclass(frozen=True, slots=True)
class Row:
    """A run that is over; ``href`` is its page, relative to the index, empty where there is none."""

    summary: Summary
    href: str
    name: str


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A run directory without a judgement: running, given up, or broken."""

    name: str
    reason: str
    href: str


@dataclass(slots=True)
class Overview:
    """Everything the index shows."""

    newest: list[Row] = field(default_factory=list)
    older: list[Row] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)

    @property
    def targets(self) -> tuple[str, ...]:
        """Where the newest runs were."""
        return tuple(sorted({row.summary.target for row in self.newest if row.summary.target}))

    def count(self, outcome: str) -> int:
        """How many of the newest runs had an outcome."""
        return sum(row.summary.outcome == outcome for row in self.newest)


def write_index(store: RunStore) -> Path:
    """Write the page over all runs and return its path.

    Raises:
        StoreError: When it cannot be written; an older page is intact.
    """
    overview = overview_of(store)
    RunDirectory(store.root).write(store.index_path, render("index.html.j2", {"overview": overview, "root": str(store.root)}))
    return store.index_path


def overview_of(store: RunStore) -> Overview:
    """Read the summaries of all runs but the golden ones."""
    overview = Overview()
    rows: list[Row] = []
    for directory in store.runs():
        if directory.index_path != store.index_path:
            continue  # an uninterrupted run, kept to compare with
        try:
            found = _row(directory)
        except (OSError, HarnessError) as error:
            overview.unfinished.append(Unfinished(name=directory.name, reason=f"cannot be read: {error}", href=""))
            continue
        if isinstance(found, Row):
            rows.append(found)
        else:
            overview.unfinished.append(found)
    overview.newest, overview.older = _split(rows)
    return overview


def _row(directory: RunDirectory) -> Row | Unfinished:
    href = quote(os.path.relpath(directory.report_path, directory.index_path.parent)) if directory.report_path.exists() else ""
    if not directory.is_over():
        reason = "running" if directory.is_running() else "ended before it was judged"
        return Unfinished(name=directory.name, reason=reason, href=href)
    return Row(summary=_summary(directory), href=href, name=directory.name)


def _summary(directory: RunDirectory) -> Summary:
    """The summary written with the page, so that an index over many runs reads no history; made again where it is missing or older."""
    try:
        written = msgspec.json.decode(directory.summary_path.read_bytes(), type=Summary)
        is_fresh = directory.summary_path.stat().st_mtime_ns >= directory.verdict_path.stat().st_mtime_ns
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return summarize(directory)
    return msgspec.structs.replace(written, run=str(directory.path)) if is_fresh else summarize(directory)


def _split(rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The newest run of each scenario on each target, the worst first, and the others, the newest first."""
    by_age = sorted(rows, key=lambda row: (row.summary.opened_at, row.name), reverse=True)
    newest: dict[tuple[str, str], Row] = {}
    older: list[Row] = []
    for row in by_age:
        kind = (row.summary.scenario, row.summary.target)
        if kind in newest:
            older.append(row)
        else:
            newest[kind] = row
    worst_first = sorted(newest.values(), key=lambda row: (_ORDER.get(row.summary.outcome, 0), row.summary.scenario, row.summary.target))
    return worst_first, older
