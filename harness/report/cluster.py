"""What was seen of a cluster, in order: queues with their pods, node pools with their nodes, admissions, and requests for capacity."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from harness.history import ClusterLeft, ConditionState, NodeSeen, PodSeen, PoolScaled, ProvisioningSeen, SubmissionSeen, WorkloadSeen
from harness.lineage import Admission, Lineage, Stay, StayState, read_charges

PodState = Literal["pending", "running", "orphaned", "terminating"]
"""``orphaned``: running by the API alone, for its node is gone or not ready: the control plane gives it up tens of seconds later."""

NodeState = Literal["ready", "cordoned", "unready"]

ENDED = ("Succeeded", "Failed", "Deleted")
"""Phases of a pod that is over; that of its container may be seen a second earlier, by its exit code."""

WAITS_FOR: Mapping[StayState, str] = MappingProxyType(
    {"evicting": "the end of its pods", "backoff": "the end of its back-off", "deactivated": "somebody to activate it again"}
)
"""In states whose own words say what has ended, and not what comes next."""

ROWS_MAX = 80
"""Of a table; the history has all of them."""


@dataclass(frozen=True, slots=True)
class Spell:
    """A time in one state; ``end_s`` None: to the end of what was recorded."""

    state: PodState | NodeState
    begin_s: float
    end_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod of a task; ``end`` is how it ended, empty where that was not seen."""

    name: str
    role: str
    rank: int
    place: str
    spells: tuple[Spell, ...]
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A task in its queue, with its pods."""

    task: int
    name: str
    stays: tuple[Stay, ...]
    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node by its name: who comes back under the same name is shown in the same row."""

    name: str
    spells: tuple[Spell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A node pool, and what the autoscaler said of it."""

    name: str
    nodes: tuple[Node, ...]
    scalings: tuple[PoolScaled, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRow:
    """An admission of a task; one that still waits at the end has None."""

    task: int
    asked_s: float
    admission: Admission | None
    waited_s: float
    said: str


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A condition of a ProvisioningRequest that had changed when it was seen; ``condition`` None: the object was gone."""

    t_s: float
    task: int
    name: str
    condition: ConditionState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """All of it.

    Attributes:
        queues, pools: To be drawn.
        admissions, requests, scalings: As tables.
        left: What was still there after the job's end.
        has_looked: Whether anybody looked for that.
        charged: Failures that Kubernetes charged to the objects' own backoffLimit; None where none was submitted.
    """

    queues: tuple[Queue, ...]
    pools: tuple[Pool, ...]
    admissions: tuple[AdmissionRow, ...]
    requests: tuple[RequestRow, ...]
    scalings: tuple[PoolScaled, ...]
    left: tuple[ClusterLeft, ...]
    has_looked: bool
    charged: int | None


def cluster_of(lineage: Lineage, end_s: float) -> ClusterView | None:
    """The cluster of a run; None where none was seen. ``end_s`` is the last moment that was recorded."""
    kinds = (WorkloadSeen, PodSeen, NodeSeen, SubmissionSeen, ProvisioningSeen, PoolScaled, ClusterLeft)
    if not any(lineage.of_type(kind) for kind in kinds):
        return None
    looked = lineage.of_type(ClusterLeft)
    tasks = sorted({event.task for kind in (WorkloadSeen, PodSeen, SubmissionSeen) for event in lineage.of_type(kind)})
    return ClusterView(
        queues=tuple(_queue(task, lineage) for task in tasks),
        pools=tuple(_pools(lineage)),
        admissions=tuple(row for task in tasks for row in _admissions(task, lineage, end_s))[:ROWS_MAX],
        requests=tuple(_requests(lineage.of_type(ProvisioningSeen)))[:ROWS_MAX],
        scalings=lineage.of_type(PoolScaled)[:ROWS_MAX],
        left=tuple(event for event in looked if event.what != "none"),
        has_looked=bool(looked),
        charged=_charged(lineage),
    )


def _charged(lineage: Lineage) -> int | None:
    """What the objects of all tasks counted while the run lasted; cleaning is not charged."""
    end_s = min((event.t_s for event in lineage.of_type(ClusterLeft)), default=float("inf"))
    seen = [event for event in lineage.of_type(SubmissionSeen) if event.t_s <= end_s]
    tasks = {event.task for event in seen}
    charges = (charge for task in tasks for charge in read_charges(event for event in seen if event.task == task))
    return sum(charge.failed for charge in charges) if seen else None


def _queue(task: int, lineage: Lineage) -> Queue:
    seen = [event.queue for event in lineage.of_type(WorkloadSeen) if event.task == task and event.queue]
    pods = [event for event in lineage.of_type(PodSeen) if event.task == task]
    nodes = sorted(lineage.of_type(NodeSeen), key=lambda event: event.t_s)
    return Queue(task=task, name=seen[0] if seen else "", stays=lineage.stays_of(task), pods=tuple(_pods(pods, nodes)))


def _pods(seen: Sequence[PodSeen], nodes: Sequence[NodeSeen]) -> Iterator[Pod]:
    by_uid: dict[str, list[PodSeen]] = {}
    for event in sorted(seen, key=lambda event: event.t_s):
        by_uid.setdefault(event.uid, []).append(event)
    for events in by_uid.values():
        last = events[-1]
        bound = next((event for event in reversed(events) if event.node), last)
        place = f"{bound.node} of {bound.pool}" if bound.pool else bound.node
        away = tuple(_away(event for event in nodes if event.name == bound.node and event.t_s >= events[0].t_s))
        spells = _spells((event.t_s, _state_of_pod(event)) for event in events)
        yield Pod(
            name=last.name,
            role=last.role,
            rank=last.rank,
            place=place or "no node",
            spells=tuple(part for spell in spells for part in _orphan(spell, away)),
            end=_end_of(events),
        )


def _away(seen: Iterable[NodeSeen]) -> Iterator[tuple[float, float]]:
    """When a node was not ready, or gone for good: one that comes back under its name brings back no pod."""
    since_s: float | None = None
    for event in seen:
        if event.state == "True" and since_s is not None:
            yield since_s, event.t_s
            since_s = None
        elif event.state != "True" and since_s is None:
            since_s = event.t_s
        if event.state == "Deleted":
            break
    if since_s is not None:
        yield since_s, float("inf")


def _orphan(spell: Spell, away: Iterable[tuple[float, float]]) -> Iterator[Spell]:
    """Cut out of a spell the times in which the pod's node was away."""
    cursor_s, end_s = spell.begin_s, float("inf") if spell.end_s is None else spell.end_s
    for gone_s, back_s in away if spell.state == "running" else ():
        begin_s, until_s = max(gone_s, cursor_s), min(back_s, end_s)
        if begin_s >= until_s:
            continue
        if begin_s > cursor_s:
            yield Spell("running", cursor_s, begin_s)
        yield Spell("orphaned", begin_s, None if until_s == float("inf") else until_s)
        cursor_s = until_s
    if cursor_s < end_s:
        yield Spell(spell.state, cursor_s, spell.end_s)


def _state_of_pod(event: PodSeen) -> PodState | None:
    if event.phase in ENDED or event.exit_code is not None:
        return None
    if event.is_terminating:
        return "terminating"
    return "pending" if event.phase == "Pending" else "running"


def _end_of(events: Iterable[PodSeen]) -> str:
    """How a pod ended, by the first sight of its end: that of its deletion says no more."""
    end = next((event for event in events if event.phase in ENDED), None)
    if end is None:
        return ""
    code = "" if end.exit_code is None else f", exit {end.exit_code}"
    return f"{end.phase}{code}{f' ({end.reason})' if end.reason else ''} at {end.t_s:.2f} s"


def _pools(lineage: Lineage) -> Iterator[Pool]:
    by_pool: dict[str, dict[str, list[NodeSeen]]] = {}
    for event in sorted(lineage.of_type(NodeSeen), key=lambda event: event.t_s):
        if event.pool:
            by_pool.setdefault(event.pool, {}).setdefault(event.name, []).append(event)
    scalings = lineage.of_type(PoolScaled)
    for name in dict.fromkeys([*by_pool, *(event.pool for event in scalings)]):
        nodes = by_pool.get(name, {})
        yield Pool(
            name=name,
            nodes=tuple(
                Node(name=node, spells=tuple(_spells((event.t_s, _state_of_node(event)) for event in nodes[node])))
                for node in sorted(nodes)
            ),
            scalings=tuple(event for event in scalings if event.pool == name),
        )


def _state_of_node(event: NodeSeen) -> NodeState | None:
    if event.state == "Deleted":
        return None
    if event.state != "True":
        return "unready"
    return "ready" if event.is_schedulable else "cordoned"


def _spells(seen: Iterable[tuple[float, PodState | NodeState | None]]) -> Iterator[Spell]:
    """Times in one state, from what was seen in order; None is not there."""
    state: PodState | NodeState | None = None
    since_s = 0.0
    for t_s, now in seen:
        if now == state:
            continue
        if state is not None:
            yield Spell(state, since_s, t_s)
        state, since_s = now, t_s
    if state is not None:
        yield Spell(state, since_s, None)


def _admissions(task: int, lineage: Lineage, end_s: float) -> Iterator[AdmissionRow]:
    stays = lineage.stays_of(task)
    admissions = lineage.admissions_of(task)
    for admission in admissions:
        said = _said([stay for stay in stays if admission.asked_s <= stay.begin_s < admission.admitted_s])
        yield AdmissionRow(task=task, asked_s=admission.asked_s, admission=admission, waited_s=admission.waited_s, said=said)
    last = stays[-1] if stays else None
    if last is None or last.state in ("admitted", "finished"):
        return
    asked_s = admissions[-1].ended_s if admissions and admissions[-1].ended_s is not None else stays[0].begin_s
    before = _said([stay for stay in stays[:-1] if stay.begin_s >= asked_s])
    said = "; ".join(dict.fromkeys(text for text in (before, last.notes[-1][1] if last.notes else "") if text))
    told = f"{last.state}: {said}" if said else last.state
    yield AdmissionRow(task=task, asked_s=asked_s, admission=None, waited_s=max(end_s - asked_s, 0.0), said=told)


def _said(stays: Iterable[Stay]) -> str:
    """What a task waited for: the last word of each state; why it had been evicted is told with the admission before."""
    said = (WAITS_FOR.get(stay.state) or (stay.notes[-1][1] if stay.notes else "") for stay in stays)
    return "; ".join(dict.fromkeys(text for text in said if text))


def _requests(seen: Iterable[ProvisioningSeen]) -> Iterator[RequestRow]:
    known: dict[tuple[str, str], ConditionState] = {}
    for event in sorted(seen, key=lambda event: event.t_s):
        for condition in event.conditions:
            if known.get((event.uid, condition.type)) != condition:
                known[event.uid, condition.type] = condition
                yield RequestRow(event.t_s, event.task, event.name, condition)
        if event.is_deleted:
            yield RequestRow(event.t_s, event.task, event.name, None)
