"""The work of a lane: its steps and those that were lost, its saves and restores, and the strip that says what the time was."""

import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.ledger import Span
from harness.report.timeline.lane import SAVE_PX, STEP_PX, STRIP_PX, Lane
from harness.report.timeline.sampling import TICK_PX, merge, thin
from harness.report.timeline.scale import Scale
from harness.report.timeline.shapes import Path, Shape, bar, boxes, ticks
from harness.report.timeline.symbols import save_title
from harness.report.timeline.tracks import Period
from harness.report.wording import count, duration, moment

STRIP_COLUMN_PX = 2.0
"""The strip shows in each column of this width what most of its time was."""

DENSE_PX, DENSE_STEPS = 2.5, 12
"""More than so many steps in a row, each so close to the next, are an area and not ticks."""

TITLED_SAVES_MAX = 60
"""Saves of a lane that can be pointed at one by one; more are drawn as one path."""


def draw_work(lane: Lane) -> Iterator[Shape]:
    """All of it, in the order of drawing."""
    yield from _lost(lane)
    yield from _steps(lane)
    yield from _saves(lane)
    yield from _restores(lane)
    yield from _strip(lane)


def _steps(lane: Lane) -> Iterator[Shape]:
    """A tick for each step; where ticks would run together, an area."""
    seen = [step for step in lane.track.steps() if lane.scale.holds(step.t_s, step.t_s)]
    y = lane.body_y + SAVE_PX
    for kind, is_lost in (("step", False), ("step lost", True)):
        places = [lane.scale.x(step.t_s) for step in seen if lane.track.is_lost(step) is is_lost]
        runs = merge(((place, place) for place in places), apart_px=DENSE_PX)
        areas = [(begin, end) for begin, end, together in runs if together > DENSE_STEPS]
        if areas:
            yield Path(kind=f"many {kind}", d=boxes(areas, y=y, height=STEP_PX))
        single = places if not areas else _outside(places, areas)
        if single:
            yield Path(kind=kind, d=ticks(thin(single), y=y, height=STEP_PX))


def _outside(places: Sequence[float], areas: Sequence[tuple[float, float]]) -> list[float]:
    begins = [begin for begin, _ in areas]
    return [place for place in places if (index := bisect.bisect_right(begins, place) - 1) < 0 or place > areas[index][1]]


def _lost(lane: Lane) -> Iterator[Shape]:
    """Steps that a later life went back behind: from the last one that was kept to the last that was done, or broken off by the fault.

    What comes after, until somebody noticed, was no work.
    """
    steps = lane.track.steps()
    lost = [step for step in steps if lane.track.is_lost(step)]
    if not lost:
        return
    kept_s = [step.t_s for step in steps if not lane.track.is_lost(step) and step.t_s <= lost[0].t_s]
    started = lane.track.life.started if lane.track.life is not None else None
    begin_s = max([*kept_s, started.t_s if started is not None else lane.track.begin_s])
    broken_off_s = max((span.end_s for span in lane.track.spans if span.category == "lost"), default=begin_s)
    end_s = max(begin_s, lost[-1].t_s, min(broken_off_s, lane.track.end_s(lane.end_s)))
    if lane.scale.holds(begin_s, end_s):
        title = f"{count(len(lost), 'step')} lost: executed, and done again later"
        yield bar("lost", lane.scale.x(begin_s), lane.scale.x(end_s), y=lane.body_y + SAVE_PX, height=STEP_PX, title=title)


def _saves(lane: Lane) -> Iterator[Shape]:
    end_s = lane.track.end_s(lane.end_s)
    saves = [save for save in lane.track.saves() if lane.scale.holds(save.begin_s, end_s if save.end_s is None else save.end_s)]
    if len(saves) > TITLED_SAVES_MAX:
        spans = merge((lane.scale.x(save.begin_s), lane.scale.x(save.end_s)) for save in saves if save.end_s is not None)
        wide = [(begin, max(end, begin + TICK_PX)) for begin, end, _ in spans]
        yield Path(kind="save", d=boxes(wide, y=lane.body_y, height=SAVE_PX - 1), title=count(len(saves), "save"))
        saves = [save for save in saves if save.end_s is None][:TITLED_SAVES_MAX]
    begins = sorted(save.begin_s for save in lane.track.saves())
    for save in saves:
        until_s = _until_s(save, begins, end_s)
        title = save_title(save)
        kind = "save" if save.end_s is not None else "save open"
        yield bar(kind, lane.scale.x(save.begin_s), lane.scale.x(until_s), y=lane.body_y, height=SAVE_PX - 1, title=title)


def _until_s(save: Period, begins: Sequence[float], end_s: float) -> float:
    """When it was over; one that was never acknowledged, when the next one began or the life ended."""
    if save.end_s is not None:
        return save.end_s
    later = bisect.bisect_right(begins, save.begin_s)
    return begins[later] if later < len(begins) else end_s


def _restores(lane: Lane) -> Iterator[Shape]:
    for restore in lane.track.restores():
        until_s = restore.begin_s if restore.end_s is None else restore.end_s
        if lane.scale.holds(restore.begin_s, until_s):
            took = "never loaded" if restore.end_s is None else f"loaded in {duration(until_s - restore.begin_s)}"
            title = f"restore of step {restore.step} at {moment(restore.begin_s)} s, {took}"
            yield bar("restore", lane.scale.x(restore.begin_s), lane.scale.x(until_s), y=lane.body_y, height=SAVE_PX - 1, title=title)


def _strip(lane: Lane) -> Iterator[Shape]:
    """What the time was, column by column, one path a category."""
    columns: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for span in lane.track.spans:
        if lane.scale.holds(span.begin_s, span.end_s):
            _fill(columns, span, lane.scale)
    runs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    previous: tuple[str, int] = ("", -2)
    for column in sorted(columns):
        category = max(columns[column], key=columns[column].__getitem__)
        begin, end = (lane.scale.left + STRIP_COLUMN_PX * place for place in (column, column + 1))
        if previous == (category, column - 1):
            runs[category][-1] = (runs[category][-1][0], end)
        else:
            runs[category].append((begin, end))
        previous = (category, column)
    for category, spans in runs.items():
        within = [(max(begin, lane.began_x), min(end, lane.ended_x)) for begin, end in spans if end > lane.began_x and begin < lane.ended_x]
        if within:
            yield Path(kind=f"time {category}", d=boxes(within, y=lane.strip_y, height=STRIP_PX), title=category)


def _fill(columns: dict[int, dict[str, float]], span: Span, scale: Scale) -> None:
    begin, end = (scale.x(t_s) - scale.left for t_s in (span.begin_s, span.end_s))
    first, last = int(begin / STRIP_COLUMN_PX), int(end / STRIP_COLUMN_PX)
    for column in range(first, last + 1):
        covered = min(end, (column + 1) * STRIP_COLUMN_PX) - max(begin, column * STRIP_COLUMN_PX)
        if covered > 0:
            columns[column][span.category] += covered
