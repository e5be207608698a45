"""Writes what was measured as a Markdown table."""

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.figure import Goal, Measured, Row

HEAD = ("figure", "goal", "median", "min to max", "rounds", "")


def table_of(rows: Sequence[Row], measured: Mapping[str, Measured]) -> str:
    """The table, a line for each row, and below it the notes on the rows that have one."""
    lines = [HEAD, tuple("---" for _ in HEAD), *(_cells(row, measured[row.name]) for row in rows)]
    notes = [f"- {row.what}: {measured[row.name].note}." for row in rows if measured[row.name].note]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return "\n".join([table, "", *notes, ""]) if notes else f"{table}\n"


def outcome_of(row: Row, measured: Measured) -> str:
    """Whether the median keeps the goal; a dash where there is none."""
    if row.goal is None:
        return "–"
    return "met" if row.goal.is_met_by(measured.median) else "not met"


def machine() -> str:
    """What it was measured on: without it no figure means anything."""
    cores, system = f"{os.cpu_count()} cores ({_processor()})", f"{platform.system()} {platform.machine()}"
    return f"{cores}, {system}, Python {platform.python_version()}"


def _cells(row: Row, measured: Measured) -> tuple[str, ...]:
    least, most = (_value(pick(measured.samples), row) for pick in (min, max))
    goal = "–" if row.goal is None else _goal(row.goal, row)
    return row.what, goal, _value(measured.median, row), f"{least} to {most}", str(len(measured.samples)), outcome_of(row, measured)


def _goal(goal: Goal, row: Row) -> str:
    sign = "≤" if goal.kind == "at most" else "≥"
    return f"{sign} {goal.limit:g} {row.unit}".strip()


def _value(value: float, row: Row) -> str:
    return f"{value:.{row.decimals}f} {row.unit}".strip()


def _processor() -> str:
    """The processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
