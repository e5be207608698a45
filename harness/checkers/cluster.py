"""What the promises about a cluster share: which tasks there are to judge, and what to say where nobody saw a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from harness.checkers.evidence import Evidence, Ruling
from harness.history import ProvisioningSeen
from harness.lineage import Admission, Stay, StayState

STANDINGS: Mapping[StayState, str] = MappingProxyType(
    {
        "queued": "pending",
        "backoff": "pending",
        "checking": "pending",
        "evicting": "pending",
        "admitted": "admitted",
        "deactivated": "deactivated",
        "finished": "finished",
    }
)
"""Where a workload stands, as a promise has it, by its state."""


CLUSTER_TARGET = "kind"
"""The target whose runs tell of queues, nodes and pods."""


def is_on_cluster(evidence: Evidence) -> bool:
    """Whether the run was on a target that is a cluster."""
    return evidence.opened is not None and evidence.opened.target == CLUSTER_TARGET


def unseen(what: str, evidence: Evidence) -> str:
    """Why nothing can be said of something that only a cluster has."""
    return f"{what} was seen" + ("" if is_on_cluster(evidence) else f": this is told by a cluster alone (target {CLUSTER_TARGET})")


def tasks_of(evidence: Evidence) -> range:
    """All tasks that were to be submitted."""
    return range(evidence.scenario.platform.tasks)


def doubt_end(evidence: Evidence, ruling: Ruling) -> None:
    """What was broken off, or not recorded, keeps what follows from being proved."""
    ruling.doubt_lost(evidence.lost("cluster"))
    if evidence.is_cut_short:
        ruling.doubts.append("the run was broken off, and what is missing might have come yet")


def last_stay(task: int, evidence: Evidence) -> Stay | None:
    """Where a task stood in the queue before anything was cleaned."""
    end_s = evidence.looked_s
    return next((stay for stay in reversed(evidence.lineage.stays_of(task)) if stay.begin_s <= end_s), None)


def too_short(task: int, evidence: Evidence, watched_s: float, *, is_quiet: bool = False) -> str:
    """Why what had not come to a task may have come yet, had the run not been ended; empty when it had its time, or nothing could come.

    It counts from when the task began to stand where it stood; ``is_quiet``: and its requests for capacity said what they said last.
    A run that was broken off is doubted as a whole, and one that has finished came to its end by itself.
    """
    closed, stay = evidence.closed, last_stay(task, evidence)
    if closed is None or evidence.is_cut_short or closed.reason == "finished" or stay is None or stay.state == "finished":
        return ""
    end_s = min(evidence.looked_s, closed.t_s)
    since_s = max(_stood_since_s(task, evidence), _answered_s(task, evidence) if is_quiet else 0.0)
    if end_s - since_s >= watched_s:
        return ""
    watched = f"task {task} was watched for {end_s - since_s:.2f} s, since when it was {STANDINGS[stay.state]}"
    return f"{watched}, and something might have come within the {watched_s:g} s that prove it"


def _stood_since_s(task: int, evidence: Evidence) -> float:
    """Since when it stood where it stood last, in whatever state."""
    end_s = evidence.looked_s
    since_s, standing = 0.0, ""
    for stay in evidence.lineage.stays_of(task):
        if stay.begin_s <= end_s and STANDINGS[stay.state] != standing:
            since_s, standing = stay.begin_s, STANDINGS[stay.state]
    return since_s


def _answered_s(task: int, evidence: Evidence) -> float:
    """When one of its requests for capacity was last seen to say something else than before; words that are renewed are none."""
    end_s, said_s = evidence.looked_s, 0.0
    said: dict[str, set[tuple[str, str, str]]] = {}
    for seen in evidence.of_type(ProvisioningSeen):
        if seen.task != task or seen.t_s > end_s:
            continue
        says = {(condition.type, condition.status, condition.reason) for condition in seen.conditions}
        if says != said.get(seen.uid):
            said[seen.uid], said_s = says, seen.t_s
    return said_s


def admissions_of(task: int, evidence: Evidence) -> Sequence[Admission]:
    """The admissions of a task before anything was healed or cleaned; what ended later had not ended then."""
    end_s = evidence.looked_s
    admitted = [each for each in evidence.lineage.admissions_of(task) if each.admitted_s <= end_s]
    return [replace(each, ended_s=None, end="") if (each.ended_s or 0.0) > end_s else each for each in admitted]
