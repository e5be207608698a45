"""What the time was in which a task of a cluster waited: from its submission, or the end of one life, to the first word of the next.

``detect``: nobody has noticed yet; to the platform's first move (a pod that ends or is told to, a node that is not ready, an eviction).
``requeue``: without quota (being evicted, backing off, in the queue), or admitted and no pod is made for it yet: a Job backs off after a
failure. ``provision``: quota is reserved and a check is not ready, or pods are there and not every host has its node. ``start``: every host
has its node; images, containers and Ray, to the first word of the job.

Sources: the split of recovery is that of the time to recover by which TPU training is judged (ml-goodput-measurement: infrastructure
recovery), its borders are Kueue's conditions ``QuotaReserved`` and ``Admitted`` and the binding of pods by the scheduler.
Our times are those at which the API showed it: a moment that a watch missed is dated late.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import msgspec

from harness.history import ClusterLeft, NodeSeen, PodSeen, RunClosed, SubmissionSeen, TaskFinished
from harness.ledger.hits import Hits
from harness.ledger.spans import Category, Span
from harness.lineage import Lineage, Stay

WAITED: frozenset[Category] = frozenset({"requeue", "provision"})
"""What the spans of a gap are called as long as nothing is known of a cluster."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What was seen of a task beside its attempts.

    Attributes:
        stays: In the queue; empty for a job that went past it.
        made_s, bound_s: When each host's pod was first seen, and when it got its node.
        moves_s: The platform's moves that follow a death.
        submitted_s: When the object was first seen.
        over_s: When nothing more was to come of the task.
    """

    stays: Sequence[Stay]
    made_s: Sequence[float]
    bound_s: Sequence[float]
    moves_s: Sequence[float]
    submitted_s: float
    over_s: float

    def split(self, begin_s: float, end_s: float, *, alive_s: float | None) -> Iterator[tuple[Category, float, float]]:
        """Cut a gap; ``alive_s``: when the life before it began, where its death was not seen as the end of an attempt."""
        bound = [t_s for t_s in self.bound_s if begin_s < t_s <= end_s]
        noticed_s = begin_s
        if alive_s is not None:
            moved_s = next((t_s for t_s in self.moves_s if alive_s < t_s <= end_s), None)
            if moved_s is None and not bound:
                yield "requeue", begin_s, end_s  # the job's own doing: Ray starts its workers again in the pods that they were in
                return
            noticed_s = max(begin_s, moved_s if moved_s is not None else begin_s)
        bound_s = max(bound, default=noticed_s)
        made_s = min((t_s for t_s in self.made_s if begin_s < t_s <= end_s), default=noticed_s)
        changes = [stay.begin_s for stay in self.stays]
        cuts = sorted({begin_s, end_s, *(t_s for t_s in (noticed_s, made_s, bound_s, *changes) if begin_s < t_s < end_s)})
        for since_s, until_s in pairwise(cuts):
            category: Category = "detect" if until_s <= noticed_s else self._category(since_s, made_s, bound_s)
            yield category, since_s, until_s

    def _category(self, t_s: float, made_s: float, bound_s: float) -> Category:
        if self.stays:
            index = bisect_right(self.stays, t_s, key=lambda stay: stay.begin_s) - 1
            state = self.stays[index].state if index >= 0 else "queued"
            if state == "checking":
                return "provision"
            if state != "admitted":
                return "requeue"
        return "requeue" if t_s < made_s else "provision" if t_s < bound_s else "start"


def waiting_of(lineage: Lineage, task: int) -> Waiting | None:
    """What was seen of a task on a cluster; None where it was never seen on one."""
    pods = [event for event in lineage.of_type(PodSeen) if event.task == task]
    stays = lineage.stays_of(task)
    submitted = [event.t_s for event in lineage.of_type(SubmissionSeen) if event.task == task]
    if not (pods or stays):
        return None
    seen_s = [*submitted, *(stay.begin_s for stay in stays[:1]), *(pod.t_s for pod in pods[:1])]
    return Waiting(
        stays=stays,
        made_s=sorted({pod.uid: pod.t_s for pod in reversed(pods) if pod.role == "host"}.values()),
        bound_s=sorted(_bound_s(pods)),
        moves_s=sorted([*_ends_s(pods), *_breaks_s(lineage, pods), *(stay.begin_s for stay in stays if stay.state == "evicting")]),
        submitted_s=min(seen_s),
        over_s=_over_s(lineage, task),
    )


def _bound_s(pods: Sequence[PodSeen]) -> Iterator[float]:
    bound: dict[str, float] = {}
    for pod in pods:
        if pod.role == "host" and pod.node:
            bound[pod.uid] = min(pod.t_s, bound.get(pod.uid, pod.t_s))
    yield from bound.values()


def _ends_s(pods: Sequence[PodSeen]) -> Iterator[float]:
    """When each pod was first seen to end or to be told to; of whatever role: with Ray's head its workers go."""
    ended: set[str] = set()
    for pod in pods:
        is_ending = pod.is_terminating or pod.exit_code is not None or pod.phase in ("Failed", "Succeeded", "Unknown", "Deleted")
        if is_ending and pod.uid not in ended:
            ended.add(pod.uid)
            yield pod.t_s


def _breaks_s(lineage: Lineage, pods: Sequence[PodSeen]) -> Iterator[float]:
    """When a node that the task was on was seen not to be ready; that its object is gone tells nobody yet that the pods are."""
    mine = {pod.node for pod in pods if pod.node}
    return (node.t_s for node in lineage.of_type(NodeSeen) if node.name in mine and node.state in ("False", "Unknown"))


def _over_s(lineage: Lineage, task: int) -> float:
    finished = [event.t_s for event in lineage.of_type(TaskFinished) if event.task == task]
    looked = [event.t_s for event in lineage.of_type(ClusterLeft)]
    closed = [event.t_s if event.ended_s is None else event.ended_s for event in lineage.of_type(RunClosed)]
    return min([*finished, *looked] or closed, default=0.0)


def split_gaps(spans: Sequence[Span], waiting: Waiting, hits: Hits) -> list[Span]:
    """Say what the gaps between lives were, and how long a death that came with a fault went unnoticed."""
    split: list[Span] = []
    alive_s = 0.0
    for is_gap, group in groupby(spans, key=lambda span: span.category in WAITED):
        mine = list(group)
        if is_gap:
            is_inside = bool(split) and split[-1].attempt == mine[-1].attempt
            split += _split_gap(mine, waiting, alive_s=alive_s if is_inside else None)
            alive_s = mine[-1].end_s
        else:
            split += [part for span in mine for part in _split_death(span, hits)]
    return split


def _split_gap(gap: Sequence[Span], waiting: Waiting, *, alive_s: float | None) -> Iterator[Span]:
    first, last = gap[0], gap[-1]
    for category, begin_s, end_s in waiting.split(first.begin_s, last.end_s, alive_s=alive_s):
        yield Span(category=category, begin_s=begin_s, end_s=end_s, attempt=last.attempt)


def _split_death(span: Span, hits: Hits) -> Iterator[Span]:
    """The unfinished step of a life whose fault nobody noticed for a while: from the fault on it is detection."""
    hit_s = min(hits.between(span.attempt, span.begin_s, span.end_s), default=None)
    if span.category != "lost" or span.step >= 0 or hit_s is None or not span.begin_s < hit_s < span.end_s:
        yield span
        return
    yield msgspec.structs.replace(span, end_s=hit_s)
    yield msgspec.structs.replace(span, category="detect", begin_s=hit_s)
