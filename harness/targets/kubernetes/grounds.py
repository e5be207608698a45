"""What every part of the target works with in one run."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from harness.capabilities import Launch
from harness.clock import Clock
from harness.kind import KindCluster, NodeContainers
from harness.kind.cluster import CLUSTER_NAME
from harness.targets.kubernetes.api import Api, Object, uid_of
from harness.targets.kubernetes.inventory import Inventory


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterGrounds:
    """One run on one cluster, whoever runs that.

    Attributes:
        launch: What runs.
        clock: The time.
        api: Its API server.
        namespace: The run's own.
        inventory: What is known of the run's objects.
        hurt: Uids of pods that an injection has taken away, or is about to: their ends are laid at its door.
        ahead: Other jobs that were submitted and are not admitted yet: a task that is to find capacity taken is submitted behind them.
    """

    launch: Launch
    clock: Clock
    api: Api
    namespace: str
    inventory: Inventory
    hurt: set[str] = field(default_factory=set)
    ahead: set[str] = field(default_factory=set)

    def t_s(self) -> float:
        """Now, as the history counts."""
        return self.clock.monotonic_s() - self.launch.epoch_s

    def note_hurt(self, pods: Iterable[Object]) -> None:
        """An injection is about to take these pods away."""
        self.hurt.update(uid_of(pod) for pod in pods)

    @property
    def placeholder_image(self) -> str:
        """What a job that only holds capacity runs: it has ``sleep``."""
        raise NotImplementedError

    @property
    def cluster_uid(self) -> str:
        """Which cluster it is."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds(ClusterGrounds):
    """One run on the local cluster.

    Attributes:
        cluster: The cluster, as it was recorded when it was made.
        machines: The containers that are its nodes.
        directory: The run's part of the storage that outlives nodes, at the same path here, in nodes and in pods.
    """

    cluster: KindCluster
    machines: NodeContainers
    directory: Path

    @property
    def placeholder_image(self) -> str:
        """See ``ClusterGrounds``."""
        return self.cluster.job_image

    @property
    def cluster_uid(self) -> str:
        """See ``ClusterGrounds``."""
        return self.cluster.uid


class ClusterHosting(ABC):
    """What every part of a target with a cluster stands on."""

    @property
    @abstractmethod
    def grounds(self) -> ClusterGrounds:
        """What the run works with; seen to be the cluster that it began on.

        Raises:
            LookupError: When no execution runs, or another cluster answers.
        """

    def cluster_uid(self) -> str:
        """Which cluster it is: one of the same name may take its place."""
        return self.grounds.cluster_uid


class Hosting(ClusterHosting):
    """What every part of the target ``kind`` stands on."""

    cluster_name = CLUSTER_NAME

    @property
    @abstractmethod
    def grounds(self) -> Grounds:
        """See ``ClusterHosting``."""
