"""What is done to clusters and node pools: each act is an operation that takes time on the emulator's clock, one at a time a cluster."""

from collections.abc import Callable, Sequence

from google.cloud import container_v1

from harness.emulator.container.clusters import Cluster, new_cluster, new_pool
from harness.emulator.container.durations import Durations
from harness.emulator.container.groups import InstanceGroups
from harness.emulator.container.names import Name
from harness.emulator.container.operations import Works, to_text
from harness.emulator.container.pools import Pool
from harness.emulator.container.refusals import already_exists
from harness.emulator.container.registry import Registry
from harness.emulator.failures import ApiError
from harness.emulator.operations import Operation
from harness.emulator.world import World

ClusterStatus = container_v1.Cluster.Status
PoolStatus = container_v1.NodePool.Status


class Engine:
    """Acts on clusters. Safe to use from every thread.

    Attributes:
        works: Their operations.
        registry: The clusters.
        lock: Held while clusters are looked at or changed.
    """

    def __init__(self, world: World, groups: InstanceGroups, durations: Durations) -> None:
        self.works = Works(world)
        self.registry = Registry(world, groups)
        self.lock = self.registry.lock
        self._world = world
        self._groups = groups
        self._durations = durations

    def create(self, name: Name, asked: container_v1.Cluster, pools: Sequence[container_v1.NodePool]) -> Operation:
        """Make a cluster with its node pools.

        Raises:
            ApiError: ALREADY_EXISTS.
        """
        with self.lock:
            cluster = new_cluster(name, asked, to_text(self._world.clock.utc()))
            self.registry.add(cluster)
            for pool in pools:
                self._add(cluster, pool)
            return self._begin("CREATE_CLUSTER", cluster, name, self._durations.create_cluster_s, self._reconciler(cluster))

    def delete(self, cluster: Cluster) -> Operation:
        """Remove a cluster with its nodes.

        Raises:
            ApiError: FAILED_PRECONDITION while another operation works on it.
        """

        def work() -> Sequence[ApiError]:
            for pool in cluster.pools.values():
                pool.empty(self._groups)
            self.registry.remove(cluster)
            return ()

        with self.lock:
            self.works.require_idle(cluster.name)
            for pool in cluster.pools.values():
                pool.message.status = PoolStatus(PoolStatus.STOPPING)
            return self._begin(
                "DELETE_CLUSTER", cluster, cluster.name, self._durations.delete_cluster_s, work, status=ClusterStatus.STOPPING
            )

    def label(self, cluster: Cluster, labels: dict[str, str]) -> Operation:
        """Replace the labels of a cluster.

        Raises:
            ApiError: FAILED_PRECONDITION while another operation works on it.
        """

        def work() -> Sequence[ApiError]:
            cluster.message.resource_labels = labels
            return ()

        with self.lock:
            self.works.require_idle(cluster.name)
            return self._begin("SET_LABELS", cluster, cluster.name, self._durations.update_s, work)

    def create_pool(self, cluster: Cluster, asked: container_v1.NodePool) -> Operation:
        """Make a node pool. Where machines are missing it stays, says so, and gets them when there are some.

        Raises:
            ApiError: ALREADY_EXISTS; FAILED_PRECONDITION while another operation works on the cluster.
        """
        with self.lock:
            self.works.require_idle(cluster.name)
            pool = self._add(cluster, asked)
            return self._begin("CREATE_NODE_POOL", cluster, pool.name, self._durations.create_pool_s, self._reconciler(cluster, pool))

    def delete_pool(self, cluster: Cluster, pool: Pool) -> Operation:
        """Remove a node pool with its nodes.

        Raises:
            ApiError: FAILED_PRECONDITION while another operation works on the cluster.
        """

        def work() -> Sequence[ApiError]:
            pool.empty(self._groups)
            del cluster.pools[pool.name.pool]
            return ()

        with self.lock:
            self.works.require_idle(cluster.name)
            pool.message.status = PoolStatus(PoolStatus.STOPPING)
            return self._begin("DELETE_NODE_POOL", cluster, pool.name, self._durations.delete_pool_s, work)

    def resize(self, cluster: Cluster, pool: Pool, size: int) -> Operation:
        """Give a pool another number of nodes in each zone; it is shown as the initial one too.

        Source: the warning at ``initial_node_count`` in the documentation of Terraform's ``google_container_node_pool``.

        Raises:
            ApiError: FAILED_PRECONDITION while another operation works on the cluster.
        """

        def change() -> None:
            pool.size = pool.message.initial_node_count = size

        return self.change_pool("SET_NODE_POOL_SIZE", cluster, pool, change, lasts_s=self._durations.resize_s)

    def change_pool(
        self,
        kind: str,
        cluster: Cluster,
        pool: Pool,
        change: Callable[[], None],
        *,
        lasts_s: float | None = None,
        is_cancellable: bool = False,
    ) -> Operation:
        """Change a node pool at the end of an operation.

        Raises:
            ApiError: FAILED_PRECONDITION while another operation works on the cluster.
        """

        def work() -> Sequence[ApiError]:
            change()
            return pool.reconcile(self._groups, self._world.clock.monotonic_s())

        def undo() -> None:
            pool.message.status = PoolStatus(PoolStatus.RUNNING)

        with self.lock:
            self.works.require_idle(cluster.name)
            pool.message.status = PoolStatus(PoolStatus.RECONCILING)
            duration_s = self._durations.update_s if lasts_s is None else lasts_s
            return self._begin(kind, cluster, pool.name, duration_s, work, on_cancel=undo if is_cancellable else None)

    def provision(self, pool: Pool, size: int) -> None:
        """What the platform does for a request that was queued: so many nodes together, for the life that the pool gives them.

        Raises:
            ApiError: RESOURCE_EXHAUSTED when it cannot; then none is made.
        """
        with self.lock:
            before, pool.size = pool.size, size
            errors = pool.reconcile(self._groups, self._world.clock.monotonic_s())
            if errors:
                pool.size = before
                pool.reconcile(self._groups, self._world.clock.monotonic_s())
                raise errors[0]

    def _add(self, cluster: Cluster, asked: container_v1.NodePool) -> Pool:
        name = Name(project=cluster.name.project, location=cluster.name.location, cluster=cluster.name.cluster, pool=asked.name)
        if asked.name in cluster.pools:
            raise already_exists(name)
        pool = new_pool(name, asked, cluster)
        cluster.pools[asked.name] = pool
        return pool

    def _begin(
        self,
        kind: str,
        cluster: Cluster,
        target: Name,
        lasts_s: float,
        work: Callable[[], Sequence[ApiError]],
        *,
        status: int = ClusterStatus.RECONCILING,
        on_cancel: Callable[[], None] | None = None,
    ) -> Operation:
        """Begin an operation; the cluster shows that it is worked on, and runs again when it ends."""
        if cluster.message.status != ClusterStatus.PROVISIONING:
            cluster.message.status = ClusterStatus(status)

        def finish() -> Sequence[ApiError]:
            with self.lock:
                cluster.message.status = ClusterStatus(ClusterStatus.RUNNING)
                return work()

        def cancel() -> None:
            with self.lock:
                cluster.message.status = ClusterStatus(ClusterStatus.RUNNING)
                if on_cancel is not None:
                    on_cancel()

        return self.works.begin(kind, target, lasts_s, finish, on_cancel=cancel if on_cancel else None)

    def _reconciler(self, cluster: Cluster, pool: Pool | None = None) -> Callable[[], Sequence[ApiError]]:
        def work() -> Sequence[ApiError]:
            pools = list(cluster.pools.values()) if pool is None else [pool]
            return [error for each in pools for error in each.reconcile(self._groups, self._world.clock.monotonic_s())]

        return work
