"""Diagnoses of an execution of a Cloud Run job: task by task, attempt by attempt.

Source: facts of the guide for long GPU jobs; https://docs.cloud.google.com/run/docs/container-contract#instance-shutdown.
"""

from collections.abc import Iterator, Sequence

from harness.incidents.absences import diagnose_absences
from harness.incidents.advice import ADVICE
from harness.incidents.cadence import Cadence
from harness.incidents.cloud_run import PLAYED_LABEL
from harness.incidents.continuity import diagnose_continuity
from harness.incidents.diagnosis import Certainty, Diagnosis, DiagnosisKind, evidence_of
from harness.incidents.entries import Entry
from harness.incidents.finishes import diagnose_finish
from harness.incidents.progress import Progress
from harness.incidents.resumes import diagnose_resumes, diagnose_saves
from harness.incidents.timeline import AttemptStory, Ending, Timeline
from harness.verdict import Outcome, counted

RETRY_WAIT_S = 600.0
"""How long an export must go on after a death for a missing attempt to be missing. Cloud Run retries at once; that a GPU may take minutes
to be placed is assumed."""


def diagnose_execution(timeline: Timeline) -> list[Diagnosis]:
    """Everything that the entries show of an execution, but whether all is well."""
    found: list[Diagnosis] = []
    cadence = Cadence(Progress(timeline))
    for stories in timeline.tasks.values():
        for index, story in enumerate(stories):
            found += diagnose_end(story, timeline)
            found += diagnose_saves(story, stories[index + 1 :], is_over=story.exit is not None or index + 1 < len(stories))
            found += diagnose_resumes(stories[:index], story)
            found += diagnose_continuity(stories[:index], story, cadence)
            found += diagnose_finish(stories, story, cadence)
        found += _diagnose_last(stories, timeline)
    if not any(diagnosis.kind == "retries-exhausted" for diagnosis in found):
        found += _diagnose_failure(timeline)
    return [*found, *diagnose_absences(timeline), *_diagnose_cancel(timeline)]


def diagnose_end(story: AttemptStory, timeline: Timeline) -> Iterator[Diagnosis]:
    """How an attempt ended."""
    preempted, timed_out, memory = (story.platform.get(word) for word in ("preempted", "timed-out", "out-of-memory"))
    exited = story.exit[1] if story.exit is not None else None
    if preempted is not None:
        is_played = PLAYED_LABEL in preempted.labels
        how = (
            "was taken by the harness, which played the platform's maintenance"
            if is_played
            else "was taken by the platform for maintenance"
        )
        certainty: Certainty = "seen" if is_played else "assumed"
        yield _of(story, "preempted", Outcome.VALID, certainty, how, preempted, story.sigterm, exited)
    if timed_out is not None:
        seconds = timeline.granted.timeout_s
        limit = f" of {seconds:g} s" if seconds is not None else ""
        how = f"used up its timeout{limit}: its own limit ended it, not the platform"
        yield _of(story, "timed-out", Outcome.INVALID, "seen", how, timed_out, exited)
    if memory is not None:
        yield _of(story, "out-of-memory", Outcome.INVALID, "seen", "was killed for want of memory", memory, exited)
    if timeline.is_cancelled and story is timeline.tasks[story.task][-1]:
        return
    if story.notice is not None and preempted is None and timed_out is None:
        how = "got SIGTERM, and no entry says why" if story.sigterm is not None else "ended by SIGTERM, and no entry says why"
        yield _of(story, "terminated", Outcome.VALID, "seen", how, story.notice, exited)
    if not story.succeeded and exited is not None and story.notice is None and memory is None:
        yield from _diagnose_death(story, exited, timeline)


def _diagnose_death(story: AttemptStory, exited: Entry, timeline: Timeline) -> Iterator[Diagnosis]:
    """A death that nobody announced."""
    if story.signal == 9:
        yield _of(story, "killed-without-notice", Outcome.VALID, "inferred", "was killed, and nothing had announced it", exited)
        return
    assert story.exit is not None
    code, signal = story.exit[0].exit_code, story.exit[0].signal
    how = f"ended by itself with exit code {code}" if code is not None else f"died of signal {signal}"
    after = timeline.tasks[story.task][-1]
    if after is not story and after.succeeded:
        how += f"; attempt {after.number} completed"
    last = next((entry for line, entry in reversed(story.lines()) if line.stream in ("stderr", "stdout")), None)
    yield _of(story, "failed-by-itself", Outcome.INVALID, "seen", how, exited, last)


def _diagnose_last(stories: Sequence[AttemptStory], timeline: Timeline) -> Iterator[Diagnosis]:
    """What became of a task whose last attempt did not succeed."""
    last, ending = stories[-1], timeline.ending
    if last.succeeded or timeline.is_cancelled or (ending is not None and ending.is_success):
        return
    exited = last.exit[1] if last.exit is not None else None
    attempts = counted(last.number + 1, "attempt")
    if ending is not None and ending.failed and exited is None and not _has_failed(last, ending):
        yield from _diagnose_untold(last, ending, timeline)
    elif ending is not None and ending.failed:
        how = f"was the last of {attempts}, and the execution failed"
        yield _of(last, "retries-exhausted", Outcome.INVALID, "seen", how, ending.entry, exited)
    elif exited is not None and timeline.granted.max_retries is not None and last.number >= timeline.granted.max_retries:
        how = f"was the last of {attempts}, and no more are granted"
        yield _of(last, "retries-exhausted", Outcome.INVALID, "inferred", how, exited)
    elif exited is not None:
        yield _unresumed(last, "ended, and no later attempt was seen", exited, timeline)
    elif len(stories) > 1 and not last.speaks and any(story.speaks for story in stories):
        yield _unresumed(last, "started, and the job in it never said anything of its training", last.last, timeline)


def _has_failed(story: AttemptStory, ending: Ending) -> bool:
    """Whether the end of an execution says that the task of an attempt failed: by its name, or because all did."""
    return story.task in ending.failed_tasks or not (ending.succeeded or ending.cancelled)


def _diagnose_untold(last: AttemptStory, ending: Ending, timeline: Timeline) -> Iterator[Diagnosis]:
    """A task whose end is not in the export, of an execution in which some tasks failed, and others did not."""
    ended = [stories[-1] for stories in timeline.tasks.values() if stories[-1].exit is not None and not stories[-1].succeeded]
    if len({story.task for story in ended} | ending.failed_tasks) >= ending.failed:
        return  # those that failed are all known, and this is none of them
    failed = counted(ending.failed, "task")
    how = f"has no end in the export: {failed} of the execution failed, and no entry says whether this was one of them"
    yield _of(last, "unknown", Outcome.UNKNOWN, "seen", how, ending.entry, last.last)


def _diagnose_failure(timeline: Timeline) -> Iterator[Diagnosis]:
    """An execution that failed, of which the attempts that failed are not in the export: lines of a job are kept for less long."""
    if timeline.ending is not None and timeline.ending.failed and not timeline.is_cancelled:
        how = f"execution {timeline.name} failed, and the attempts that did are not in the export"
        advice, evidence = ADVICE["retries-exhausted"], evidence_of(timeline.ending.entry)
        yield Diagnosis(kind="retries-exhausted", outcome=Outcome.INVALID, certainty="seen", says=how, advice=advice, evidence=evidence)


def _unresumed(story: AttemptStory, how: str, entry: Entry, timeline: Timeline) -> Diagnosis:
    """Wrong where the export goes on for long; where it ends soon, nobody knows."""
    looked_s = timeline.looked_on_s(entry)
    goes_on = (
        f", though the export goes on for {looked_s:.0f} s" if looked_s >= RETRY_WAIT_S else f"; the export ends {looked_s:.0f} s later"
    )
    outcome = Outcome.INVALID if looked_s >= RETRY_WAIT_S else Outcome.UNKNOWN
    return _of(story, "never-resumed", outcome, "inferred", how + goes_on, entry)


def _diagnose_cancel(timeline: Timeline) -> Iterator[Diagnosis]:
    if not timeline.is_cancelled:
        return
    ending = timeline.ending.entry if timeline.ending is not None else None
    how = f"somebody cancelled execution {timeline.name}: it did not complete"
    evidence = evidence_of(timeline.cancel_asked, ending)
    yield Diagnosis(kind="cancelled", outcome=Outcome.INVALID, certainty="seen", says=how, advice=ADVICE["cancelled"], evidence=evidence)


def _of(story: AttemptStory, kind: DiagnosisKind, outcome: Outcome, certainty: Certainty, how: str, *entries: Entry | None) -> Diagnosis:
    return Diagnosis(
        kind=kind,
        outcome=outcome,
        certainty=certainty,
        says=f"attempt {story.number} of task {story.task} {how}",
        advice=ADVICE[kind],
        evidence=evidence_of(*entries),
        task=story.task,
        attempt=story.number,
    )
