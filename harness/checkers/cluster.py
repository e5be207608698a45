"""What the promises about a cluster share: which tasks there are to judge, and what to say where nobody saw a cluster."""

from collections.abc import Sequence
from dataclasses import replace

from harness.checkers import landed
from harness.checkers.evidence import Evidence, Ruling
from harness.history import ClusterLeft
from harness.lineage import Admission, Stay
from harness.verdict import Outcome


def unseen(what: str) -> str:
    """Why nothing can be said of something that only a cluster has."""
    return f"{what} was seen: this is told by a cluster alone (target kind)"


def tasks_of(evidence: Evidence) -> range:
    """All tasks that were to be submitted."""
    return range(evidence.scenario.platform.tasks)


def doubt_end(evidence: Evidence, ruling: Ruling) -> None:
    """What was broken off, or not recorded, keeps what follows from being proved."""
    ruling.doubt_lost(evidence.lost("cluster"))
    if evidence.is_cut_short:
        ruling.doubts.append("the run was broken off, and what is missing might have come yet")


def fault_missed(evidence: Evidence) -> str:
    """What keeps another outcome than the promised one from accusing anybody: it may be owed to a fault that did not land; else empty."""
    finding = landed.check(evidence)
    return "" if finding.outcome is Outcome.VALID else f"not every fault has landed: {finding.reason}"


def looked_s(evidence: Evidence) -> float:
    """When somebody looked at what was left, or the run was ended: what comes later is the harness's own healing and cleaning."""
    closed = evidence.closed
    ended_s = float("inf") if closed is None or closed.ended_s is None else closed.ended_s
    return min((event.t_s for event in evidence.of_type(ClusterLeft)), default=ended_s)


def last_stay(task: int, evidence: Evidence) -> Stay | None:
    """Where a task stood in the queue before anything was cleaned."""
    end_s = looked_s(evidence)
    return next((stay for stay in reversed(evidence.lineage.stays_of(task)) if stay.begin_s <= end_s), None)


def admissions_of(task: int, evidence: Evidence) -> Sequence[Admission]:
    """The admissions of a task before anything was healed or cleaned; what ended later had not ended then."""
    end_s = looked_s(evidence)
    admitted = [each for each in evidence.lineage.admissions_of(task) if each.admitted_s <= end_s]
    return [replace(each, ended_s=None, end="") if (each.ended_s or 0.0) > end_s else each for each in admitted]
