"""Where Kueue's workload of each task stands when the run is over: finished, still holding quota, waiting, or deactivated for good."""

import re

from harness.checkers.cluster import STANDINGS, last_stay, tasks_of, too_short, unseen
from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.landed import missed
from harness.history import WorkloadSeen
from harness.lineage import Stay, state_of
from harness.scenario.expectations import WorkloadEnds
from harness.verdict import Finding, counted

CHECKER = "workload-ends"


def check(expectation: WorkloadEnds, evidence: Evidence) -> Finding:
    """Judge the workload of each task as it was last seen before anything was cleaned."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("cluster"))
    for task in tasks_of(evidence):
        _judge(task, expectation, evidence, ruling)
    said = f", and says what matches {expectation.message!r}" if expectation.message else ""
    return ruling.conclude(CHECKER, f"{counted(len(tasks_of(evidence)), 'workload')} ended {expectation.state}{said}")


def _judge(task: int, expectation: WorkloadEnds, evidence: Evidence, ruling: Ruling) -> None:
    stay = last_stay(task, evidence)
    seen = _workload(task, stay, evidence) if stay is not None else None
    if stay is None or seen is None:
        ruling.doubts.append(f"task {task}: {unseen('no workload', evidence)}")
        return
    standing = STANDINGS[stay.state]
    told = f": {stay.notes[-1][1]}" if stay.notes else ""
    where = f"task {task}: the workload {seen.name} was {standing} ({stay.state} since {stay.begin_s:.2f} s){told}"
    ruling.facts.append(where)
    if evidence.is_cut_short and standing != "finished":
        ruling.doubts.append(f"the run was broken off, so nobody knows where it would have ended; {where}")
        return
    wrong = ""
    if standing != expectation.state:
        wrong = f"{where}, and {expectation.state} is promised"
    elif expectation.message and not any(re.search(expectation.message, text) for text in _texts(seen)):
        wrong = f"{where}, and nothing that it says matches {expectation.message!r}: {'; '.join(_texts(seen))}"
    early = too_short(task, evidence, expectation.watched_s, is_quiet=not wrong)
    doubt = early or (missed(evidence) if wrong else "")
    if doubt:
        ruling.doubts.append(f"{doubt}; {wrong or where}")
    elif wrong:
        ruling.broken.append(wrong)


def _workload(task: int, stay: Stay, evidence: Evidence) -> WorkloadSeen | None:
    """The workload as it was last seen in that stay; of an elastic job others are seen beside it."""
    end_s = evidence.looked_s
    mine = [event for event in evidence.of_type(WorkloadSeen) if event.task == task and event.t_s <= end_s]
    return next((event for event in reversed(mine) if state_of(event) == stay.state), None)


def _texts(seen: WorkloadSeen) -> list[str]:
    """Everything that its conditions and checks say."""
    conditions = [f"{condition.type} {condition.reason}: {condition.message}" for condition in seen.conditions]
    return conditions + [f"{check.name} {check.state}: {check.message}" for check in seen.checks]
