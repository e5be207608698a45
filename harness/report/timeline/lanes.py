"""One life of one rank drawn: its bar, the gap before it, the grace period, its work, symbols above it, and its end."""

import signal
from collections.abc import Iterator

from harness.history import AttemptExited
from harness.report.notices import Notice
from harness.report.timeline.lane import LABEL_ROW_PX, Lane
from harness.report.timeline.shapes import Bar, Label, Mark, Path, Shape, bar, number, text_width
from harness.report.timeline.work import draw_work
from harness.report.wording import count, duration, limit, moment

GAP_PX_MIN = 3.0
"""A gap between attempts that is shorter is not to be seen."""

END_PX_MAX = 88.0
"""Room right of the axis for how an attempt ended."""


def draw(lane: Lane, *, notice: Notice | None, previous_end_s: float | None) -> tuple[Shape, ...]:
    """All of a lane.

    Args:
        lane: Which.
        notice: The SIGTERM with a grace period that the attempt got, on the lane that shows it.
        previous_end_s: When the attempt before ended, on the first lane of an attempt.
    """
    shapes: list[Shape] = []
    if previous_end_s is not None:
        shapes += _gap(lane, previous_end_s)
    shapes += _life(lane)
    if notice is not None:
        shapes += _grace(lane, notice)
    shapes += [*draw_work(lane), *_symbols(lane)]
    if lane.track.is_last:
        shapes += _end(lane, notice)
    return tuple(shapes)


def _life(lane: Lane) -> Iterator[Shape]:
    height = lane.body_height
    began_s, ended_s = lane.track.begin_s, lane.track.end_s(lane.end_s)
    title = f"{lane.track.name}: {moment(began_s)} s to {moment(ended_s)} s, {count(len(lane.track.steps()), 'step')}"
    yield bar("life", lane.began_x, lane.ended_x, y=lane.body_y, height=height, title=title)
    abandoned_s = lane.track.attempt.abandoned_s
    if abandoned_s is not None and abandoned_s < ended_s:
        told = f"held for dead at {moment(abandoned_s)} s, and still running for {duration(ended_s - abandoned_s)}"
        yield bar("zombie", lane.scale.x(abandoned_s), lane.ended_x, y=lane.body_y, height=height, title=told)
    for begin_s, end_s in _pauses(lane):
        told = f"stood still for {duration(end_s - begin_s)}"
        yield bar("paused", lane.scale.x(begin_s), lane.scale.x(end_s), y=lane.body_y, height=height, title=told)


def _pauses(lane: Lane) -> Iterator[tuple[float, float]]:
    stopped_s: float | None = None
    for sent in sorted(lane.track.signals(), key=lambda sent: sent.t_s):
        if sent.signal == "SIGSTOP" and stopped_s is None:
            stopped_s = sent.t_s
        elif sent.signal in ("SIGCONT", "SIGKILL") and stopped_s is not None:
            yield stopped_s, sent.t_s
            stopped_s = None
    if stopped_s is not None:
        yield stopped_s, max(stopped_s, lane.track.end_s(lane.end_s))


def _gap(lane: Lane, previous_end_s: float) -> Iterator[Shape]:
    begin, end = lane.scale.x(previous_end_s), lane.began_x
    if end - begin < GAP_PX_MIN:
        return
    y = lane.body_y + lane.body_height / 2
    told = f"between attempts {duration(lane.track.begin_s - previous_end_s)}"
    yield Path(kind="requeue", d=f"M{begin:.1f} {y:.1f}H{end:.1f}", title=told)
    if text_width(told) + 8 < end - begin:
        yield Label(kind="quiet", x=(begin + end) / 2, y=y - 4, text=told, anchor="middle")


def _grace(lane: Lane, notice: Notice) -> Iterator[Shape]:
    """The grace period; what the job did not need of it lies behind its end."""
    if not lane.scale.holds(notice.sent_s, notice.ends_s):
        return
    height = lane.body_height
    title = f"grace period: {limit(notice.grace_s)} from {moment(notice.sent_s)} s, over at {moment(notice.ends_s)} s"
    yield bar("grace", lane.scale.x(notice.sent_s), lane.scale.x(notice.ends_s), y=lane.body_y - 1.5, height=height + 3, title=title)
    if lane.scale.begin_s <= notice.ends_s <= lane.scale.end_s:
        x = lane.scale.x(notice.ends_s)
        yield Path(kind="grace-end", d=f"M{x:.1f} {lane.body_y - 4:.1f}v{height + 8:.1f}", title=f"grace ends at {moment(notice.ends_s)} s")


def _symbols(lane: Lane) -> Iterator[Shape]:
    for symbol, row in lane.symbols:
        y = lane.body_y - 6 - row * LABEL_ROW_PX
        if row:
            yield Path(kind="leader", d=f"M{number(symbol.x)} {number(y + 4)}V{number(lane.body_y)}")
        yield Mark(kind=symbol.kind, x=symbol.x, y=y, title=symbol.title)
        if symbol.label:
            yield Label(kind="word-label" if symbol.kind == "word" else "mark-label", x=symbol.x + 6, y=y + 3.5, text=symbol.label)


def _end(lane: Lane, notice: Notice | None) -> Iterator[Shape]:
    end = lane.track.attempt.exit
    if end is None:
        if lane.ended_x >= lane.scale.right - 1:
            yield Label(kind="quiet", x=lane.ended_x + 6, y=lane.body_y + 11, text="no end seen")
        return
    if not lane.scale.begin_s <= end.t_s <= lane.scale.end_s:
        return
    x = lane.scale.x(end.t_s)
    is_clean = end.exit_code == 0
    title = f"{exit_words(end)} at {moment(end.t_s)} s (cause: {end.cause})"
    yield Bar(kind="exit clean" if is_clean else "exit", x=x - 1, y=lane.body_y - 1.5, width=2, height=lane.body_height + 3, title=title)
    texts = [exit_words(end)]
    if notice is not None and notice.margin_s is not None and notice.margin_s > 0:
        texts.insert(0, f"{exit_words(end)}, {duration(notice.margin_s)} of {limit(notice.grace_s)} grace left")
    fitting = [text for text in texts if x + 6 + text_width(text) <= lane.scale.right + END_PX_MAX]
    if fitting:
        yield Label(kind="end", x=x + 6, y=lane.body_y + 11, text=fitting[0])


def exit_words(end: AttemptExited) -> str:
    """How an attempt ended: ``exit 143`` or ``SIGKILL``."""
    if end.signal is None:
        return f"exit {end.exit_code}" if end.exit_code is not None else "its end was not seen"
    try:
        return signal.Signals(end.signal).name
    except ValueError:
        return f"signal {end.signal}"
