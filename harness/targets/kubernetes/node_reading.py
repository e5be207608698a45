"""Nodes as the API server has them: which a victim runs on, which are of a pool, and whether they take pods."""

from abc import abstractmethod
from collections.abc import Sequence

from harness.capabilities import PodName, Processes
from harness.errors import UndoError
from harness.kind.topology import POOL_LABEL
from harness.scenario.cluster_faults import Part
from harness.targets.kubernetes.api import NODES, NOT_FOUND, Api, ApiError, Object, labels_of, name_of
from harness.targets.kubernetes.grounds import ClusterHosting
from harness.targets.kubernetes.inventory import names_of, on_node
from harness.targets.kubernetes.refusals import told_as_lookup_errors


class NodeReading(ClusterHosting):
    """The part of a ``NodeHost`` that needs the API server alone."""

    @abstractmethod
    def pool_names(self) -> tuple[str, ...]:
        """All node pools of the cluster."""

    def nodes_of(self, victim: Processes, part: Part) -> tuple[str, ...]:
        """See ``NodeHost``."""
        pods = names_of(self.grounds.inventory.living(victim, part))
        found = tuple(dict.fromkeys(pod.node for pod in pods if pod.node and self._is_worker(pod.node)))
        if not found:
            raise LookupError(f"the pods of {part} of task {victim.task} run on no node of a pool: {', '.join(pod.name for pod in pods)}")
        return found

    def nodes_in(self, pool: str) -> tuple[str, ...]:
        """See ``NodeHost``."""
        pools = self.pool_names()
        if pool not in pools:
            raise LookupError(f"the cluster has no node pool {pool!r}, but {', '.join(pools)}")
        found = tuple(name_of(node) for node in self.grounds.inventory.nodes() if labels_of(node).get(POOL_LABEL) == pool)
        if not found:
            raise LookupError(f"node pool {pool!r} is empty")
        return found

    def pool_of(self, node: str) -> str:
        """See ``NodeHost``."""
        found = self.grounds.inventory.node(node)
        if found is None or POOL_LABEL not in labels_of(found):
            raise LookupError(f"{node!r} is no node of a pool")
        return str(labels_of(found)[POOL_LABEL])

    def pods_on(self, node: str) -> tuple[PodName, ...]:
        """See ``NodeHost``."""
        return names_of(pod for pod in on_node(self.grounds.inventory.pods(), node) if not pod["metadata"].get("deletionTimestamp"))

    def cordon(self, node: str) -> None:
        """See ``NodeHost``."""
        self.pool_of(node)
        with told_as_lookup_errors():
            set_schedulable(self.grounds.api, node, is_schedulable=False)

    def uncordon(self, node: str) -> None:
        """See ``NodeHost``."""
        with told_as_lookup_errors():
            set_schedulable(self.grounds.api, node, is_schedulable=True)

    def pods_by_node(self, nodes: Sequence[str]) -> dict[str, list[Object]]:
        """Pods on each of some nodes of pools.

        Raises:
            LookupError: When one is no such node.
        """
        for node in nodes:
            self.pool_of(node)
        return {node: list(on_node(self.grounds.inventory.pods(), node)) for node in nodes}

    def _is_worker(self, node: str) -> bool:
        found = self.grounds.inventory.node(node)
        return found is not None and POOL_LABEL in labels_of(found)


def set_schedulable(api: Api, node: str, *, is_schedulable: bool) -> bool:
    """Cordon or uncordon a node; false when it is not there, which uncordons it too.

    Raises:
        ApiError: When the API server does not do it.
        UndoError: When it says otherwise after that.
    """
    try:
        found = api.patch(NODES, node, {"spec": {"unschedulable": None if is_schedulable else True}})
    except ApiError as error:
        if error.status == NOT_FOUND and is_schedulable:
            return False
        raise
    if bool(found["spec"].get("unschedulable")) is is_schedulable:
        raise UndoError(attempted=f"set whether node {node} is schedulable", reason="the API server says otherwise after that")
    return True
