"""The nodes of ProvisioningRequests: named after their request, kept while a pod uses them, taken away when none has for a while."""

from collections.abc import Iterable

from harness.targets.kubernetes.api import NODES, NOT_FOUND, PODS, Api, ApiError, Object, labels_of, name_of, uid_of
from harness.targets.kubernetes.dws_requests import REQUEST_LABEL, consumed_by
from harness.targets.kubernetes.dws_served import Served
from harness.targets.kubernetes.inventory import node_of
from harness.targets.kubernetes.pools import NodePools
from harness.targets.kubernetes.watching import Change

IDLE_S = 15.0
"""A node that nobody has used for so long is taken away. Longer than the 10 s for which the Job controller holds back the pod that follows
a failed one; shorter than the jobs that scenarios run, 20 s, so that a pod that lacks its annotations loses its node before it ends.
The autoscaler waits for 10 minutes.
Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md, "How does scale-down work?" (flag
``--scale-down-unneeded-time``); kubernetes/kubernetes, pkg/controller/job, DefaultJobPodFailureBackOff."""


class RequestNodes:
    """Sees the pods of one namespace and all nodes; whose nodes are whose is written in ``Served``.

    Attributes:
        names: All requests that ever were served. A pod of one may be bound to a node of another, since guide B's queue ties it to the pool
            alone, and keeps it.
    """

    def __init__(self, api: Api, pools: NodePools, *, namespace: str, pool: str) -> None:
        self._api, self._pools, self._namespace, self._pool = api, pools, namespace, pool
        self.names: set[str] = set()
        self._pods: dict[str, Object] = {}
        self._unlabelled: set[str] = set()

    def see(self, change: Change) -> None:
        """Take note of a change of a pod or a node; others are passed over."""
        thing = change.object
        if change.resource == PODS and thing["metadata"].get("namespace") == self._namespace:
            self._pods.pop(uid_of(thing), None)
            if change.kind != "deleted":
                self._pods[uid_of(thing)] = thing
        elif change.resource == NODES and change.kind != "deleted" and REQUEST_LABEL not in labels_of(thing):
            self._unlabelled.add(name_of(thing))

    def grow(self, served: Served) -> None:
        """Let machines come for a request."""
        served.nodes = self._pools.grow(self._pool, served.needed, f"ProvisioningRequest {served.asked.name} was granted")
        self._unlabelled.update(served.nodes)

    def are_there(self, served: Served) -> bool:
        """Whether all of them are up, and named after the request."""
        return self._pools.are_up(served.nodes) and not self._unlabelled.intersection(served.nodes)

    def label(self, served: Served) -> None:
        """Name the request on its nodes; again when one has come back as another object. One that goes meanwhile is none to be named.

        Raises:
            ApiError: When the API server does not take it.
        """
        body = {"metadata": {"labels": {REQUEST_LABEL: served.asked.resize_request}}}
        for name in self._unlabelled.intersection(served.nodes):
            if self._pools.are_up([name]) and self._api.get(NODES, name) is not None and self._patch(name, body):
                self._unlabelled.discard(name)

    def note_use(self, served: Served, now_s: float) -> None:
        """Note which nodes are in use, as the watches tell it."""
        self._note(served, self._pods.values(), now_s)

    def reclaim(self, served: Served, now_s: float, *, idle_s: float, why: str) -> None:
        """Take away nodes that nobody has used for ``idle_s``: closed to new pods first, and gone when nobody is there in the next look.

        The second look asks the API server: a watch may be behind, and a machine goes on until those are up that were to start before.

        Raises:
            ApiError: When the API server does not answer; nodes that are closed then are looked at again.
        """
        if served.closed:
            self._note(served, self._api.list(PODS, self._namespace), now_s)
        idle = {name for name in served.nodes if served.used_s.get(name, served.course.provisioned_s) + idle_s < now_s}
        self.release(served, served.closed & idle, why)
        for name in sorted(served.closed - idle):
            self._patch(name, {"spec": {"unschedulable": None}})
            served.closed.discard(name)
        for name in sorted(idle.intersection(served.nodes)):
            self._patch(name, {"spec": {"unschedulable": True}})
            served.closed.add(name)

    def release(self, served: Served, nodes: Iterable[str], why: str) -> None:
        """Take nodes away, whatever runs there; it gets SIGTERM first."""
        going = tuple(sorted(nodes))
        self._pools.shrink(going, f"ProvisioningRequest {served.asked.name}: {why}", is_graceful=True)
        served.nodes = tuple(name for name in served.nodes if name not in going)
        served.closed.difference_update(going)

    def _note(self, served: Served, pods: Iterable[Object], now_s: float) -> None:
        """A pod without the annotations uses no node, whatever runs in it. One that is bound to none yet may need any of its request's."""
        for pod in pods:
            name = consumed_by(pod)
            if node_of(pod) in served.nodes and name in self.names:
                served.used_s[node_of(pod)] = now_s
            elif not node_of(pod) and name == served.asked.name:
                served.used_s.update(dict.fromkeys(served.nodes, now_s))

    def _patch(self, node: str, body: Object) -> bool:
        """Change a node; false when it is gone."""
        try:
            self._api.patch(NODES, node, body)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True
