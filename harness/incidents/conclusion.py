"""All diagnoses of an incident, with what follows from all of them together: that it is healthy, or that nobody can tell."""

from collections.abc import Iterator

from harness.incidents.absences import diagnose_unseen_tasks
from harness.incidents.advice import ADVICE
from harness.incidents.cluster_diagnoses import diagnose_cluster
from harness.incidents.completion import completed_by
from harness.incidents.diagnosis import Diagnosis, evidence_of, outcome_of
from harness.incidents.entries import Entry
from harness.incidents.execution_diagnoses import diagnose_execution
from harness.incidents.timeline import Timeline
from harness.verdict import Outcome, counted

_ORDER = {Outcome.INVALID: 0, Outcome.UNKNOWN: 1, Outcome.VALID: 2}


def diagnose(timeline: Timeline) -> tuple[Diagnosis, ...]:
    """Everything that the entries show, the worst first; never nothing."""
    found = diagnose_execution(timeline) if timeline.platform == "cloud-run" else diagnose_cluster(timeline)
    found += _unheard(timeline, found)
    if outcome_of(found) is Outcome.INVALID:
        found = [each for each in found if each.kind != "skipped-steps" or each.outcome is not Outcome.UNKNOWN]
    elif not any(each.outcome is Outcome.UNKNOWN for each in found):
        found.append(_conclusion(timeline))
    return tuple(sorted(found, key=_order))


def _order(diagnosis: Diagnosis) -> tuple[object, ...]:
    attempt = -1 if diagnosis.attempt is None else diagnosis.attempt
    return _ORDER[diagnosis.outcome], -1 if diagnosis.task is None else diagnosis.task, attempt, diagnosis.kind


def _unheard(timeline: Timeline, found: list[Diagnosis]) -> Iterator[Diagnosis]:
    """An interruption of a job whose log says nothing that is understood: whether it saved and resumed nobody knows."""
    interrupted = [each for each in found if each.kind in ("preempted", "terminated", "killed-without-notice", "timed-out")]
    if interrupted and not timeline.speaks:
        says = "the job was interrupted, and its log holds no line that tells of steps, saves or resumes"
        yield _unknown(says, timeline.seen[0].entry)


def _conclusion(timeline: Timeline) -> Diagnosis:
    """That all is well, by what says so; else that the export does not tell."""
    if not timeline.seen:
        return _unknown("no entry tells of the job", None)
    complete = completed_by(timeline)
    if complete is None:
        return _unknown("no entry says that the job has ended: it may still run, or the export is not whole", timeline.seen[-1].entry)
    unseen = next(diagnose_unseen_tasks(timeline), None) if timeline.platform == "cloud-run" else None
    untold = unseen or _untold(timeline, complete)
    if untold is not None:
        return untold
    deaths = _deaths(timeline)
    after = f" after {counted(deaths, 'interruption')} that it recovered from" if deaths > 0 else ""
    says = f"{timeline.name} completed{after}{_beside(timeline)}"
    return Diagnosis(
        kind="healthy", outcome=Outcome.VALID, certainty="seen", says=says, advice=ADVICE["healthy"], evidence=evidence_of(complete)
    )


def _untold(timeline: Timeline, complete: Entry) -> Diagnosis | None:
    """That it completed, and what happened until then nobody can tell: why an attempt ended, or what parts of the export say."""
    if timeline.unplaced_count >= _unplaced_allowed(timeline):
        parts = counted(timeline.unplaced_count, "part")
        hidden = "what an interruption has cost" if _deaths(timeline) > 0 else "another attempt"
        says = f"{timeline.name} completed, but {parts} of the export beside {timeline.entry_count} of its entries cannot be read or placed"
        return _unknown(f"{says}: {hidden} may be told there", complete)
    if timeline.platform != "cloud-run":
        return None
    dead = [story for stories in timeline.tasks.values() for story in stories[:-1] if not story.has_known_end]
    if not dead:
        return None
    says = (
        f"attempt {dead[0].number} of task {dead[0].task} ended, and no entry that is understood says how: what it lost by that is not told"
    )
    return _unknown(says, dead[0].last)


def _unplaced_allowed(timeline: Timeline) -> int:
    """From how many parts on that nobody can place a conclusion is none.

    What an interruption has cost one line tells, and any part may be that line: so from one on. Where nothing was interrupted only a whole
    attempt could be hidden, which has as many entries as the one that has said least.
    """
    if _deaths(timeline) > 0:
        return 1
    return min((len({id(each.entry) for each in story.seen}) for story in timeline.attempts), default=1)


def _deaths(timeline: Timeline) -> int:
    return len(timeline.attempts) - len(timeline.tasks)


def _beside(timeline: Timeline) -> str:
    """What was left out of account, with its count."""
    if not timeline.unplaced_count:
        return ""
    parts = counted(timeline.unplaced_count, "part")
    return f"; {parts} of the export beside {timeline.entry_count} of its entries cannot be read or placed, too few to hide an attempt"


def _unknown(says: str, entry: Entry | None) -> Diagnosis:
    return Diagnosis(
        kind="unknown", outcome=Outcome.UNKNOWN, certainty="seen", says=says, advice=ADVICE["unknown"], evidence=evidence_of(entry)
    )
