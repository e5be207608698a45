"""Diagnoses of steps that nobody did: an attempt went on from one that no attempt had come to, or passed over some.

They are wrong where the log leaves no time for these steps, and not known where it does: their lines may be missing from the export.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from harness.incidents.advice import ADVICE
from harness.incidents.cadence import Cadence
from harness.incidents.diagnosis import Diagnosis, DiagnosisKind, evidence_of
from harness.incidents.entries import Entry
from harness.incidents.timeline import AttemptStory
from harness.incidents.timestamps import NANOSECONDS
from harness.verdict import Outcome, counted


def diagnose_continuity(earlier: Sequence[AttemptStory], story: AttemptStory, cadence: Cadence) -> Iterator[Diagnosis]:
    """Whether an attempt went on from where the ones before had come to, and did each step after that."""
    if earlier:
        yield from _diagnose_begin(earlier, story, cadence)
    yield from _diagnose_steps(story, cadence)


def _diagnose_begin(earlier: Sequence[AttemptStory], story: AttemptStory, cadence: Cadence) -> Iterator[Diagnosis]:
    if story.resumed is None or story.resumed[0] == 0:
        return
    step, entry = story.resumed
    if not story.says_how_it_resumed:
        step -= cadence.slack  # the first step that is told may be as far after the one that it went on from
    known = cadence.progress.known_before(entry)
    if known is not None and step <= known[0] + cadence.slack:
        return
    if known is None:
        if not story.says_how_it_resumed:
            return
        how = f"went on from step {step}, and no entry before tells of a step or of a save: what was lost is not told"
        yield _of(story, "resumed-from-an-unsaved-step", Outcome.UNKNOWN, how, entry)
        return
    saved = cadence.progress.saved_before(entry)
    newest = f"the newest save was of step {saved}" if saved is not None else "no save was seen"
    how = f"went on from step {story.resumed[0]}, which no attempt before had done or saved: they had come to step {known[0]}, and {newest}"
    is_whole = all(each.exit is not None for each in earlier) and [each.number for each in earlier] == list(range(story.number))
    is_sure = (
        is_whole
        and not cadence.progress.timeline.unplaced_count
        and cadence.is_without_time(step - known[0], cadence.progress.untold_s(earlier))
    )
    outcome = Outcome.INVALID if is_sure else Outcome.UNKNOWN
    yield _of(story, "resumed-from-an-unsaved-step", outcome, how + _missing(outcome), entry, known[1])


def _diagnose_steps(story: AttemptStory, cadence: Cadence) -> Iterator[Diagnosis]:
    """The first steps that an attempt passed over; of one that goes wrong so at many places one is enough."""
    told = cadence.progress.told(story)
    begun = story.resumed if story.says_how_it_resumed else None
    points = sorted((step, entry) for step, entry in told.items() if begun is None or step > begun[0]) if told else []
    found = [
        _passed_over(story, before, after, cadence)
        for before, after in pairwise([*([begun] if begun is not None else []), *points])
        if cadence.is_missing_between(before[0], after[0])
    ]
    yield from sorted(found, key=lambda each: each.outcome is not Outcome.INVALID)[:1]


def _passed_over(story: AttemptStory, before: tuple[int, Entry], after: tuple[int, Entry], cadence: Cadence) -> Diagnosis:
    seconds = max(0, after[1].t_ns - before[1].t_ns) / NANOSECONDS
    is_sure = not cadence.progress.timeline.unplaced_count and cadence.is_without_time(after[0] - before[0], seconds)
    outcome = Outcome.INVALID if is_sure else Outcome.UNKNOWN
    each = "each step" if cadence.stride == 1 else f"every {cadence.stride} steps"
    how = f"was at step {after[0]} {seconds:.1f} s after step {before[0]}, and the log, which tells of {each}, has none between"
    how += f": {counted(after[0] - before[0] - 1, 'step')} passed over" if is_sure else ""
    return _of(story, "skipped-steps", outcome, how + _missing(outcome), after[1], before[1])


def _missing(outcome: Outcome) -> str:
    return "" if outcome is Outcome.INVALID else "; entries may be missing from the export"


def _of(story: AttemptStory, kind: DiagnosisKind, outcome: Outcome, how: str, *entries: Entry) -> Diagnosis:
    return Diagnosis(
        kind=kind,
        outcome=outcome,
        certainty="inferred",
        says=f"attempt {story.number} of task {story.task} {how}",
        advice=ADVICE[kind],
        evidence=evidence_of(*entries),
        task=story.task,
        attempt=story.number,
    )
