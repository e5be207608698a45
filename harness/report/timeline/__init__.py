"""The time-line of a run: one picture of all of it, close-ups of what happened around faults, and the same in words."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.history import HangCalled
from harness.report.notices import notices_of
from harness.report.record import Record
from harness.report.strikes import Strike
from harness.report.timeline.moments import Moment, moments_of
from harness.report.timeline.picture import STRIKES_MAX, Picture, Scene, paint
from harness.report.timeline.progress import progress_of
from harness.report.timeline.queues import QUEUES_MAX
from harness.report.timeline.scale import Scale
from harness.report.timeline.shapes import LEFT_PX, RIGHT_PX, WIDTH_PX
from harness.report.timeline.tracks import tracks_of
from harness.report.wording import count, duration, moment

__all__ = ["Moment", "Picture", "Timeline", "timeline_of"]

STAIRS_MAX = 4
"""Tasks whose progress is drawn; more make the picture longer than a screen."""

CLOSE_UPS_MAX = 6
"""Close-ups on a page; the same fault in later attempts looks the same."""

CLOSE_UP_SHARE_MAX = 0.4
"""A close-up that shows more of the run than this shows nothing that the whole picture does not."""

TICKED_STEPS_MAX = 600
"""More steps in one lane than there are places for ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All pictures of a run.

    Attributes:
        whole: The whole run; None when nothing was recorded that has a place in time.
        close_ups: Around faults.
        moments, moments_left_out: The same in words.
        notes: What the picture leaves out.
    """

    whole: Picture | None
    close_ups: tuple[Picture, ...]
    moments: tuple[Moment, ...]
    moments_left_out: int
    notes: tuple[str, ...]


def timeline_of(record: Record) -> Timeline:
    """Draw a run."""
    moments, left_out = moments_of(record.lineage, record.cluster)
    tracks, hidden = tracks_of(record)
    steps = record.scenario.workload.steps if record.scenario is not None else 0
    tasks = _tasks_to_draw(record)
    scene = Scene(
        tracks=tracks,
        strikes=record.strikes,
        notices=notices_of(record),
        hangs=[event for event in record.events if isinstance(event, HangCalled)],
        progress=[progress_of(record.lineage, task, steps=steps) for task in tasks],
        end_s=record.end_s,
        cluster=record.cluster,
    )
    begin_s = min((event.t_s for event in record.events), default=0.0)
    whole = None
    if tracks or record.strikes or record.cluster is not None:
        scale = Scale(begin_s=min(begin_s, 0.0), end_s=record.end_s, left=LEFT_PX, width=WIDTH_PX - LEFT_PX - RIGHT_PX)
        whole = paint(scene, scale, identity="whole", title=f"Time-line of {record.name}", description=_description(record, scene))
    return Timeline(
        whole=whole,
        close_ups=tuple(_close_ups(scene)),
        moments=moments,
        moments_left_out=left_out,
        notes=tuple(_notes(scene, hidden, len(record.lineage.tasks) - len(tasks))),
    )


def _tasks_to_draw(record: Record) -> list[int]:
    """Those that were hit first."""
    hit = {strike.task for strike in record.strikes}
    return sorted(sorted(record.lineage.tasks, key=lambda task: (task not in hit, task))[:STAIRS_MAX])


def _close_ups(scene: Scene) -> Iterator[Picture]:
    windows = close_up_windows(scene)
    for index, (begin_s, end_s, strikes) in enumerate(windows[:CLOSE_UPS_MAX]):
        scale = Scale(begin_s=begin_s, end_s=end_s, left=LEFT_PX, width=WIDTH_PX - LEFT_PX - RIGHT_PX, zero_s=strikes[0].requested_s)
        near = Scene(
            tracks=[track for track in scene.tracks if track.attempt.task in {strike.task for strike in strikes}],
            strikes=strikes,
            notices=scene.notices,
            hangs=scene.hangs,
            progress=(),
            end_s=scene.end_s,
            label_rows_max=5,
            names_everything=True,
        )
        names = ", then ".join(dict.fromkeys(strike.injection for strike in strikes))
        title = f"Close-up of {names} in attempt {strikes[0].attempt}, from {moment(strikes[0].requested_s)} s"
        described = f"{duration(end_s - begin_s)} of the run; the axis counts from the request of {strikes[0].injection}."
        yield paint(near, scale, identity=f"close-up-{index}", title=title, description=described)


def close_up_windows(scene: Scene) -> list[tuple[float, float, list[Strike]]]:
    """Spans of time around faults that are too short to be seen in the whole picture; those that overlap are one.

    Without a signal or an end in it there is nothing to see but the fault, and that is in the whole picture too.
    """
    found: list[tuple[float, float, list[Strike]]] = []
    for strike in sorted(scene.strikes, key=lambda strike: strike.requested_s):
        end_s = _effect_end_s(strike, scene)
        pad_s = max((end_s - strike.requested_s) * 0.25, 0.002)
        begin_s, end_s = strike.requested_s - pad_s, end_s + pad_s
        if found and begin_s <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end_s), [*found[-1][2], strike])
        else:
            found.append((begin_s, end_s, [strike]))
    moments = [event.t_s for track in scene.tracks for event in (*track.attempt.signals, track.attempt.exit) if event is not None]
    return [
        (begin_s, end_s, strikes)
        for begin_s, end_s, strikes in found
        if end_s - begin_s <= CLOSE_UP_SHARE_MAX * scene.end_s and any(begin_s <= t_s <= end_s for t_s in moments)
    ]


def _effect_end_s(strike: Strike, scene: Scene) -> float:
    """When it was seen to act, and the attempt that it ended was gone."""
    ends = [
        track.attempt.exit.t_s
        for track in scene.tracks
        if track.attempt.exit is not None
        and (track.attempt.task, track.attempt.number) == (strike.task, strike.attempt)
        and track.attempt.exit.cause in ("fault", "timeout", "cancel", "grace")
        and track.attempt.exit.t_s >= strike.requested_s
    ]
    return max([strike.last_s, *ends])


def _description(record: Record, scene: Scene) -> str:
    attempts = record.lineage.attempts
    steps = sum(len(life.steps) for attempt in attempts for life in attempt.incarnations)
    lost = sum(loss.steps for progress in scene.progress for loss in progress.losses)
    observed = sum(strike.observed_s is not None for strike in scene.strikes)
    durable = ", ".join(f"step {progress.durable[-1][1]} of task {progress.task}" for progress in scene.progress if progress.durable)
    return (
        f"{duration(scene.end_s)}, {count(len(attempts), 'attempt')}, {count(steps, 'step')} of first ranks of which {lost} were lost, "
        f"{count(len(scene.strikes), 'fault')} requested and {observed} observed; {_admitted(record)}"
        f"durable at the end: {durable or 'nothing that was seen'}. "
        "The table of moments below says the same in words."
    )


def _admitted(record: Record) -> str:
    flavors = [row.admission.flavor for row in record.cluster.admissions if row.admission is not None] if record.cluster else []
    return f"admitted to {', then '.join(flavors)}; " if flavors else ""


def _notes(scene: Scene, hidden: int, tasks_hidden: int) -> Iterator[str]:
    if any(len(track.steps()) > TICKED_STEPS_MAX for track in scene.tracks):
        yield "There are more steps than places for them: where ticks would run together an area stands for them."
    if scene.cluster is not None and len(scene.cluster.queues) > QUEUES_MAX:
        yield f"The queues of {count(len(scene.cluster.queues) - QUEUES_MAX, 'task')} more are not drawn; the table of admissions has them."
    if hidden:
        yield f"{count(hidden, 'lane')} more are not drawn; those that a fault, a signal or a hang hit come first."
    if tasks_hidden > 0:
        yield f"The progress of {count(tasks_hidden, 'task')} more is not drawn."
    if len(scene.strikes) > STRIKES_MAX:
        yield f"{count(len(scene.strikes) - STRIKES_MAX, 'fault')} more are not drawn; the table of faults has all of them."
    if any(not progress.is_surveyed and progress.durable for progress in scene.progress):
        yield "Storage was not looked at: the durable step is what the job acknowledged."
