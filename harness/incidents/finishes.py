"""Diagnoses of attempts that ended well, as the platform says: whether the job was complete, by its own words."""

from collections.abc import Iterator, Sequence

from harness.history import Done
from harness.incidents.advice import ADVICE
from harness.incidents.cadence import Cadence
from harness.incidents.completion import finished_by
from harness.incidents.diagnosis import Certainty, Diagnosis, evidence_of
from harness.incidents.timeline import AttemptStory, Timeline
from harness.verdict import Outcome


def diagnose_finish(stories: Sequence[AttemptStory], story: AttemptStory, cadence: Cadence) -> Iterator[Diagnosis]:
    """Exit 0 is not success: a job that leaves with 0 at a SIGTERM, or before its last step, is never tried again."""
    timeline = cadence.progress.timeline
    if not story.succeeded and not (story is stories[-1] and story.exit is None and _is_complete(timeline)):
        return
    last, steps = cadence.progress.reached(story), _steps_required(stories, story, cadence)
    if last is not None and last < steps and steps - last > cadence.slack:
        yield _short(story, last, steps, cadence)
    elif story.done is None and (last is None or not timeline.words.steps or last < timeline.words.steps):
        yield from _diagnose_silence(story, timeline)


def _is_complete(timeline: Timeline) -> bool:
    """Whether an entry of the platform, or of the cluster, says that all of it succeeded."""
    if timeline.platform == "kubernetes":
        return finished_by(timeline) is not None
    return timeline.ending is not None and timeline.ending.is_success


def _steps_required(stories: Sequence[AttemptStory], story: AttemptStory, cadence: Cadence) -> int:
    """The last step: as configured, as the attempt itself says at its end, or as another attempt of the task had come to."""
    said = max((event.step for event, _ in story.of_type(Done)), default=0)
    return max(cadence.progress.timeline.words.steps, said, *(cadence.progress.reached(each) or 0 for each in stories))


def _short(story: AttemptStory, last: int, steps: int, cadence: Cadence) -> Diagnosis:
    """Its last step is not told: wrong where nothing can be missing, for it left, and says nothing else or had no time for the others."""
    how = "left with exit code 0" if story.succeeded else "has no exit code in the export, and ended"
    how += f" after step {last} of {steps}"
    certainty: Certainty = "seen"
    if story.done is not None:
        how, certainty = f"{how}, though it says that it is complete", "inferred"
    is_sure = (
        cadence.longest is not None if story.done is None else cadence.is_without_time(steps - last, cadence.progress.untold_s([story]))
    )
    is_sure = is_sure and story.succeeded and not (story.done is not None and cadence.progress.timeline.unplaced_count)
    how += "" if is_sure else "; entries may be missing from the export"
    return _of(story, Outcome.INVALID if is_sure else Outcome.UNKNOWN, certainty, how)


def _diagnose_silence(story: AttemptStory, timeline: Timeline) -> Iterator[Diagnosis]:
    """It does not say that it is complete: wrong after a SIGTERM, where its word for that is known; else not known where it is expected."""
    is_told = timeline.words.has_own_done
    says_elsewhere = any(each.done is not None for each in timeline.attempts)
    if story.succeeded and story.sigterm is not None:
        how = "left with exit code 0 after SIGTERM, and did not say that it was complete"
        yield _of(story, Outcome.INVALID if is_told else Outcome.UNKNOWN, "inferred", how)
    elif is_told or (says_elsewhere and not story.succeeded):
        how = "left with exit code 0" if story.succeeded else "has no end in the export"
        yield _of(story, Outcome.UNKNOWN, "inferred", f"{how}, and does not say that it is complete, as the job does")


def _of(story: AttemptStory, outcome: Outcome, certainty: Certainty, how: str) -> Diagnosis:
    exited = story.exit[1] if story.exit is not None else story.last
    return Diagnosis(
        kind="left-unfinished",
        outcome=outcome,
        certainty=certainty,
        says=f"attempt {story.number} of task {story.task} {how}",
        advice=ADVICE["left-unfinished" if outcome is Outcome.INVALID or story.sigterm is not None else "unknown"],
        evidence=evidence_of(exited, story.sigterm, story.done),
        task=story.task,
        attempt=story.number,
    )
