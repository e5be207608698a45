"""Diagnoses of saves and resumes: what an attempt kept when it was told to go, and what the next one went on from."""

from collections.abc import Iterator, Sequence

from harness.history import JobEvent, SaveBegun, SaveEnded, SigtermSeen
from harness.incidents.advice import ADVICE
from harness.incidents.diagnosis import Certainty, Diagnosis, DiagnosisKind, evidence_of
from harness.incidents.entries import Entry
from harness.incidents.timeline import GRACE_S, AttemptStory
from harness.incidents.timestamps import NANOSECONDS
from harness.verdict import Outcome, counted

_SIGKILL, _SIGTERM = 9, 15


def diagnose_saves(story: AttemptStory, later: Sequence[AttemptStory], *, is_over: bool) -> Iterator[Diagnosis]:
    """Whether an attempt that was told to go saved, and whether that held."""
    notice = story.notice
    if notice is None or story.succeeded or not is_over or not (story.speaks or any(each.speaks for each in later)):
        return
    saves = _saves_since(story, notice)
    resumed = next((each.resumed for each in later if each.resumed is not None), None)
    if any(isinstance(save, SaveEnded) for save, _ in saves):
        return
    if saves:
        yield from _diagnose_unended(story, saves[-1], resumed)
        return
    last = story.last_step
    if story.tells_steps and resumed is not None and last is not None and resumed[0] >= last:
        return  # everything was saved already
    yield _no_save(story, notice, resumed)


def _saves_since(story: AttemptStory, notice: Entry) -> list[tuple[SaveBegun | SaveEnded, Entry]]:
    """Saves after the notice. What the platform says stands in the log after its grace, so there the grace before it counts too.

    A job that SIGTERM has killed had none of it.
    """
    seen = [each for each in story.seen if isinstance(each.event, SaveBegun | SaveEnded)]
    if notice is story.sigterm:
        place = next(index for index, each in enumerate(story.seen) if each.entry is notice)
        seen = [each for each in story.seen[place + 1 :] if isinstance(each.event, SaveBegun | SaveEnded)]
    else:
        has_grace = notice is story.platform.get("preempted") and not _died_at_once(story)
        since_ns = notice.t_ns - (int(GRACE_S * NANOSECONDS) if has_grace else 0)
        seen = [each for each in seen if each.entry.t_ns >= since_ns]
    return [(each.event, each.entry) for each in seen if isinstance(each.event, SaveBegun | SaveEnded)]


def _died_at_once(story: AttemptStory) -> bool:
    """Whether SIGTERM itself ended the job: it has no handler for it."""
    return story.exit is not None and story.exit[0].signal == _SIGTERM


def _diagnose_unended(
    story: AttemptStory, save: tuple[SaveBegun | SaveEnded, Entry], resumed: tuple[int, Entry] | None
) -> Iterator[Diagnosis]:
    """A save that began after the notice, of an attempt that was killed: it held where the next attempt went on from it."""
    step, entry = save[0].step, save[1]
    if story.signal != _SIGKILL or (resumed is not None and resumed[0] >= step):
        return
    exited = story.exit[1] if story.exit is not None else None
    told = f", and the next attempt went on from step {resumed[0]}" if resumed is not None else ""
    how = f"began to save step {step} after SIGTERM and was killed before that had ended{told}"
    certainty: Certainty = "seen" if resumed is not None else "inferred"
    yield _of(story, "save-did-not-fit-the-grace", certainty, how, entry, exited, resumed[1] if resumed is not None else None)


def _no_save(story: AttemptStory, notice: Entry, resumed: tuple[int, Entry] | None) -> Diagnosis:
    certainty: Certainty = "inferred" if notice is story.platform.get("preempted") and not _died_at_once(story) else "seen"
    lost = ""
    if resumed is not None and story.last_step is not None and story.last_step > resumed[0]:
        lost = f"; {counted(story.last_step - resumed[0], 'step')} had to be done again"
    last = max(story.saves_begun() + story.saves_ended(), key=lambda save: save[0], default=None)
    before = f"the last one before it was of step {last[0]}" if last is not None else "nor was one seen before"
    how = f"was told to go, and no save was seen after that: {before}{lost}"
    exited = story.exit[1] if story.exit is not None else None
    entries = (notice, last[1] if last is not None else None, exited, resumed[1] if resumed is not None else None)
    return _of(story, "no-save-after-sigterm", certainty, how, *entries)


def diagnose_resumes(earlier: Sequence[AttemptStory], story: AttemptStory) -> Iterator[Diagnosis]:
    """Whether an attempt went on from what the ones before had saved."""
    if not earlier or story.resumed is None:
        return
    step, entry = story.resumed
    certainty: Certainty = "seen" if story.says_how_it_resumed else "inferred"
    kept = max((save for each in earlier for save in _kept_by(each)), key=lambda save: save[0], default=None)
    if kept is not None and step == 0 and kept[0] > 0:
        how = f"started from scratch, although step {kept[0]} had been saved"
        yield _of(story, "restarted-from-scratch", certainty, how, entry, kept[1])
    elif step == 0 and kept is None:
        yield from _diagnose_nothing_kept(earlier, story, entry, certainty)
    elif kept is not None and step < kept[0]:
        how = f"went on from step {step}, although step {kept[0]} had been saved"
        yield _of(story, "resumed-from-an-older-checkpoint", certainty, how, entry, kept[1])


def _diagnose_nothing_kept(earlier: Sequence[AttemptStory], story: AttemptStory, entry: Entry, certainty: Certainty) -> Iterator[Diagnosis]:
    """Nothing had been saved: wrong where the job never saves, bad luck where it had not come so far."""
    done = max((each.last_step or 0 for each in earlier), default=0)
    if not done:
        return
    saves = bool(story.saves_begun() or story.saves_ended())
    why = "it had not come to its first save" if saves else "the job was never seen to save"
    found = _of(story, "restarted-from-scratch", certainty, f"started from scratch after {counted(done, 'step')}: {why}", entry)
    yield Diagnosis(
        kind=found.kind,
        outcome=Outcome.VALID if saves else Outcome.INVALID,
        certainty=certainty,
        says=found.says,
        advice=found.advice,
        evidence=found.evidence,
        task=found.task,
        attempt=found.attempt,
    )


def _kept_by(story: AttemptStory) -> Iterator[tuple[int, Entry]]:
    """Saves that have ended: as the job says, or because it went on after them, or left by itself; and what it went on from itself.

    That it hears SIGTERM is not going on: a handler runs in the middle of a save too.
    """
    if story.resumed is not None and story.says_how_it_resumed and story.resumed[0] > 0:
        yield story.resumed
    yield from story.saves_ended()
    words = [each for each in story.seen if isinstance(each.event, JobEvent) and not isinstance(each.event, SigtermSeen)]
    left = story.exit is not None and story.exit[0].exit_code is not None and story.signal != _SIGKILL
    for index, each in enumerate(words):
        if isinstance(each.event, SaveBegun) and (left or any(after.entry is not each.entry for after in words[index + 1 :])):
            yield each.event.step, each.entry


def _of(story: AttemptStory, kind: DiagnosisKind, certainty: Certainty, how: str, *entries: Entry | None) -> Diagnosis:
    return Diagnosis(
        kind=kind,
        outcome=Outcome.INVALID,
        certainty=certainty,
        says=f"attempt {story.number} of task {story.task} {how}",
        advice=ADVICE[kind],
        evidence=evidence_of(*entries),
        task=story.task,
        attempt=story.number,
    )
