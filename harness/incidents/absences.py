"""What an export of an execution must hold and does not: attempts and tasks of which the platform has counted more than are told."""

from collections.abc import Iterator, Sequence

from harness.incidents.advice import ADVICE
from harness.incidents.diagnosis import Diagnosis, evidence_of
from harness.incidents.entries import Entry
from harness.incidents.timeline import AttemptStory, Timeline
from harness.verdict import Outcome, counted

_NAMED_MAX = 10


def absent_before(stories: Sequence[AttemptStory]) -> list[int]:
    """Attempts of a task that were before the last one that is told: the platform counts them from 0."""
    told = {story.number for story in stories}
    return [number for number in range(max(told, default=0)) if number not in told]


def diagnose_absences(timeline: Timeline) -> Iterator[Diagnosis]:
    """Attempts of which the export has no entry, task by task: how they ended and what they lost nobody knows."""
    for task, stories in timeline.tasks.items():
        absent = absent_before(stories)
        if absent:
            yield _unknown(f"the export has no entry of {_named('attempt', absent)} of task {task}", stories[-1].first, task)
        elif _went_on(stories[-1], timeline):
            last = stories[-1]
            how = f"attempt {last.number} of task {task} did not end well, and the execution succeeded"
            yield _unknown(f"{how}: the export has no entry of attempt {last.number + 1}", last.last, task)


def diagnose_unseen_tasks(timeline: Timeline) -> Iterator[Diagnosis]:
    """What the platform has counted and the export does not hold: tasks, and attempts that were tried again."""
    ending = timeline.ending
    ended = ending.succeeded + ending.failed + ending.cancelled if ending is not None else 0
    tasks = max(timeline.granted.tasks or 0, ended, max(timeline.tasks, default=-1) + 1)
    entry = ending.entry if ending is not None else timeline.seen[-1].entry
    if not timeline.tasks:
        yield _unknown(f"{timeline.name} ended, and the export has no entry of any attempt: what was lost until then is not told", entry)
    elif tasks > len(timeline.tasks):
        yield _unknown(f"nothing is known of {counted(tasks - len(timeline.tasks), 'task')} of {tasks}", entry)
    retried = sum(stories[-1].number for stories in timeline.tasks.values())
    if timeline.tasks and ending is not None and ending.retried > retried:
        how = f"the platform has counted {counted(ending.retried, 'retry', 'retries')}, and the export tells of {retried}"
        yield _unknown(how, entry)


def _went_on(last: AttemptStory, timeline: Timeline) -> bool:
    """Whether another attempt must have followed: this one ended, not well, and all tasks succeeded."""
    is_success = timeline.ending is not None and timeline.ending.is_success
    return is_success and not last.succeeded and last.has_known_end and last.done is None


def _named(what: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{what} {numbers[0]}"
    more = f" and {len(numbers) - _NAMED_MAX} more" if len(numbers) > _NAMED_MAX else ""
    return f"{what}s {', '.join(str(number) for number in numbers[:_NAMED_MAX])}{more}"


def _unknown(says: str, entry: Entry, task: int | None = None) -> Diagnosis:
    return Diagnosis(
        kind="unknown",
        outcome=Outcome.UNKNOWN,
        certainty="seen",
        says=says,
        advice=ADVICE["unknown"],
        evidence=evidence_of(entry),
        task=task,
    )
