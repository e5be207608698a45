"""The history tells the whole run: what nobody recorded cannot be judged."""

from collections.abc import Iterator

from harness.checkers.evidence import Evidence, unknown, valid
from harness.history import SCHEMA_VERSION, Booted, FaultHealed, Marked, SaveBegun, SaveEnded, Started, WorkloadSeen
from harness.lineage import Attempt
from harness.verdict import Finding, counted

CHECKER = "recording"

OUTSIDE_CAUSES = ("fault", "timeout", "cancel", "grace", "stop", "platform")
"""Signals and ends by anyone but the job: an attempt that got one may have died before its first word."""


def check(evidence: Evidence) -> Finding:
    """Look for gaps. Never invalid: a gap is no broken promise, and nothing is proved by it either."""
    gaps = [*_gaps_of_the_file(evidence), *_gaps_of_the_job(evidence), *_gaps_of_storage(evidence), *_gaps_of_the_faults(evidence)]
    if gaps:
        return unknown(CHECKER, gaps[0], *gaps)
    attempts = evidence.lineage.attempts
    spoken = sum(len(life.events) for attempt in attempts for life in attempt.incarnations)
    return valid(
        CHECKER,
        f"{counted(len(evidence.events), 'event')} from header to end, {spoken} of them the job's, in {counted(len(attempts), 'attempt')}",
    )


def _gaps_of_the_file(evidence: Evidence) -> Iterator[str]:
    opened, closed = evidence.opened, evidence.closed
    if opened is None:
        yield "the history has no header: its beginning is missing"
    elif opened.schema != SCHEMA_VERSION:
        yield f"the history has schema {opened.schema}, this reader knows {SCHEMA_VERSION}"
    if evidence.history.is_torn:
        yield f"the last line of the history is torn, after {len(evidence.events)} whole ones: the harness was killed while it wrote"
    if closed is None:
        yield "the run was never closed: the harness was killed before it ended"
    elif closed.reason in ("interrupted", "error"):
        yield f"the run was closed at {closed.t_s:.2f} s as {closed.reason}" + (f": {closed.detail}" if closed.detail else "")
    for lost in evidence.lost_words():
        yield f"{lost.count} {lost.what} were not recorded at {lost.t_s:.2f} s: {lost.detail}"


def _gaps_of_the_job(evidence: Evidence) -> Iterator[str]:
    if not evidence.lineage.attempts and not evidence.of_type(WorkloadSeen):  # in a queue it may wait to the end without one
        yield "no attempt was ever seen"
    if not evidence.scenario.workload.speaks_protocol:
        return
    for attempt in evidence.lineage.attempts:
        words = (word for life in attempt.incarnations for word in life.events)
        # A coordinator that fails before any rank has started, as Ray's does, has only markers of its own to say.
        if any(isinstance(word, Booted | Started | Marked) for word in words) or _was_hit(attempt, evidence):
            continue
        end = "did not end" if attempt.exit is None else f"ended at {attempt.exit.t_s:.2f} s"
        who = f"task {attempt.task} attempt {attempt.number} {end}"
        yield f"{who} and said neither boot nor start nor a marker, though the workload speaks the protocol"


def _was_hit(attempt: Attempt, evidence: Evidence) -> bool:
    place = (attempt.task, attempt.number)
    faults = any((fault.task, fault.attempt) == place for fault in evidence.requested())
    is_ended = attempt.exit is not None and attempt.exit.cause in OUTSIDE_CAUSES
    return faults or is_ended or any(signal.cause in OUTSIDE_CAUSES for signal in attempt.signals)


def _gaps_of_storage(evidence: Evidence) -> Iterator[str]:
    """A checkpoint that lies there and whose save nobody recorded: the job saves in a way that is not seen.

    A silent job's last words may be lost with its output, so of it only the first save is demanded.
    """
    workload = evidence.scenario.workload
    if not workload.speaks_protocol and not workload.outside.logs.saved:
        return
    for task in evidence.lineage.tasks:
        words: tuple[SaveBegun | SaveEnded, ...] = evidence.of_type(SaveBegun) + evidence.of_type(SaveEnded)
        saved = {event.step for event in words if event.task == task}
        if workload.layout == "files":
            yield from () if saved else _files_of_no_save(task, evidence)
            continue
        if saved and not workload.speaks_protocol:
            continue
        for survey in evidence.lineage.surveys(task):
            unseen = [stored for stored in survey.looked_at if stored.is_sound and 0 <= stored.step not in saved]
            if unseen:
                step, t_s = unseen[0].step, survey.seen.t_s
                yield f"task {task}: a checkpoint of step {step} was on storage at {t_s:.2f} s, and no save of that step was recorded"
                break


def _files_of_no_save(task: int, evidence: Evidence) -> Iterator[str]:
    """What lies there may be anything, until a save was due and the job spoke of none: then it may be that save."""
    every = evidence.scenario.workload.save_every
    steps = [step.step for life in evidence.lineage.incarnations_of(task) for step in life.steps]
    looks = (survey for survey in evidence.lineage.surveys(task) if any(stored.is_good for stored in survey.held.values()))
    first = next(looks, None) if every and max(steps, default=0) >= every else None
    if first is not None:
        there = f"task {task}: files lay in the checkpoint directory at {first.seen.t_s:.2f} s"
        yield f"{there}, a save was due every {every} steps, and none was ever recorded"


def _gaps_of_the_faults(evidence: Evidence) -> Iterator[str]:
    """A fault that was seen to act and not undone goes on acting on what is judged as its aftermath."""
    healed = {(event.injection, event.attempt) for event in evidence.of_type(FaultHealed)}
    requested = {(event.injection, event.attempt) for event in evidence.requested()}
    for event in evidence.observed():
        place = (event.injection, event.attempt)
        if place in requested and place not in healed:
            yield f"{place[0]} of attempt {place[1]}, observed at {event.t_s:.2f} s, was never healed"
