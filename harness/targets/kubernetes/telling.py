"""What is told of the cluster: each change as an event, once."""

import msgspec

from harness.history import Event, NodeSeen
from harness.kind.topology import POOL_LABEL
from harness.protocol.attempt_key import AttemptKey
from harness.targets.kubernetes.api import (
    EVENTS,
    JOBS,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    RAY_CLUSTERS,
    RAY_JOBS,
    WORKLOADS,
    Object,
    labels_of,
    name_of,
    uid_of,
)
from harness.targets.kubernetes.attempts import Attempts
from harness.targets.kubernetes.inventory import Inventory, is_submission
from harness.targets.kubernetes.reading import event_seen, node_seen, pod_seen, provisioning_seen, submission_seen, workload_seen
from harness.targets.kubernetes.watching import Change

EVENTS_MAX = 2000
"""Events of the cluster that are told; a controller in trouble writes some a second, and a reader needs the first."""


class Teller:
    """Turns changes into events, and lets the attempts know of those that concern them."""

    def __init__(self, inventory: Inventory, attempts: Attempts, *, epoch_s: float) -> None:
        self._inventory = inventory
        self._attempts = attempts
        self._epoch_s = epoch_s
        self._last: dict[str, Event] = {}
        self._pools: dict[str, str] = {}
        self._orphans: dict[str, Change] = {}
        self._events_told = 0
        self._untold: set[str] = set()

    @property
    def events_untold(self) -> int:
        """How many of the cluster's own events came after the last that is told."""
        return len(self._untold)

    def see(self, change: Change, now_s: float) -> list[Event]:
        """Take in a change; the event that tells it, if it changes what is told."""
        thing, is_deleted, t_s = change.object, change.kind == "deleted", now_s - self._epoch_s
        if change.resource == EVENTS:
            return self._event(thing, t_s, is_deleted=is_deleted)
        self._inventory.see(change)
        if change.resource == NODES:
            return self._news(thing, self._node(thing, t_s, is_deleted=is_deleted))
        task = self._inventory.task_of(thing)
        if task is None:
            self._orphans[uid_of(thing)] = change
            return []
        return [*self._of_task(change, task, now_s), *self._adopt(now_s)]

    def _adopt(self, now_s: float) -> list[Event]:
        """Objects that were seen a moment before their owner: the watches of their kinds do not wait for one another."""
        events: list[Event] = []
        while known := [change for change in self._orphans.values() if self._inventory.task_of(change.object) is not None]:
            for change in known:
                del self._orphans[uid_of(change.object)]
                events += self._of_task(change, self._inventory.task_of(change.object) or 0, now_s)
        return events

    def _of_task(self, change: Change, task: int, now_s: float) -> list[Event]:
        thing, is_deleted = change.object, change.kind == "deleted"
        if change.resource == PODS:
            self._attempts.see_pod(thing, task, now_s, is_deleted=is_deleted)
        elif change.resource == RAY_CLUSTERS or (change.resource in (JOBS, RAY_JOBS) and is_submission(thing)):
            self._attempts.see_object(thing, change.resource, task, is_deleted=is_deleted)
        return self._news(thing, self._located(change, task, now_s - self._epoch_s, is_deleted=is_deleted))

    def _located(self, change: Change, task: int, t_s: float, *, is_deleted: bool) -> Event | None:
        thing, key = change.object, self._attempts.key_of(task)
        if change.resource == PODS:
            own = self._attempts.key_of_pod(uid_of(thing)) or AttemptKey(task, 0)
            return pod_seen(thing, own, t_s, pools=self._pools, is_deleted=is_deleted)
        if change.resource == WORKLOADS:
            return None if is_deleted else workload_seen(thing, key, t_s)
        if change.resource == PROVISIONING_REQUESTS:
            return provisioning_seen(thing, key, t_s, is_deleted=is_deleted)
        if change.resource in (JOBS, RAY_JOBS) and is_submission(thing):
            return submission_seen(thing, key, t_s, is_deleted=is_deleted)
        return None

    def _node(self, node: Object, t_s: float, *, is_deleted: bool) -> NodeSeen | None:
        """Nodes of pools alone: the control plane is none that a job runs on."""
        if POOL_LABEL not in labels_of(node):
            return None
        self._pools[name_of(node)] = labels_of(node)[POOL_LABEL]
        return node_seen(node, t_s, is_deleted=is_deleted)

    def _event(self, event: Object, t_s: float, *, is_deleted: bool) -> list[Event]:
        """An Event object is told once: that it repeats is no news."""
        uid = uid_of(event)
        if is_deleted or uid in self._last or uid in self._untold:
            return []
        if self._events_told >= EVENTS_MAX:
            self._untold.add(uid)
            return []
        self._events_told += 1
        self._last[uid] = told = event_seen(event, t_s)
        return [told]

    def _news(self, thing: Object, told: Event | None) -> list[Event]:
        if told is None:
            return []
        last = self._last.get(uid_of(thing))
        self._last[uid_of(thing)] = told
        is_same = last is not None and msgspec.structs.replace(last, t_s=told.t_s) == told
        return [] if is_same else [told]
