"""What the emulated platform was scripted to say of capacity is a fault like others: passed over, nothing that follows proves anything.

Due is the script of each request that was made. Where none was made at all, the first script that holds a refusal is due too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.checkers.evidence import Evidence
from harness.history import ConditionState, Event, PodSeen, PoolScaled, ProvisioningSeen, SubmissionSeen, WorkloadSeen
from harness.scenario import Cluster, Phase

CLUSTER_TARGET = "kind"

ON_DEMAND_POOL = "on-demand-pool"

ON_DEMAND_SELECTOR = f"cloud.google.com/gke-nodepool={ON_DEMAND_POOL}"
"""What a pod selects that is to run there. Source: GKE, labels of nodes."""

POOL_ERRORS = {"stockout": "GCE_STOCKOUT", "quota-exceeded": "GCE_QUOTA_EXCEEDED"}
"""By answer. Source: GKE API v1, StatusCondition.Code."""

WAITING_REASONS = {"stockout": "ResourcePoolExhausted", "quota-exceeded": "QuotaExceeded"}
"""Of the condition ``Provisioned`` while a request waits. Source: GKE's autoscaler, package provisioningrequests/reconciler/reasons."""

_TOLD_BY_CLUSTERS = (SubmissionSeen, WorkloadSeen, ProvisioningSeen, PodSeen, PoolScaled)


@dataclass(frozen=True, slots=True)
class Scripted:
    """One thing that was to be said.

    Attributes:
        what: And of what.
        asked_s: When somebody asked for capacity; None when nobody did.
        told_s: When it was seen to be said; None when it never was.
        words: As they were seen.
    """

    what: str
    asked_s: float | None
    told_s: float | None = None
    words: str = ""

    @property
    def has_landed(self) -> bool:
        """Whether it was said."""
        return self.told_s is not None

    def __str__(self) -> str:
        if self.told_s is not None:
            return f"{self.what} was seen at {self.told_s:.2f} s: {self.words}"
        if self.asked_s is None:
            return f"{self.what} was never told: nobody asked for that capacity"
        return f"{self.what} was due from {self.asked_s:.2f} s on, when capacity was asked for, and was never seen"


def scripted(evidence: Evidence) -> Iterator[Scripted]:
    """All that was due; nothing where there is no cluster."""
    if not _is_on_cluster(evidence):
        return
    requests = _requests(evidence)
    yield from _phases(evidence.scenario.cluster, requests)
    yield from _ends(evidence.scenario.cluster, requests)
    yield from _answers_of_pool(evidence)


def _is_on_cluster(evidence: Evidence) -> bool:
    opened = evidence.opened
    return (opened is not None and opened.target == CLUSTER_TARGET) or any(
        isinstance(event, _TOLD_BY_CLUSTERS) for event in evidence.events
    )


def _requests(evidence: Evidence) -> list[list[list[ProvisioningSeen]]]:
    """Of each task that made some, its requests in the order they came, each as it was seen."""
    tasks: dict[int, dict[str, list[ProvisioningSeen]]] = {}
    for event in sorted(evidence.of_type(ProvisioningSeen), key=lambda event: event.t_s):
        tasks.setdefault(event.task, {}).setdefault(event.uid, []).append(event)
    return [list(requests.values()) for requests in tasks.values()]


def _phases(cluster: Cluster, tasks: Sequence[Sequence[Sequence[ProvisioningSeen]]]) -> Iterator[Scripted]:
    scripts = [[phase for phase in script.phases if phase.state != "granted"] for script in cluster.provisioning]
    if not tasks:
        yield from (Scripted(f"{_named(phase)} of a request", None) for phase in next(filter(None, scripts), []))
    for requests in tasks:
        for index, seen in enumerate(requests):
            # The last script holds for all that follow: the run may end before the newest of them is answered.
            if index < len(scripts) or _holding(seen, "Provisioned") or _holding(seen, "Failed"):
                yield from (_phase(phase, seen) for phase in scripts[min(index, len(scripts) - 1)])


def _phase(phase: Phase, seen: Sequence[ProvisioningSeen]) -> Scripted:
    what = f"{_named(phase)} of {seen[0].name}"
    if phase.state in WAITING_REASONS:
        found = _first(seen, "Provisioned", "False", WAITING_REASONS[phase.state])
    elif phase.state == "failed":
        found = _first(seen, "Failed", "True", phase.reason)
    elif phase.state == "never":
        found = None if _holding(seen, "Provisioned") or _holding(seen, "Failed") else _holding(seen, "Accepted")
    else:
        found = _holding(seen, "BookingExpired")
    return _scripted(what, seen[0].t_s, found)


def _named(phase: Phase) -> str:
    return f"{phase.state} ({phase.reason})" if phase.state == "failed" else phase.state


def _ends(cluster: Cluster, tasks: Sequence[Sequence[Sequence[ProvisioningSeen]]]) -> Iterator[Scripted]:
    """The end of a booking or of a run that the scenario has brought nearer than GKE has it: one request must have come to it."""
    usual = Cluster()
    requests = [seen for task in tasks for seen in task]
    asked_s = min((seen[0].t_s for seen in requests), default=None)
    for is_nearer, what, kind in (
        (cluster.booking_s < usual.booking_s, f"the end of a booking of {cluster.booking_s:g} s", "BookingExpired"),
        (cluster.max_run_s < usual.max_run_s, f"the end of a maximum run time of {cluster.max_run_s:g} s", "CapacityRevoked"),
    ):
        if is_nearer:
            yield _scripted(what, asked_s, next(filter(None, (_holding(seen, kind) for seen in requests)), None))


def _answers_of_pool(evidence: Evidence) -> Iterator[Scripted]:
    """The refusal of nodes, and that there were none before: a job that found one has waited for nothing.

    While nodes are refused no scale-up is due; who is bound to one all the same owes it.
    """
    cluster = evidence.scenario.cluster
    answer = cluster.on_demand.answer
    scaled = evidence.of_type(PoolScaled)
    hosts = [pod for pod in evidence.of_type(PodSeen) if _asks_on_demand(pod)]
    asked_s = min((pod.t_s for pod in hosts), default=None)
    granted_s = asked_s
    if answer in POOL_ERRORS:
        refused = next((event for event in scaled if event.error == POOL_ERRORS[answer]), None)
        granted_s = None if refused is None else refused.t_s + cluster.on_demand.for_s
        yield Scripted(f"{answer} of nodes of {ON_DEMAND_POOL}", asked_s, *_told(refused, "" if refused is None else refused.why))
    is_due = any(pod.pool for pod in hosts) or (granted_s is not None and granted_s <= _ended_s(evidence))
    if cluster.on_demand_nodes == 0 and hosts and is_due:
        grown = next((event for event in scaled if event.pool == ON_DEMAND_POOL and event.nodes and not event.error), None)
        yield Scripted(f"a scale-up of {ON_DEMAND_POOL} from 0", asked_s, *_told(grown, "" if grown is None else grown.why))


def _asks_on_demand(pod: PodSeen) -> bool:
    """Whether a host runs in the on-demand pool, or waits for a node of it, as the autoscaler sees it: one with a request is DWS's."""
    waits = not pod.node and ON_DEMAND_SELECTOR in pod.selector and not pod.provisioning_request
    return pod.role == "host" and (waits or pod.pool == ON_DEMAND_POOL)


def _ended_s(evidence: Evidence) -> float:
    """When the run was ended: what comes later is the harness's own doing."""
    closed = evidence.closed
    if closed is None:
        return max((event.t_s for event in evidence.events), default=0.0)
    return closed.t_s if closed.ended_s is None else closed.ended_s


def _scripted(what: str, asked_s: float | None, found: tuple[ProvisioningSeen, ConditionState] | None) -> Scripted:
    if found is None:
        return Scripted(what, asked_s)
    event, condition = found
    return Scripted(what, asked_s, event.t_s, f"{event.name} says {condition.type}={condition.status} ({condition.reason})")


def _told(event: Event | None, words: str) -> tuple[float | None, str]:
    return (None if event is None else event.t_s), words


def _holding(seen: Sequence[ProvisioningSeen], kind: str) -> tuple[ProvisioningSeen, ConditionState] | None:
    return _first(seen, kind, "True")


def _first(seen: Sequence[ProvisioningSeen], kind: str, status: str, reason: str = "") -> tuple[ProvisioningSeen, ConditionState] | None:
    """The first time that a condition was seen so; any reason where none is given."""
    for event in seen:
        for condition in event.conditions:
            if (condition.type, condition.status) == (kind, status) and reason in ("", condition.reason):
                return event, condition
    return None
