"""The main moments of a run in words: what the picture shows, for those who read it and for those who cannot see it."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.history import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    CheckpointsSeen,
    Done,
    Event,
    FaultFailed,
    FaultHealed,
    FaultObserved,
    FaultRequested,
    HangCalled,
    LogLine,
    Marked,
    ObservationLost,
    OperationReached,
    Restored,
    RunClosed,
    SaveBegun,
    SaveEnded,
    SignalSent,
    SigtermSeen,
    Started,
    StepDone,
    TaskFinished,
)
from harness.lineage import Lineage
from harness.report.cluster import ClusterView
from harness.report.timeline.lanes import exit_words
from harness.report.wording import count, duration

MOMENTS_MAX = 160
"""Rows of the table; of a longer story the beginning and the end are told."""

_KEPT_AT_END = 60

EVERYDAY = (StepDone, SaveBegun, SaveEnded, LogLine, BarrierReached, OperationReached, CheckpointsSeen, Marked)
"""What happens all the time; of saves only the last of each life is told: the one that a resume goes back to."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One row; ``kind`` is ``fault``, ``platform`` or ``job``."""

    t_s: float
    kind: str
    where: str
    what: str


def moments_of(lineage: Lineage, cluster: ClusterView | None = None) -> tuple[tuple[Moment, ...], int]:
    """The rows in order of time, and how many are left out of their middle."""
    last_saves = set(_last_saves(lineage))
    notable = [event for event in lineage.events if not isinstance(event, EVERYDAY) or id(event) in last_saves]
    told = [moment for event in notable if (moment := _moment(event)) is not None]
    found = sorted([*told, *(_of_cluster(cluster) if cluster is not None else ())], key=lambda moment: moment.t_s)
    left_out = len(found) - MOMENTS_MAX
    if left_out <= 0:
        return tuple(found), 0
    return (*found[: MOMENTS_MAX - _KEPT_AT_END], *found[-_KEPT_AT_END:]), left_out


def _last_saves(lineage: Lineage) -> Iterator[int]:
    """Identities of the last save of each life, its beginning and its end."""
    for attempt in lineage.attempts:
        for life in attempt.incarnations:
            for saves in (life.saves_begun, life.saves_ended):
                if saves:
                    yield id(saves[-1])


def _moment(event: Event) -> Moment | None:
    for kind, tell in (("fault", _of_fault), ("platform", _of_platform), ("job", _of_job)):
        told = tell(event)
        if told:
            return Moment(event.t_s, kind, where(event), told)
    return None


def _of_cluster(view: ClusterView) -> Iterator[Moment]:
    """What queues, requests, nodes and pods went through: each change once, however often the object was seen."""
    for queue in view.queues:
        for stay in queue.stays:
            said = f": {stay.notes[0][1]}" if stay.notes else ""
            flavor = f" ({stay.flavor})" if stay.flavor else ""
            yield Moment(stay.begin_s, "platform", f"task {queue.task} queue", f"{stay.state}{flavor}{said}")
        for pod in queue.pods:
            for spell in pod.spells:
                yield Moment(spell.begin_s, "platform", f"task {queue.task} {pod.role}", f"pod {pod.name} {spell.state} on {pod.place}")
    for row in view.requests:
        told = "gone" if row.condition is None else f"{row.condition.type}={row.condition.status} {row.condition.reason}"
        yield Moment(row.t_s, "platform", f"task {row.task} request", f"{row.name}: {told}")
    for pool in view.pools:
        for node in pool.nodes:
            yield from (Moment(spell.begin_s, "platform", pool.name, f"node {node.name} {spell.state}") for spell in node.spells)
            gone_s = [spell.end_s for spell in node.spells if spell.end_s not in {other.begin_s for other in node.spells}]
            yield from (Moment(t_s, "platform", pool.name, f"node {node.name} gone") for t_s in gone_s if t_s is not None)
    for scaled in view.scalings:
        yield Moment(scaled.t_s, "platform", scaled.pool, f"{scaled.error or count(scaled.nodes, 'node')}: {scaled.why}")
    for left in view.left:
        yield Moment(left.t_s, "platform", "cluster", f"left behind: {left.what} {left.name}")


def _of_fault(event: Event) -> str:
    match event:
        case FaultRequested():
            return f"{event.injection} requested" + (f": {event.detail}" if event.detail else "")
        case FaultObserved():
            return f"{event.injection} observed: {event.evidence}"
        case FaultHealed():
            return f"{event.injection} healed: {event.evidence}"
        case FaultFailed():
            return f"{event.injection} could not act: {event.detail}"
    return ""


def _of_platform(event: Event) -> str:
    match event:
        case AttemptStarted():
            return f"attempt started (process {event.pid})"
        case SignalSent():
            return f"{event.signal} sent (cause: {event.cause})"
        case AttemptExited():
            return f"{exit_words(event)} (cause: {event.cause}), {'to be retried' if event.retried else 'not to be retried'}"
        case AttemptAbandoned():
            return "held for dead while it runs"
        case TaskFinished():
            return f"task {'succeeded' if event.succeeded else 'failed'} after {event.attempts} attempts"
        case HangCalled():
            ranks = ", ".join(map(str, event.ranks[:8]))
            return f"hang called: no progress of rank {ranks} for {duration(event.quiet_s)}"
        case ObservationLost():
            return f"{event.count} {event.what} not recorded: {event.detail}"
        case RunClosed():
            return f"run ended: {event.reason}" + (f" ({event.detail})" if event.detail else "")
    return ""


def _of_job(event: Event) -> str:
    match event:
        case Restored():
            return f"restored step {event.step}"
        case Started():
            return "starts training from scratch" if event.restored_step == 0 else f"goes on with training from step {event.restored_step}"
        case SigtermSeen():
            return "noticed SIGTERM"
        case SaveBegun():
            return f"began its last save, of step {event.step}"
        case SaveEnded():
            return f"acknowledged its last save, of step {event.step}"
        case Done():
            return f"said that it is done with step {event.step}"
    return ""


def where(event: Event) -> str:
    """The attempt of an event, and its task and rank where they are not the first; empty for one of the whole run."""
    task, attempt, rank = (getattr(event, name, None) for name in ("task", "attempt", "rank"))
    parts = [f"task {task}"] if task else []
    parts += [f"attempt {attempt}"] if attempt is not None else []
    parts += [f"rank {rank}"] if rank else []
    return ", ".join(part for part in parts if part != "rank -1")
