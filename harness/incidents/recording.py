"""An incident as a history: what entries say in the words of our own runs, so that lineage, ledger and report read it like one."""

from collections.abc import Iterator, Sequence

from harness.history import (
    SCHEMA_VERSION,
    AttemptExited,
    Event,
    ExecutionFinished,
    ExecutionStarted,
    ObservationLost,
    RunClosed,
    RunOpened,
    TaskFinished,
)
from harness.incidents.timeline import GRACE_S, Timeline
from harness.incidents.timestamps import write_timestamp
from harness.scenario import Platform

DEFAULTS = Platform()
"""What Cloud Run grants where nobody says anything else; the document of an incident says where that is assumed."""


def history_of(timeline: Timeline, *, name: str, run_id: str, argv: Sequence[str], malformed: int = 0) -> list[Event]:
    """The events of an incident, with the header and the end that a history has.

    A history says seconds since it was opened: here since the first entry.
    """
    header = RunOpened(
        t_s=0.0,
        schema=SCHEMA_VERSION,
        run_id=run_id,
        scenario=name,
        target=timeline.platform,
        seed=0,
        opened_at=write_timestamp(timeline.epoch_ns),
        argv=tuple(argv),
    )
    end_s = max((each.event.t_s for each in timeline.seen), default=0.0)
    told = sorted([*(each.event for each in timeline.seen), *_unseen_ends(timeline)], key=lambda event: event.t_s)
    events = [header, *_started(timeline), *told, *_finished(timeline)]
    if malformed:
        events.append(ObservationLost(t_s=end_s, what="logs", count=malformed, detail="parts of the export that are no entries"))
    return [*events, RunClosed(t_s=end_s, reason="finished", detail="made from the entries of a log", ended_s=end_s)]


def assumptions(timeline: Timeline) -> tuple[str, ...]:
    """What the history says and no entry does."""
    if timeline.platform != "cloud-run":
        return ()
    granted = timeline.granted
    told = [f"a grace of {GRACE_S:g} s"]
    if granted.max_retries is None:
        told.append(f"{_retries(timeline)} retries")
    if granted.timeout_s is None:
        told.append(f"a timeout of {DEFAULTS.timeout_s:g} s per attempt")
    return tuple(told)


def _retries(timeline: Timeline) -> int:
    """As granted; else the default, or as many as were used."""
    used = max((story.number for story in timeline.attempts), default=0)
    return timeline.granted.max_retries if timeline.granted.max_retries is not None else max(DEFAULTS.max_retries, used)


def _started(timeline: Timeline) -> Iterator[Event]:
    if timeline.platform == "cloud-run":
        granted = timeline.granted
        yield ExecutionStarted(
            t_s=0.0,
            execution=timeline.name,
            tasks=granted.tasks or max(timeline.tasks, default=0) + 1,
            max_retries=_retries(timeline),
            timeout_s=granted.timeout_s if granted.timeout_s is not None else DEFAULTS.timeout_s,
            grace_s=GRACE_S,
        )


def _unseen_ends(timeline: Timeline) -> Iterator[Event]:
    """Attempts that another one followed and whose end no entry tells: they ended with their last word, as far as anybody knows."""
    for stories in timeline.tasks.values():
        for story in stories[:-1]:
            if story.exit is None:
                t_s = timeline.t_s(story.last)
                yield AttemptExited(t_s=t_s, task=story.task, attempt=story.number, cause="platform", retried=True)


def _finished(timeline: Timeline) -> Iterator[Event]:
    """What the end of the execution says of its tasks."""
    ending = timeline.ending
    if ending is None:
        return
    t_s = timeline.t_s(ending.entry)
    for task, stories in timeline.tasks.items():
        yield TaskFinished(t_s=t_s, task=task, succeeded=stories[-1].succeeded, attempts=len(stories), detail=ending.entry.text[:300])
    yield ExecutionFinished(t_s=t_s, succeeded=ending.succeeded, failed=ending.failed, cancelled=ending.cancelled, retried=ending.retried)
