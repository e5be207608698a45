"""A node pool brought to zero and back: what it had is known as data before anything is changed."""

from harness.targets.gcp.adopting import AdoptedPool, adopted_pool, look_up_pool
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.guard import NotAllowedError
from harness.targets.gcp.pool_nodes import nodes_by_zone, settled_pool, told
from harness.targets.gcp.undoing import ProjectRestorer
from harness.targets.gcp.works import Work
from harness.undo import ProjectAction, ResizeNodePool, RestoreAutoscaling

EMPTY = 0
"""Nodes that a lost pool has in each of its zones."""

SETTLED_S = 60.0
"""For a pool on which something is being done: whoever is about to hurt it waits no longer."""


class PoolSizes:
    """Resizes pools of one project.

    Args:
        clients: Google's.
        caller: Does the calls.
        project: Of the pools.
    """

    def __init__(self, clients: Clients, caller: Caller, project: str) -> None:
        self._clients, self._caller, self._project = clients, caller, project

    def current(self, pool: AdoptedPool) -> AdoptedPool:
        """The pool as it is now: its owner may have taken its label back since it was adopted.

        Raises:
            CallError: When it cannot be read.
        """
        return look_up_pool(self._clients, self._caller, pool.full_name)

    def saved(self, pool: AdoptedPool) -> tuple[ProjectAction, ...]:
        """What gives a pool the size and the autoscaling that it has now, where nobody has given it others since.

        Kubernetes Engine tells only with how many nodes a pool was made. So the size is what is there.

        Raises:
            LookupError: When the pool may not be touched, is not one that can be resized, or could not be given back as it is.
            UndoError: When something is done on it for too long.
            CallError: When it cannot be read.
        """
        raw = settled_pool(self._clients, self._caller, pool.full_name, within_s=SETTLED_S)
        found = adopted_pool(raw, pool.full_name.rpartition("/nodePools/")[0])
        require_resizable(found)
        counts = nodes_by_zone(self._clients, self._caller, pool.full_name, raw)
        if len(set(counts.values())) != 1:
            even = "Kubernetes Engine gives all zones of a pool the same size, so it could not be given back"
            raise LookupError(f"node pool {pool.full_name} has {told(counts)}: {even}")
        nodes = next(iter(counts.values()))
        scaling = found.autoscaling
        return (
            ResizeNodePool(name=found.full_name, node_count=nodes, wrote=EMPTY),
            RestoreAutoscaling(
                name=found.full_name,
                enabled=scaling.enabled,
                min_node_count=scaling.min_node_count,
                max_node_count=scaling.max_node_count,
                total_min_node_count=scaling.total_min_node_count,
                total_max_node_count=scaling.total_max_node_count,
                location_policy=scaling.location_policy if scaling.enabled else "",
                autoprovisioned=scaling.autoprovisioned,
                is_off_by_fault=True,
            ),
        )

    def emptying(self, pool: AdoptedPool) -> tuple[Work, ...]:
        """What brings it to zero nodes: its autoscaler is off first, or that works against it."""
        actions: list[ProjectAction] = [ResizeNodePool(name=pool.full_name, node_count=EMPTY)]
        if pool.autoscaling.enabled:
            actions.insert(0, RestoreAutoscaling(name=pool.full_name, enabled=False))
        return tuple(self.changing(action, f"emptying of node pool {pool.full_name}") for action in actions)

    def changing(self, action: ProjectAction, what: str) -> Work:
        """Do one action and see it done."""

        def do(caller: Caller) -> None:
            ProjectRestorer(self._clients, caller, self._project).restore((action,))

        return Work(what, do)


def require_resizable(pool: AdoptedPool) -> None:
    """See that a pool may be resized, and can be.

    Raises:
        LookupError: When not.
    """
    require_allowed_pool(pool)
    if pool.is_queued:
        raise LookupError(f"node pool {pool.full_name} gets its nodes by provisioning requests, and Kubernetes Engine resizes no such pool")


def require_allowed_pool(pool: AdoptedPool) -> None:
    """See that the owner of a pool allows faults on it.

    Raises:
        LookupError: When he does not.
    """
    if not pool.is_allowed:
        raise LookupError(str(NotAllowedError(kind="node pool", name=pool.full_name, found="it has no such label")))
