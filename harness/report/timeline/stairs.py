"""How far a task came, below the lanes: the step executed as a line, the step durable as a stair, lost work hatched between them."""

from collections.abc import Callable, Iterator, Sequence

from harness.report.timeline.progress import Progress
from harness.report.timeline.sampling import simplify
from harness.report.timeline.scale import Scale
from harness.report.timeline.shapes import Bar, Label, Path, Shape, line, number, stair
from harness.report.wording import count

STAIR_PX = 128.0
"""Height of one task's plot."""

END_LABEL_PX = 12.0
"""Between two labels that stand one above the other."""

RESUMES_NAMED_MAX = 8
"""Resumes of a task whose step is written beside the line."""

Placement = Callable[[tuple[float, int]], tuple[float, float]]
"""From seconds and a step to pixels."""


def draw_stair(progress: Progress, scale: Scale, y: float, *, is_only: bool) -> Iterator[Shape]:
    """One task's plot; its name is left out where it is the only one."""
    top, bottom = y + 12, y + STAIR_PX

    def place(point: tuple[float, int]) -> tuple[float, float]:
        ratio = min(max(point[1] / progress.top_step, 0.0), 1.0)
        return scale.x(point[0]), bottom - (bottom - top) * ratio

    yield Bar(kind="plot", x=scale.left, y=top, width=scale.width, height=bottom - top)
    for step in sorted({0, progress.final_step or progress.top_step}):
        height = place((0.0, step))[1]
        yield Path(kind="level", d=f"M{number(scale.left)} {number(height)}H{number(scale.right)}")
        yield Label(kind="quiet", x=scale.left - 10, y=height + 3.5, text=f"step {step:,}", anchor="end")
    if not is_only:
        yield Label(kind="name", x=scale.left - 10, y=(top + bottom) / 2 + 4, text=f"task {progress.task}", anchor="end")
    for loss in progress.losses:
        yield _loss(loss.points, loss.base_step, place, loss.steps)
    for index, points in enumerate(progress.executed):
        yield Path(kind="executed", d=line(simplify([place(point) for point in points])))
        x, height = place(points[0])
        if 0 < index <= RESUMES_NAMED_MAX and x + 40 < scale.right:
            yield Label(kind="quiet", x=x + 5, y=min(height + 11, bottom - 3), text=f"from {points[0][1]}")
    end = scale.x(progress.end_s)
    if progress.durable:
        yield Path(kind="durable", d=stair(simplify([place((progress.begin_s, 0)), *map(place, progress.durable)]), end=end))
    yield from _ends(progress, scale, place)


def _loss(points: Sequence[tuple[float, int]], base: int, place: Placement, steps: int) -> Path:
    upper = simplify([place(point) for point in points])
    floor = place((0.0, base))[1]
    d = f"{line(upper)}V{number(floor)}H{number(upper[0][0])}Z"
    return Path(kind="loss", d=d, title=f"{count(steps, 'step')} lost: done again from step {base}")


def _ends(progress: Progress, scale: Scale, place: Placement) -> Iterator[Shape]:
    """The last of each line, where it ends; the two labels never touch."""
    x = scale.x(progress.end_s) + 6
    executed = progress.executed[-1][-1] if progress.executed else None
    durable = progress.durable[-1] if progress.durable else None
    if durable is not None:
        yield Label(kind="end", x=x, y=place(durable)[1] + 4, text=f"{durable[1]:,} durable")
    if executed is not None and (durable is None or executed[1] != durable[1]):
        y = place(executed)[1] + 4
        if durable is not None:
            durable_y = place(durable)[1] + 4
            y = min(y, durable_y - END_LABEL_PX) if executed[1] > durable[1] else max(y, durable_y + END_LABEL_PX)
        yield Label(kind="end", x=x, y=y, text=f"{executed[1]:,} executed")
