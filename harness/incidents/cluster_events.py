"""Entries about objects of a cluster, as events of a history: Kueue's workloads, requests for capacity, the job, pods, nodes, pools.

Read are Kubernetes events as GKE exports them (log ``events``), objects in audit entries of the API server, the visibility log of the
autoscaler, and the system events of the machines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

import msgspec

from harness.history import (
    ClusterEventSeen,
    ConditionState,
    Event,
    PoolScaled,
    ProvisioningSeen,
    SubmissionSeen,
    WorkloadSeen,
)
from harness.incidents.cluster_words import (
    AUTOSCALER_ERRORS,
    DEACTIVATED_REASONS,
    EVICTED_PREFIX,
    INSTANCE_EVENTS,
    PREEMPTED_REASONS,
    REQUEST_CONDITIONS,
)
from harness.incidents.entries import Entry

EVENTS_LOG = "events"
VISIBILITY_LOG = "container.googleapis.com/cluster-autoscaler-visibility"
AUDIT_PREFIX = "cloudaudit.googleapis.com/"

_TEXT_MAX = 2_000
_NODES_MAX = 100_000
_CONDITIONS_MAX = 50


@dataclass(slots=True)
class ObjectStates:
    """The state of each object, as far as entries have told it: what an event does not say stays as it was."""

    _conditions: dict[tuple[str, str], dict[str, ConditionState]] = field(default_factory=dict)
    _inactive: set[str] = field(default_factory=set)

    def workload(self, name: str, t_s: float, changes: Mapping[str, ConditionState], *, is_active: bool | None = None) -> WorkloadSeen:
        """A workload after a change."""
        if is_active is not None:
            (self._inactive.discard if is_active else self._inactive.add)(name)
        conditions = self._changed("Workload", name, changes)
        return WorkloadSeen(t_s=t_s, name=name, uid=name, is_active=name not in self._inactive, conditions=conditions)

    def request(self, name: str, t_s: float, changes: Mapping[str, ConditionState]) -> ProvisioningSeen:
        """A ProvisioningRequest after a change; Kueue ends its name with the number of the attempt."""
        number = name.rpartition("-")[2]
        known = int(number) if number.isascii() and number.isdecimal() and len(number) < 6 else 1
        conditions = self._changed("ProvisioningRequest", name, changes)
        return ProvisioningSeen(t_s=t_s, name=name, uid=name, number=known, conditions=conditions)

    def _changed(self, kind: str, name: str, changes: Mapping[str, ConditionState]) -> tuple[ConditionState, ...]:
        state = self._conditions.setdefault((kind, name), {})
        state.update(changes)
        return tuple(state[each] for each in sorted(state))


def concerned_by(entry: Entry) -> tuple[str, str]:
    """Kind and name of the object that an event, or an object in an audit entry, is about; empty where it is neither."""
    if entry.log == EVENTS_LOG:
        concerned = mapping_of(entry.payload.get("involvedObject") or entry.payload.get("regarding"))
        return text_of(concerned.get("kind")), text_of(concerned.get("name"))
    thing = object_in(entry)
    return text_of(thing.get("kind")), text_of(mapping_of(thing.get("metadata")).get("name"))


def object_in(entry: Entry) -> Mapping[str, object]:
    """The object with a status that an audit entry of the API server holds; empty where there is none."""
    if not entry.log.startswith(AUDIT_PREFIX):
        return {}
    found = (mapping_of(entry.payload.get(name)) for name in ("response", "request"))
    return next((each for each in found if isinstance(each.get("status"), dict) and isinstance(each.get("kind"), str)), {})


def events_in(entry: Entry, t_s: float, states: ObjectStates) -> Iterator[Event]:
    """What an entry says; nothing where it is of a kind that we do not know."""
    if entry.log == EVENTS_LOG:
        yield from _read_event(entry, t_s, states)
    elif entry.log == VISIBILITY_LOG:
        yield from _read_visibility(entry, t_s)
    elif entry.log.startswith(AUDIT_PREFIX):
        yield from _read_audit(entry, t_s, states)


def _read_event(entry: Entry, t_s: float, states: ObjectStates) -> Iterator[Event]:
    kind, name = concerned_by(entry)
    reason, message = text_of(entry.payload.get("reason")), text_of(entry.payload.get("message"))[:_TEXT_MAX]
    if not kind or not reason:
        return
    is_warning = text_of(entry.payload.get("type")) == "Warning" or entry.severity in ("WARNING", "ERROR")
    yield ClusterEventSeen(t_s=t_s, object_name=f"{kind}/{name}"[:300], reason=reason[:200], message=message, is_warning=is_warning)
    if kind == "Workload":
        yield from _read_workload_event(name, reason, message, t_s, states)
    elif kind == "ProvisioningRequest" and reason in REQUEST_CONDITIONS:
        condition, status = REQUEST_CONDITIONS[reason]
        yield states.request(name, t_s, {condition: ConditionState(type=condition, status=status, reason=reason, message=message)})
    elif kind in ("Job", "RayJob"):
        outcome = {"Completed": "Complete", "Succeeded": "Complete", "BackoffLimitExceeded": "Failed", "Failed": "Failed"}.get(reason)
        if outcome is not None:
            object_kind: Literal["Job", "RayJob"] = "RayJob" if kind == "RayJob" else "Job"
            yield SubmissionSeen(t_s=t_s, object_kind=object_kind, name=name, uid=name, status=outcome, reason=reason)


def _read_workload_event(name: str, reason: str, message: str, t_s: float, states: ObjectStates) -> Iterator[Event]:
    """Kueue's own events; conditions of the workload are what they stand for."""
    true = ConditionState(type="", status="True", reason=reason, message=message)
    if reason in ("QuotaReserved", "Admitted"):
        reached = ("QuotaReserved", "Admitted") if reason == "Admitted" else ("QuotaReserved",)  # nothing is admitted without quota
        changes = {each: msgspec.structs.replace(true, type=each) for each in reached}
        changes["Evicted"] = ConditionState(type="Evicted", status="False", reason=reason)
        yield states.workload(name, t_s, changes, is_active=True)
    elif reason == "Pending":
        yield states.workload(
            name, t_s, {"QuotaReserved": ConditionState(type="QuotaReserved", status="False", reason=reason, message=message)}
        )
    elif reason.startswith(EVICTED_PREFIX) or reason in PREEMPTED_REASONS or reason in DEACTIVATED_REASONS:
        why = reason.removeprefix(EVICTED_PREFIX)
        lost = {each: ConditionState(type=each, status="False", reason=why) for each in ("QuotaReserved", "Admitted")}
        evicted = ConditionState(type="Evicted", status="True", reason=why, message=message)
        is_active = False if "Deactivated" in reason or reason in DEACTIVATED_REASONS else None
        yield states.workload(name, t_s, {**lost, "Evicted": evicted}, is_active=is_active)
    elif reason in ("FinishedWorkload", "Finished"):
        yield states.workload(name, t_s, {"Finished": msgspec.structs.replace(true, type="Finished")})


def _read_visibility(entry: Entry, t_s: float) -> Iterator[Event]:
    """Decisions and failures of the autoscaler; a failure names the group of machines, and no pool."""
    scale_up = mapping_of(mapping_of(entry.payload.get("decision")).get("scaleUp"))
    for each in _list(scale_up.get("increasedMigs")):
        mig = mapping_of(mapping_of(each).get("mig"))
        nodes = mapping_of(each).get("requestedNodes")
        count = nodes if isinstance(nodes, int) and not isinstance(nodes, bool) and 0 <= nodes <= _NODES_MAX else 0
        yield PoolScaled(t_s=t_s, pool=_pool(mig), nodes=count, why="scale-up decided")
    for result in _list(mapping_of(entry.payload.get("resultInfo")).get("results")):
        error = mapping_of(mapping_of(result).get("errorMsg"))
        message_id = text_of(error.get("messageId"))
        if message_id in AUTOSCALER_ERRORS:
            group = ", ".join(text_of(each) for each in _list(error.get("parameters")))[:200]
            yield PoolScaled(t_s=t_s, pool=group, nodes=0, why="scale-up failed", error=message_id)


def _pool(mig: Mapping[str, object]) -> str:
    return (text_of(mig.get("nodepool")) or text_of(mig.get("name")))[:200]


def _read_audit(entry: Entry, t_s: float, states: ObjectStates) -> Iterator[Event]:
    method = text_of(entry.payload.get("methodName"))
    if method in INSTANCE_EVENTS:
        instance = instance_of(entry)
        yield ClusterEventSeen(t_s=t_s, object_name=f"Instance/{instance}", reason=method, message=entry.text[:_TEXT_MAX], is_warning=True)
        return
    thing = object_in(entry)
    name = text_of(mapping_of(thing.get("metadata")).get("name"))
    changes = _conditions(mapping_of(thing.get("status")))
    if thing.get("kind") == "Workload" and changes:
        active = mapping_of(thing.get("spec")).get("active")
        yield states.workload(name, t_s, changes, is_active=active if isinstance(active, bool) else None)
    elif thing.get("kind") == "ProvisioningRequest" and changes:
        yield states.request(name, t_s, changes)


def instance_of(entry: Entry) -> str:
    """The machine that a system event of Compute Engine is about: the node's name too."""
    return text_of(entry.payload.get("resourceName")).rpartition("/instances/")[2][:200]


def _conditions(status: Mapping[str, object]) -> dict[str, ConditionState]:
    found: dict[str, ConditionState] = {}
    for each in _list(status.get("conditions"))[:_CONDITIONS_MAX]:
        kind, value = text_of(mapping_of(each).get("type")), text_of(mapping_of(each).get("status"))
        if kind and value in ("True", "False", "Unknown"):
            reason, message = text_of(mapping_of(each).get("reason")), text_of(mapping_of(each).get("message"))[:_TEXT_MAX]
            found[kind] = ConditionState(type=kind, status=value, reason=reason, message=message)
    return found


def mapping_of(value: object) -> Mapping[str, object]:
    """An object of JSON; empty where it is none."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def text_of(value: object) -> str:
    """A text; empty where it is none."""
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
