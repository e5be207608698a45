"""Rows for spans that must not touch: labels above a lane, faults above the lanes."""

from collections.abc import Iterable


def pack(spans: Iterable[tuple[float, float]]) -> list[int]:
    """A row for each span so that no two in a row overlap; the first row that is free, in order of the spans' beginnings."""
    ends: list[float] = []
    rows: dict[int, int] = {}
    ordered = sorted(enumerate(spans), key=lambda item: item[1])
    for index, (begin, end) in ordered:
        row = next((row for row, row_end in enumerate(ends) if row_end <= begin), len(ends))
        if row == len(ends):
            ends.append(end)
        ends[row] = end
        rows[index] = row
    return [rows[index] for index in range(len(ordered))]
