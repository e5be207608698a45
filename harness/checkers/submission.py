"""Each task is one object for the whole run: whatever happened to it, nobody submitted it again."""

from collections.abc import Sequence

from harness.checkers.cluster import doubt_end, tasks_of, unseen
from harness.checkers.evidence import Evidence, Ruling
from harness.history import SubmissionSeen
from harness.scenario.expectations import SubmittedOnce
from harness.verdict import Finding, counted

CHECKER = "submitted-once"


def check(_expectation: SubmittedOnce, evidence: Evidence) -> Finding:
    """Count the objects of each task by their uid: one of the same name that was made anew is another one."""
    ruling = Ruling()
    doubt_end(evidence, ruling)
    objects = 0
    for task in tasks_of(evidence):
        seen = [event for event in evidence.of_type(SubmissionSeen) if event.task == task]
        if not seen:
            ruling.doubts.append(f"task {task}: {unseen('no submitted object', evidence)}")
            continue
        first_seen = {event.uid: event for event in reversed(seen)}
        objects += len(first_seen)
        ruling.facts += [_told(task, event) for event in sorted(first_seen.values(), key=lambda event: event.t_s)]
        if len(first_seen) > 1:
            ruling.broken.append(f"task {task} was submitted {len(first_seen)} times: {_listed(list(first_seen.values()))}")
    ruling.measures = {"objects": float(objects)}
    return ruling.conclude(CHECKER, f"{counted(objects, 'object')} for {counted(len(tasks_of(evidence)), 'task')}, none submitted again")


def _told(task: int, seen: SubmissionSeen) -> str:
    return f"task {task}: {seen.object_kind} {seen.name} (uid {seen.uid}) since {seen.t_s:.2f} s"


def _listed(seen: Sequence[SubmissionSeen]) -> str:
    in_order = sorted(seen, key=lambda event: event.t_s)
    return ", ".join(f"{event.name} (uid {event.uid}) at {event.t_s:.2f} s" for event in in_order)
