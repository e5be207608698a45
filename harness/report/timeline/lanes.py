"""One life of one rank as a lane: labels and symbols on top, saves, steps, and a strip that says what the time was."""

import signal
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from harness.history import AttemptExited
from harness.ledger import Span
from harness.report.notices import Notice
from harness.report.timeline.sampling import TICK_PX, merge, thin
from harness.report.timeline.scale import Scale
from harness.report.timeline.shapes import Bar, Label, Mark, Path, Shape, bar, boxes, text_width, ticks
from harness.report.timeline.strikes import pack
from harness.report.timeline.tracks import Period, Track
from harness.report.wording import count, duration, moment

LABEL_ROW_PX = 12.0
SAVE_PX, STEP_PX, STRIP_PX = 5.0, 10.0, 3.0
"""Heights of what a lane is made of, from top to bottom; above them the rows of labels."""

STRIP_COLUMN_PX = 2.0
"""The strip shows in each column of this width what most of its time was."""

TITLED_SAVES_MAX = 60
"""Saves of a lane that can be pointed at one by one; more are drawn as one path."""

_SIGNALS = {"SIGTERM": "TERM", "SIGKILL": "KILL", "SIGSTOP": "STOP", "SIGTSTP": "TSTP", "SIGCONT": "CONT", "SIGINT": "INT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """How a track is drawn.

    Attributes:
        track: Who.
        scale: The axis.
        y: Top.
        end_s: The last moment that was recorded.
        label_rows: Rows of labels above the bar; close-ups have several.
        names_everything: Whether saves and markers get labels too.
    """

    track: Track
    scale: Scale
    y: float
    end_s: float
    label_rows: int = 1
    names_everything: bool = False

    @property
    def body_y(self) -> float:
        """Top of the bar."""
        return self.y + self.label_rows * LABEL_ROW_PX + 2

    @property
    def strip_y(self) -> float:
        """Top of the strip."""
        return self.body_y + SAVE_PX + STEP_PX + 1

    @property
    def height(self) -> float:
        """From the labels to below the strip."""
        return self.strip_y + STRIP_PX - self.y

    @property
    def began_x(self) -> float:
        """Where the life begins."""
        return self.scale.x(self.track.begin_s)

    @property
    def ended_x(self) -> float:
        """Where it ends."""
        return self.scale.x(self.track.end_s(self.end_s))


def height_of(label_rows: int) -> float:
    """How high a lane is."""
    return label_rows * LABEL_ROW_PX + SAVE_PX + STEP_PX + STRIP_PX + 3


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
    if notice is not None:
        shapes += _grace(lane, notice)
    shapes += [*_life(lane), *_lost(lane), *_steps(lane), *_saves(lane), *_restores(lane), *_strip(lane), *_symbols(lane)]
    if lane.track.is_last:
        shapes += _end(lane, notice)
    return tuple(shapes)


def _life(lane: Lane) -> Iterator[Shape]:
    height = SAVE_PX + STEP_PX
    began_s, ended_s = lane.track.begin_s, lane.track.end_s(lane.end_s)
    title = f"{_name(lane.track)}: {moment(began_s)} s to {moment(ended_s)} s, {count(len(lane.track.steps()), 'step')}"
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
        if sent.signal in ("SIGSTOP", "SIGTSTP") and stopped_s is None:
            stopped_s = sent.t_s
        elif sent.signal in ("SIGCONT", "SIGKILL") and stopped_s is not None:
            yield stopped_s, sent.t_s
            stopped_s = None
    if stopped_s is not None:
        yield stopped_s, max(stopped_s, lane.track.end_s(lane.end_s))


def _steps(lane: Lane) -> Iterator[Shape]:
    seen = [step for step in lane.track.steps() if lane.scale.holds(step.t_s, step.t_s)]
    y = lane.body_y + SAVE_PX
    for kind, is_lost in (("step", False), ("step lost", True)):
        places = thin(lane.scale.x(step.t_s) for step in seen if lane.track.is_lost(step) is is_lost)
        if places:
            yield Path(kind=kind, d=ticks(places, y=y, height=STEP_PX))


def _lost(lane: Lane) -> Iterator[Shape]:
    """Steps that a later life went back behind: from the last one that was kept to the end."""
    steps = lane.track.steps()
    lost = [step for step in steps if lane.track.is_lost(step)]
    if not lost:
        return
    kept_s = [step.t_s for step in steps if not lane.track.is_lost(step) and step.t_s <= lost[0].t_s]
    started = lane.track.life.started if lane.track.life is not None else None
    begin_s = max([*kept_s, started.t_s if started is not None else lane.track.begin_s])
    end_s = max(lane.track.end_s(lane.end_s), begin_s)
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
    for save in saves:
        until_s = min(end_s, lane.scale.end_s) if save.end_s is None else save.end_s
        title = _save_title(save)
        kind = "save" if save.end_s is not None else "save open"
        yield bar(kind, lane.scale.x(save.begin_s), lane.scale.x(until_s), y=lane.body_y, height=SAVE_PX - 1, title=title)


def _save_title(save: Period) -> str:
    if save.end_s is None:
        return f"save of step {save.step} begun at {moment(save.begin_s)} s and never acknowledged"
    return f"save of step {save.step} from {moment(save.begin_s)} s, acknowledged after {duration(save.end_s - save.begin_s)}"


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


def _gap(lane: Lane, previous_end_s: float) -> Iterator[Shape]:
    begin, end = lane.scale.x(previous_end_s), lane.began_x
    if end - begin < BAR_GAP_PX_MIN:
        return
    y = lane.body_y + (SAVE_PX + STEP_PX) / 2
    told = f"requeue {duration(lane.track.begin_s - previous_end_s)}"
    yield Path(kind="requeue", d=f"M{begin:.1f} {y:.1f}H{end:.1f}", title=told)
    if text_width(told) + 8 < end - begin:
        yield Label(kind="quiet", x=(begin + end) / 2, y=y - 4, text=told, anchor="middle")


BAR_GAP_PX_MIN = 3.0
"""A gap between attempts that is shorter is not to be seen."""


def _grace(lane: Lane, notice: Notice) -> Iterator[Shape]:
    """The grace period; what the job did not need of it lies behind its end."""
    if not lane.scale.holds(notice.sent_s, notice.ends_s):
        return
    height = SAVE_PX + STEP_PX
    title = f"grace period: {duration(notice.grace_s)} from {moment(notice.sent_s)} s, over at {moment(notice.ends_s)} s"
    yield bar("grace", lane.scale.x(notice.sent_s), lane.scale.x(notice.ends_s), y=lane.body_y - 1.5, height=height + 3, title=title)
    if lane.scale.begin_s <= notice.ends_s <= lane.scale.end_s:
        x = lane.scale.x(notice.ends_s)
        yield Path(kind="grace-end", d=f"M{x:.1f} {lane.body_y - 4:.1f}v{height + 8:.1f}", title=f"grace ends at {moment(notice.ends_s)} s")
        yield Label(kind="quiet", x=x + 3, y=lane.body_y - 3, text="grace ends")


def _symbols(lane: Lane) -> Iterator[Shape]:
    """Signals and words of the job on the rows above the bar, with as many of their labels as there is room for."""
    named = [(mark, label) for mark, label in _marks(lane) if mark.x >= 0]
    widths = [(mark.x - 4, mark.x + 8 + text_width(label)) for mark, label in named]
    for (mark, label), row in zip(named, pack(widths), strict=True):
        if row >= lane.label_rows:
            if mark.kind != "word":
                yield mark
            continue
        yield mark
        if label and mark.x + 6 + text_width(label) < lane.scale.right + 80:
            yield Label(
                kind="word" if mark.kind == "word" else "mark-label", x=mark.x + 6, y=lane.body_y - 3.5 - row * LABEL_ROW_PX, text=label
            )


def _marks(lane: Lane) -> Iterator[tuple[Mark, str]]:
    def mark(kind: str, t_s: float, title: str) -> Mark:
        x = lane.scale.x(t_s) if lane.scale.begin_s <= t_s <= lane.scale.end_s else -1.0
        return Mark(kind=kind, x=x, y=lane.body_y - 6, title=f"{title} at {moment(t_s)} s")

    for sent in lane.track.signals():
        name = _SIGNALS.get(sent.signal, sent.signal)
        kind = {"TERM": "term", "KILL": "kill"}.get(name, "signal")
        yield mark(kind, sent.t_s, f"{sent.signal} (cause: {sent.cause})"), name
    for seen in lane.track.notices_seen():
        yield mark("seen", seen.t_s, "the job noticed SIGTERM"), "seen" if lane.names_everything else ""
    for done in lane.track.ends_said():
        yield mark("done", done.t_s, f"the job said that it is done with step {done.step}"), "done" if lane.names_everything else ""
    for restore in lane.track.restores():
        told = f"restore {restore.step}"
        yield mark("restored", restore.begin_s if restore.end_s is None else restore.end_s, f"restore of step {restore.step}"), told
    if lane.names_everything:
        for save in lane.track.saves():
            yield mark("word", save.begin_s, _save_title(save)), f"save {save.step}"
        for said in lane.track.markers()[:200]:
            yield mark("word", said.t_s, f"marker {said.name}"), said.name[:40]


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
    yield Bar(kind="exit clean" if is_clean else "exit", x=x - 1, y=lane.body_y - 1.5, width=2, height=SAVE_PX + STEP_PX + 3, title=title)
    texts = [exit_words(end)]
    if notice is not None and notice.margin_s is not None and notice.margin_s > 0:
        texts.insert(0, f"{exit_words(end)}, {duration(notice.margin_s)} of {duration(notice.grace_s)} grace left")
    fitting = [text for text in texts if x + 6 + text_width(text) <= lane.scale.right + 84]
    if fitting:
        yield Label(kind="end", x=x + 6, y=lane.body_y + 11, text=fitting[0])


def exit_words(end: AttemptExited) -> str:
    """How an attempt ended: ``exit 143`` or ``SIGKILL``."""
    if end.signal is None:
        return f"exit {end.exit_code}"
    try:
        return signal.Signals(end.signal).name
    except ValueError:
        return f"signal {end.signal}"


def _name(track: Track) -> str:
    return ", ".join(part for part in (track.label, track.detail) if part)
