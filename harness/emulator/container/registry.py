"""The clusters that there are, as they are now."""

import threading

from harness.emulator.container.clusters import Cluster
from harness.emulator.container.groups import InstanceGroups
from harness.emulator.container.names import EVERYWHERE, Name
from harness.emulator.container.pools import Pool
from harness.emulator.container.refusals import already_exists, not_found
from harness.emulator.world import World


class Registry:
    """Clusters of all projects. Safe to use from every thread.

    Attributes:
        lock: Held while clusters are looked at or changed.
    """

    def __init__(self, world: World, groups: InstanceGroups) -> None:
        self.lock = threading.RLock()
        self._world = world
        self._groups = groups
        self._clusters: dict[str, Cluster] = {}

    def add(self, cluster: Cluster) -> None:
        """There is one more.

        Raises:
            ApiError: ALREADY_EXISTS.
        """
        with self.lock:
            self._settle()
            if cluster.name.cluster_path in self._clusters:
                raise already_exists(cluster.name)
            self._clusters[cluster.name.cluster_path] = cluster

    def remove(self, cluster: Cluster) -> None:
        """It is gone."""
        with self.lock:
            del self._clusters[cluster.name.cluster_path]

    def clusters(self, place: Name) -> list[Cluster]:
        """The clusters of a location, or of a whole project."""
        with self.lock:
            self._settle()
            return [
                cluster
                for cluster in self._clusters.values()
                if cluster.name.project == place.project and place.location in (EVERYWHERE, cluster.name.location)
            ]

    def cluster(self, name: Name) -> Cluster:
        """A cluster as it is now.

        Raises:
            ApiError: NOT_FOUND.
        """
        with self.lock:
            self._settle()
            found = self._clusters.get(name.cluster_path)
            if found is None:
                raise not_found(Name(project=name.project, location=name.location, cluster=name.cluster))
            return found

    def pool(self, name: Name) -> Pool:
        """A node pool as it is now.

        Raises:
            ApiError: NOT_FOUND.
        """
        with self.lock:
            found = self.cluster(name).pools.get(name.pool)
            if found is None:
                raise not_found(name)
            return found

    def _settle(self) -> None:
        """Operations end whose time has come; groups make anew what is gone and get what was missing; nodes whose life is over go."""
        self._world.operations.settle()
        now_s = self._world.clock.monotonic_s()
        for cluster in self._clusters.values():
            for pool in cluster.pools.values():
                if pool.is_settled:
                    pool.end_lives(self._groups, now_s)
                    pool.reconcile(self._groups, now_s)
