"""The part of GKE's cluster autoscaler that guide B's plan A needs: nodes of the on-demand pool for pods that wait for one.

It only scales up. Nodes that nobody uses stay until the run ends (GKE: some ten minutes), and a slice of several hosts comes host by host
(GKE: as a whole).

Source: module k8s.io/autoscaler/cluster-autoscaler, packages core/scaleup and processors/status (pod events); module
k8s.io/gke-autoscaling/cluster-autoscaler, package visibility/events (FailedScaleUp).
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from harness.clock import Clock
from harness.history import Event, PoolScaled
from harness.history.cluster import CONSUME_ANNOTATION
from harness.kind.topology import POOL_LABEL
from harness.scenario import PoolAnswer
from harness.targets.kubernetes.api import EVENTS, PODS, Api, ApiError, Object, annotations_of, conditions_of, name_of, uid_of
from harness.targets.kubernetes.dws_reasons import PROJECT, QUOTA_EXCEEDED_MESSAGE, QUOTA_METRIC, REGION, ZONE
from harness.targets.kubernetes.dws_requests import chips_of, nodes_needed
from harness.targets.kubernetes.inventory import is_living, node_of
from harness.targets.kubernetes.pools import ON_DEMAND_POOL, NodePools
from harness.targets.kubernetes.watching import Change

SETTLE_S = 5.0
"""The scheduler binds waiting pods to a new node within a second or two; who still waits then needs another node."""

COMPONENT = "cluster-autoscaler"
BACKOFF = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
POOL_IS_FULL = "pod didn't trigger scale-up: 1 max node group size reached"


@dataclass(frozen=True, slots=True)
class Refusal:
    """How Google says that there is no machine.

    Attributes:
        code: Of the node pool's condition. Source: GKE API v1, StatusCondition.Code.
        text: Of the failed operation, with its own code. Source: Compute Engine, errors of instances.insert.
        pod_text: What the pod's event calls it. Source: GKE's autoscaler, package visibility/events.
    """

    code: str
    text: str
    pod_text: str


REFUSALS = {
    "stockout": Refusal(
        "GCE_STOCKOUT",
        f"ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/{PROJECT}/zones/{ZONE}' does not have enough resources available to fulfill the "
        "request. Try a different zone, or try again later.",
        "GCE out of resources",
    ),
    "quota-exceeded": Refusal(
        "GCE_QUOTA_EXCEEDED",
        f"QUOTA_EXCEEDED: {QUOTA_EXCEEDED_MESSAGE.format(metric=QUOTA_METRIC, region=REGION)}",
        "GCE quota exceeded",
    ),
}


class OnDemandAutoscaler:
    """Watches pods of one namespace: ``see`` every change, ``tick`` often. Neither waits for a machine."""

    def __init__(self, api: Api, pools: NodePools, clock: Clock, *, namespace: str, answer: PoolAnswer, pool: str = ON_DEMAND_POOL) -> None:
        self._api, self._pools, self._clock = api, pools, clock
        self._namespace, self._answer, self._pool = namespace, answer, pools.pool(pool)
        self._pods: dict[str, Object] = {}
        self._waiting_since_s: dict[str, float] = {}
        self._told: set[tuple[str, str]] = set()
        self._refused_s: float | None = None
        self._coming: tuple[str, ...] = ()
        self._written = 0

    def see(self, change: Change) -> None:
        """Take note of a change of a pod; others are passed over."""
        thing = change.object
        if change.resource != PODS or thing["metadata"].get("namespace") != self._namespace:
            return
        if change.kind != "deleted" and self._waits(thing):
            self._pods[uid_of(thing)] = thing
        else:
            self._pods.pop(uid_of(thing), None)
            self._waiting_since_s.pop(uid_of(thing), None)

    def tick(self, now_s: float) -> list[Event]:
        """Answer the pods that wait for a node long enough."""
        if self._coming:
            if self._pools.are_up(self._coming):
                self._coming = ()
                self._waiting_since_s = dict.fromkeys(self._pods, now_s + SETTLE_S)
            return []  # what was asked for may be all that they need
        for uid in self._pods:
            self._waiting_since_s.setdefault(uid, now_s)
        due = [pod for uid, pod in self._pods.items() if now_s >= self._waiting_since_s[uid] + self._answer.after_s]
        if not due:
            return []
        if not self._pools.spare(self._pool.name):
            self._tell(due, "NotTriggerScaleUp", POOL_IS_FULL)
            return []
        refusal = REFUSALS.get(self._answer.answer)
        if refusal is None or (self._refused_s is not None and now_s >= self._refused_s + self._answer.for_s):
            self._scale_up(due)
            return []
        if self._refused_s is not None:
            self._tell(due, "NotTriggerScaleUp", BACKOFF)
            return []
        self._refused_s = now_s
        return [self._refuse(due, refusal, now_s)]

    def _scale_up(self, pods: list[Object]) -> None:
        needed = nodes_needed((chips_of(pod["spec"]) for pod in pods), self._pool.tpu_chips)
        if needed is None:
            self._tell(pods, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 Insufficient google.com/tpu")
            return
        self._tell(pods, "TriggeredScaleUp", self._triggered(needed))
        self._coming = self._pools.grow(self._pool.name, needed, f"{len(pods)} pods waited for a node")

    def _refuse(self, pods: list[Object], refusal: Refusal, now_s: float) -> PoolScaled:
        needed = nodes_needed((chips_of(pod["spec"]) for pod in pods), self._pool.tpu_chips) or 1
        self._tell(pods, "TriggeredScaleUp", self._triggered(needed))
        failed = (
            f"Node scale up in zones {ZONE} associated with this pod failed: {refusal.pod_text}. Pod is at risk of not being scheduled."
        )
        self._tell(pods, "FailedScaleUp", failed, is_warning=True)
        size = self._pools.size(self._pool.name)
        return PoolScaled(t_s=now_s, pool=self._pool.name, nodes=size, why=refusal.text, error=refusal.code)

    def _triggered(self, needed: int) -> str:
        size = self._pools.size(self._pool.name)
        group = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/zones/{ZONE}/instanceGroups/gke-{PROJECT}-{self._pool.name}-grp"
        return f"pod triggered scale-up: [{{{group} {size}->{min(size + needed, self._pool.nodes)} (max: {self._pool.nodes})}}]"

    def _waits(self, pod: Object) -> bool:
        """Whether a pod is unschedulable, wants this pool, and has no ProvisioningRequest: those the autoscaler passes over."""
        scheduled = next((one for one in conditions_of(pod) if one["type"] == "PodScheduled"), {})
        return (
            is_living(pod)
            and not node_of(pod)
            and scheduled.get("status") == "False"
            and scheduled.get("reason") == "Unschedulable"
            and (pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL) == self._pool.name
            and CONSUME_ANNOTATION not in annotations_of(pod)
        )

    def _tell(self, pods: Iterable[Object], reason: str, message: str, *, is_warning: bool = False) -> None:
        """Write an Event for each pod, once for the same message. One that cannot be written changes nothing for the pod."""
        for pod in pods:
            key = (uid_of(pod), message)
            if key not in self._told:
                self._told.add(key)
                self._written += 1
                with suppress(ApiError):
                    self._api.create(EVENTS, self._event(pod, reason, message, is_warning=is_warning), self._namespace)

    def _event(self, pod: Object, reason: str, message: str, *, is_warning: bool) -> Object:
        now = self._clock.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name_of(pod)[:200]}.{uid_of(pod)[:8]}.{self._written}", "namespace": self._namespace},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "namespace": self._namespace, "uid": uid_of(pod)},
            "reason": reason,
            "message": message,
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
