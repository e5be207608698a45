"""The picture of a run, on one axis of time.

Faults on top, queues and node pools where there is a cluster, a lane for each life of each rank, and how far each task came below.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.history import HangCalled
from harness.report.cluster import ClusterView
from harness.report.notices import Notice
from harness.report.strikes import Strike
from harness.report.timeline import lanes
from harness.report.timeline.faults import draw_faults, draw_guides
from harness.report.timeline.lane import Lane
from harness.report.timeline.progress import Progress
from harness.report.timeline.queues import draw_cluster
from harness.report.timeline.scale import Scale, Tick
from harness.report.timeline.shapes import BAR_PX_MIN, WIDTH_PX, Bar, Label, Shape, bar, text_width
from harness.report.timeline.stairs import STAIR_PX, draw_stair
from harness.report.timeline.symbols import arrange
from harness.report.timeline.tracks import Track
from harness.report.wording import duration

LANE_GAP_PX, RANK_GAP_PX, AXIS_PX = 10.0, 4.0, 24.0
"""Below an attempt or a plot, between ranks of an attempt, and for the labels of the axis."""

STRIKES_MAX = 40
"""Faults of one picture; a scenario declares at most 16, each for some attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a picture shows.

    Attributes:
        tracks, strikes, notices, hangs, progress: The things to be drawn.
        cluster: What was seen of a cluster, drawn above the lanes; None for nothing.
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
    cluster: ClusterView | None = None


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
        """What a legend must explain; a state of the cluster that is too short to be seen explains itself by its title alone."""
        return frozenset(shape.kind for shape in self.shapes if not _is_sliver(shape))

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
    fault_shapes, lanes_y = draw_faults(strikes, scale)
    cluster_shapes: list[Shape] = []
    if scene.cluster is not None:
        cluster_shapes, lanes_y = draw_cluster(scene.cluster, scale, lanes_y, scene.end_s)
    placed = list(_place(scene, scale, lanes_y))
    stairs_y = placed[-1].y + placed[-1].height + LANE_GAP_PX if placed else lanes_y
    axis_y = stairs_y + (STAIR_PX + LANE_GAP_PX) * len(scene.progress)
    shapes += draw_guides(strikes, scale, axis_y)
    shapes += [*fault_shapes, *cluster_shapes]
    for lane in placed:
        shapes += _names(lane)
        shapes += lanes.draw(lane, notice=_notice_of(lane.track, scene.notices), previous_end_s=_previous_end_s(lane.track, scene.tracks))
        shapes += _hangs(lane, scene.hangs)
    for index, progress in enumerate(scene.progress):
        shapes += draw_stair(progress, scale, stairs_y + index * (STAIR_PX + LANE_GAP_PX), is_only=len(scene.progress) == 1)
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


def _is_sliver(shape: Shape) -> bool:
    return isinstance(shape, Bar) and shape.width <= BAR_PX_MIN and shape.kind.startswith(("stay ", "pod ", "node "))


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
