"""``python -m benchmarks``: measure the figures of the design and write the table."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import barrier, counter_start, long_history, orbax_kill_points, pytest_start, side_by_side, two_workers, wall_time
from benchmarks.figure import Effort, Figure, Measured, Row
from benchmarks.table import machine, outcome_of, table_of

FIGURES: tuple[Figure, ...] = (
    wall_time.FIGURE,
    pytest_start.FIGURE,
    two_workers.FIGURE,
    long_history.FIGURE,
    counter_start.FIGURE,
    barrier.FIGURE,
    orbax_kill_points.FIGURE,
    side_by_side.FIGURE,
)
RESULTS = Path(__file__).with_name("results.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; 0 when every goal is met, 1 when one is not, 64 for an unknown figure."""
    options = _parser().parse_args(arguments)
    known = [row for figure in FIGURES for row in figure.rows]
    if options.list:
        for row in known:
            print(f"{row.name:20} {row.what}")
        return 0
    unknown = set(options.rows) - {row.name for row in known}
    if unknown:
        print(f"no figure is called {min(unknown)!r}; `python -m benchmarks --list` names them", file=sys.stderr)
        return 64
    load_before = os.getloadavg()[0]
    rows, measured = _measure(options.rows, Effort(is_quick=options.quick))
    text = page_of(rows, measured, load_before=load_before)
    print(text, end="")
    output = options.output or (None if options.quick or options.rows else RESULTS)
    if output is not None:
        output.write_text(text, encoding="utf-8")
    return int(any(outcome_of(row, measured[row.name]) == "not met" for row in rows))


def page_of(rows: Sequence[Row], measured: Mapping[str, Measured], *, load_before: float) -> str:
    """The whole page: where and when, and the table."""
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    head = f"Measured on {when} by `python -m benchmarks` on {machine()}; load {load_before:.1f} before."
    details = [measured[row.name].details for row in rows if measured[row.name].details]
    return "\n".join([f"# Figures\n\n{head}\n\n{table_of(rows, measured)}", *details])


def _measure(wanted: Sequence[str], effort: Effort) -> tuple[list[Row], dict[str, Measured]]:
    rows: list[Row] = []
    measured: dict[str, Measured] = {}
    for figure in FIGURES:
        mine = [row for row in figure.rows if not wanted or row.name in wanted]
        if not mine:
            continue
        print(f"measuring {', '.join(row.name for row in mine)} ...", file=sys.stderr, flush=True)
        measured.update(figure.measure(effort))
        rows += mine
    return rows, measured


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the figures of the design, as ratios of one run.")
    parser.add_argument("rows", nargs="*", metavar="FIGURE", help="only these")
    parser.add_argument("--list", action="store_true", help="name the figures")
    parser.add_argument("--quick", action="store_true", help="few rounds: rough figures, which are not written")
    parser.add_argument(
        "--output", type=Path, help=f"where to write the table (default: {RESULTS.parent.name}/{RESULTS.name}, by a full run)"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
