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
class Grounds:
    """One run on one cluster.

    Attributes:
        launch: What runs.
        clock: The time.
        cluster: The cluster, as it was recorded when it was made.
        api: Its API server.
        machines: The containers that are its nodes.
        namespace: The run's own.
        directory: The run's part of the storage that outlives nodes, at the same path here, in nodes and in pods.
        inventory: What is known of the run's objects.
        hurt: Uids of pods that an injection has taken away, or is about to: their ends are laid at its door.
        ahead: Other jobs that were submitted and are not admitted yet: a task that is to find capacity taken is submitted behind them.
    """

    launch: Launch
    clock: Clock
    cluster: KindCluster
    api: Api
    machines: NodeContainers
    namespace: str
    directory: Path
    inventory: Inventory
    hurt: set[str] = field(default_factory=set)
    ahead: set[str] = field(default_factory=set)

    def t_s(self) -> float:
        """Now, as the history counts."""
        return self.clock.monotonic_s() - self.launch.epoch_s

    def note_hurt(self, pods: Iterable[Object]) -> None:
        """An injection is about to take these pods away."""
        self.hurt.update(uid_of(pod) for pod in pods)


class Hosting(ABC):
    """What every part of the target stands on."""

    cluster_name = CLUSTER_NAME

    @property
    @abstractmethod
    def grounds(self) -> Grounds:
        """What the run works with; seen to be the cluster that it began on.

        Raises:
            LookupError: When no execution runs, or another cluster answers.
        """

    def cluster_uid(self) -> str:
        """Which cluster it is: one of the same name may take its place."""
        return self.grounds.cluster.uid
