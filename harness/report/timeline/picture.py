"""The picture of a run: faults on top, a lane for each life of each rank, how far each task came below, on one axis of time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.history import HangCalled
from harness.report.notices import Notice
from harness.report.strikes import Strike
from harness.report.timeline import lanes
from harness.report.timeline.lane import Lane
from harness.report.timeline.progress import Progress
from harness.report.timeline.rows import pack
from harness.report.timeline.sampling import simplify
from harness.report.timeline.scale import Scale, Tick
from harness.report.timeline.shapes import Bar, Label, Mark, Path, Shape, bar, line, number, stair, text_width
from harness.report.timeline.symbols import arrange
from harness.report.timeline.tracks import Track
from harness.report.wording import count, duration, moment

WIDTH_PX, LEFT_PX, RIGHT_PX = 1120.0, 112.0, 92.0
"""Of the whole, of the names on the left, of the ends of attempts on the right."""

RESUMES_NAMED_MAX = 8
"""Resumes of a task whose step is written beside the line."""

TOP_PX, FAULT_ROW_PX, LANE_GAP_PX, RANK_GAP_PX, STAIR_PX, AXIS_PX = 8.0, 17.0, 10.0, 4.0, 128.0, 24.0

END_LABEL_PX = 12.0
"""Between two labels that stand one above the other."""

Placement = Callable[[tuple[float, int]], tuple[float, float]]
"""From seconds and a step to pixels."""

STRIKES_MAX = 40
"""Faults of one picture; a scenario declares at most 16, each for some attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a picture shows.

    Attributes:
        tracks, strikes, notices, hangs, progress: The things to be drawn.
        end_s: The last moment that was recorded.
        label_rows_max: Rows of labels that a lane may have above it.
        names_everything: Whether saves and markers get labels.
    """

    tracks: Sequence[Track]
    strikes: Sequence[Strike]
    notices: Sequence[Notice]
    hangs: Sequence[HangCalled]
    progress: Sequence[Progress]
    end_s: float
    label_rows_max: int = 2
    names_everything: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture in pixels.

    Attributes:
        identity: Makes the ids of its texts unique on a page.
        title, description: What it says, in words.
        ticks: Of the axis, whose line lies at ``axis_y``.
        shapes: Everything else, in the order of drawing.
    """

    identity: str
    title: str
    description: str
    height: float
    axis_y: float
    left: float
    right: float
    ticks: tuple[Tick, ...]
    shapes: tuple[Shape, ...]
    width: float = WIDTH_PX

    @property
    def kinds(self) -> frozenset[str]:
        """What a legend must explain."""
        return frozenset(shape.kind for shape in self.shapes)

    @property
    def has_strip(self) -> bool:
        """Whether some lane says what its time was."""
        return any(kind.startswith("time ") for kind in self.kinds)

    @property
    def has_stairs(self) -> bool:
        """Whether it shows how far the job came."""
        return bool(self.kinds & {"executed", "durable"})


def paint(scene: Scene, scale: Scale, *, identity: str, title: str, description: str) -> Picture:
    """Lay a scene out."""
    shapes: list[Shape] = []
    strikes = [strike for strike in scene.strikes if scale.holds(strike.requested_s, strike.last_s)][:STRIKES_MAX]
    fault_shapes, lanes_y = _faults(strikes, scale)
    placed = list(_place(scene, scale, lanes_y))
    stairs_y = placed[-1].y + placed[-1].height + LANE_GAP_PX if placed else lanes_y
    axis_y = stairs_y + (STAIR_PX + LANE_GAP_PX) * len(scene.progress)
    shapes += _guides(strikes, scale, axis_y)
    shapes += fault_shapes
    for lane in placed:
        shapes += _names(lane)
        shapes += lanes.draw(lane, notice=_notice_of(lane.track, scene.notices), previous_end_s=_previous_end_s(lane.track, scene.tracks))
        shapes += _hangs(lane, scene.hangs)
    for index, progress in enumerate(scene.progress):
        shapes += _stair(progress, scale, stairs_y + index * (STAIR_PX + LANE_GAP_PX), is_only=len(scene.progress) == 1)
    return Picture(
        identity=identity,
        title=title,
        description=description,
        height=axis_y + AXIS_PX,
        axis_y=axis_y,
        left=scale.left,
        right=scale.right,
        ticks=scale.ticks(),
        shapes=tuple(shapes),
    )


def _place(scene: Scene, scale: Scale, y: float) -> Iterator[Lane]:
    """The lanes from top to bottom, those of one attempt close together."""
    bottom_y, before = y, None
    for track in scene.tracks:
        if not scale.holds(track.begin_s, track.end_s(scene.end_s)):
            continue
        notice = _notice_of(track, scene.notices) if track.label else None
        symbols = arrange(
            track,
            scale,
            grace_ends_s=notice.ends_s if notice is not None else None,
            rows_max=scene.label_rows_max,
            names_everything=scene.names_everything,
        )
        rows = max((row + 1 for _, row in symbols), default=0)
        gap = 0.0 if before is None else RANK_GAP_PX if before is track.attempt else LANE_GAP_PX
        lane = Lane(track=track, scale=scale, y=bottom_y + gap, end_s=scene.end_s, symbols=symbols, label_rows=rows)
        yield lane
        bottom_y, before = lane.y + lane.height, track.attempt


def _faults(strikes: Sequence[Strike], scale: Scale) -> tuple[list[Shape], float]:
    """The rows of faults, and where what is below them begins."""
    if not strikes:
        return [], TOP_PX
    spans = [
        (scale.x(strike.requested_s) - 5, max(scale.x(strike.last_s) + 8, scale.x(strike.requested_s) + 12 + text_width(strike.injection)))
        for strike in strikes
    ]
    rows = pack(spans)
    shapes: list[Shape] = [Label(kind="name", x=scale.left - 10, y=TOP_PX + 11, text="faults", anchor="end")]
    for strike, row in zip(strikes, rows, strict=True):
        shapes += _strike(strike, scale, TOP_PX + row * FAULT_ROW_PX + 7)
    return shapes, TOP_PX + (max(rows) + 1) * FAULT_ROW_PX + 6


def _strike(strike: Strike, scale: Scale, y: float) -> Iterator[Shape]:
    requested, last = scale.x(strike.requested_s), scale.x(strike.last_s)
    if strike.observed_s is not None:
        observed = scale.x(strike.observed_s)
        title = f"{strike.injection} observed {duration(strike.observed_s - strike.requested_s)} after the request"
        if strike.stands and strike.healed_s is not None and strike.healed_s > strike.observed_s:
            yield bar(
                "standing", observed, last, y=y - 1.5, height=3, title=f"{strike.injection} until healed at {moment(strike.healed_s)} s"
            )
        yield bar("landing", requested, observed, y=y - 3, height=6, title=title)
        yield Mark(kind="observed", x=observed, y=y, title=f"{strike.injection} observed at {moment(strike.observed_s)} s")
    if strike.stands and strike.healed_s is not None:
        yield Mark(kind="healed", x=scale.x(strike.healed_s), y=y, title=f"{strike.injection} healed at {moment(strike.healed_s)} s")
    yield Mark(kind="requested", x=requested, y=y, title=f"{strike.injection} requested at {moment(strike.requested_s)} s")
    told = (
        strike.injection
        if strike.observed_s is not None
        else f"{strike.injection}: {'could not act' if strike.failed_s is not None else 'not observed'}"
    )
    edge = (scale.x(strike.observed_s) if strike.observed_s is not None else requested) + 8
    if edge + text_width(told) < WIDTH_PX:
        yield Label(kind="fault", x=edge, y=y + 3.5, text=told)
    else:
        yield Label(kind="fault", x=requested - 8, y=y + 3.5, text=told, anchor="end")


def _guides(strikes: Iterable[Strike], scale: Scale, bottom: float) -> Iterator[Shape]:
    for strike in strikes:
        if scale.begin_s <= strike.requested_s <= scale.end_s:
            yield Path(kind="guide", d=f"M{number(scale.x(strike.requested_s))} {TOP_PX}V{number(bottom)}")


def _names(lane: Lane) -> Iterator[Shape]:
    x, y = lane.scale.left - 10, lane.body_y + 6
    if not (lane.track.label and lane.track.detail):
        y += 5
    if lane.track.label:
        yield Label(kind="name", x=x, y=y, text=lane.track.label, anchor="end")
    if lane.track.detail:
        yield Label(kind="quiet", x=x, y=y + 12 if lane.track.label else y, text=lane.track.detail, anchor="end")


def _hangs(lane: Lane, hangs: Iterable[HangCalled]) -> Iterator[Shape]:
    for hang in hangs:
        place = (hang.task, hang.attempt)
        if place == (lane.track.attempt.task, lane.track.attempt.number) and lane.track.rank in (hang.ranks or (0,)):
            begin, end = lane.scale.x(hang.t_s - hang.quiet_s), lane.scale.x(hang.t_s)
            title = f"no progress of rank {lane.track.rank} for {duration(hang.quiet_s)}"
            yield bar("hang", begin, end, y=lane.body_y, height=lane.body_height, title=title)
            told = f"no progress for {duration(hang.quiet_s)}"
            if text_width(told) < end - begin:
                yield Label(kind="hang-label", x=(begin + end) / 2, y=lane.body_y + 11, text=told, anchor="middle")


def _notice_of(track: Track, notices: Iterable[Notice]) -> Notice | None:
    place = (track.attempt.task, track.attempt.number)
    return next((notice for notice in notices if (notice.task, notice.attempt) == place), None)


def _previous_end_s(track: Track, tracks: Iterable[Track]) -> float | None:
    """When the attempt before this one ended or was given up; None on all but the first lane of an attempt."""
    first = next(other for other in tracks if other.attempt is track.attempt)
    if track is not first:
        return None
    before = next(
        (other.attempt for other in tracks if (other.attempt.task, other.attempt.number) == (track.attempt.task, track.attempt.number - 1)),
        None,
    )
    if before is None:
        return None
    return before.abandoned_s if before.abandoned_s is not None else before.exit.t_s if before.exit is not None else None


def _stair(progress: Progress, scale: Scale, y: float, *, is_only: bool) -> Iterator[Shape]:
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
