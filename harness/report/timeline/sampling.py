"""Fewer marks where there are more than a screen has room for."""

from collections.abc import Iterable, Sequence

TICK_PX = 1.5
"""Two ticks closer than this look like one."""


def thin(places: Iterable[float], *, apart_px: float = TICK_PX) -> list[float]:
    """Ascending places, without those that lie closer than ``apart_px`` to one that stays."""
    kept: list[float] = []
    for place in sorted(places):
        if not kept or place - kept[-1] >= apart_px:
            kept.append(place)
    return kept


def simplify(points: Sequence[tuple[float, float]], *, apart_px: float = TICK_PX) -> list[tuple[float, float]]:
    """A line through points that are in order of x, with the first, lowest, highest and last of each column of ``apart_px``.

    The line looks the same: a column is narrower than a reader can resolve.
    """
    kept: list[tuple[float, float]] = []
    column: list[tuple[float, float]] = []
    for point in points:
        if column and point[0] - column[0][0] >= apart_px:
            kept += _corners(column)
            column = []
        column.append(point)
    return kept + _corners(column)


def _corners(column: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(column) <= 4:
        return column
    by_height = sorted(range(len(column)), key=lambda index: column[index][1])
    return [column[index] for index in sorted({0, by_height[0], by_height[-1], len(column) - 1})]


def merge(spans: Iterable[tuple[float, float]], *, apart_px: float = TICK_PX) -> list[tuple[float, float, int]]:
    """Spans by their beginning, those joined that a gap narrower than ``apart_px`` parts; each with how many it holds."""
    joined: list[tuple[float, float, int]] = []
    for begin, end in sorted(spans):
        if joined and begin - joined[-1][1] < apart_px:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end), joined[-1][2] + 1)
        else:
            joined.append((begin, end, 1))
    return joined
