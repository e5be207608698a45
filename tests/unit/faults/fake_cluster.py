"""A cluster in memory: two nodes a pool, one pod a node, a queue; does what it is told and remembers it. Effects come as a test says."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.capabilities import PodName, Processes
from harness.undo import ClusterAction, DeleteObject, Reactivate, RestoreImage, RestoreQuota

POOLS = {"on-demand-pool": ("node-1", "node-2"), "dws-pool": ("node-3", "node-4")}


@dataclass
class FakeCluster:
    """Of the victim there is a host on each node of the on-demand pool; ``refuses`` makes one method say that it cannot."""

    cluster_name: str = "chaos-harness"
    done: list[tuple[object, ...]] = field(default_factory=list)
    refuses: dict[str, str] = field(default_factory=dict)
    quotas: dict[str, int] = field(default_factory=lambda: {"on-demand": 16})
    counted: dict[str, int | None] = field(default_factory=lambda: {"on-demand": 16})
    limit: int | None = None
    admitted: bool = False
    vacated: bool = True
    has_workload: bool = True
    whole: bool = False
    serving: bool = True
    breakage: dict[str, str] = field(default_factory=dict)
    instance: str = "containerd://old"
    grace_s: int = 30

    def cluster_uid(self) -> str:
        return "uid-of-cluster"

    def _do(self, name: str, *what: object) -> None:
        if name in self.refuses:
            raise LookupError(self.refuses[name])
        self.done.append((name, *what))

    def names(self) -> list[object]:
        """What was done, without the details."""
        return [what[0] for what in self.done]

    # pods

    def pods_of(self, victim: Processes, part: str) -> tuple[PodName, ...]:
        self._do("pods_of", victim.rank, part)
        ranks = range(2) if victim.rank < 0 else (victim.rank,)
        return tuple(self.pod(rank) for rank in ranks)

    def pod(self, rank: int) -> PodName:
        return PodName(namespace="run", name=f"host-{rank}", uid=f"uid-{rank}", node=f"node-{rank + 1}", grace_s=self.grace_s)

    def delete_pod(self, pod: PodName, grace_s: int | None) -> None:
        self._do("delete_pod", pod.name, grace_s)

    def evict_pod(self, pod: PodName) -> None:
        self._do("evict_pod", pod.name)

    # nodes

    def nodes_of(self, victim: Processes, part: str) -> tuple[str, ...]:
        return tuple(pod.node for pod in self.pods_of(victim, part))

    def nodes_in(self, pool: str) -> tuple[str, ...]:
        self._do("nodes_in", pool)
        return POOLS[pool]

    def pool_of(self, node: str) -> str:
        return next(pool for pool, nodes in POOLS.items() if node in nodes)

    def pods_on(self, node: str) -> tuple[PodName, ...]:
        return tuple(pod for pod in (self.pod(0), self.pod(1)) if pod.node == node)

    def cordon(self, node: str) -> None:
        self._do("cordon", node)

    def uncordon(self, node: str) -> None:
        self._do("uncordon", node)

    def break_nodes(self, nodes: Sequence[str], how: str) -> None:
        self._do("break_nodes", tuple(nodes), how)

    def breakage_of(self, node: str, how: str) -> str:
        return self.breakage.get(node, "")

    def lose_nodes(self, nodes: Sequence[str]) -> None:
        self._do("lose_nodes", tuple(nodes))

    def announce_maintenance(self, node: str, *, in_s: float) -> None:
        self._do("announce_maintenance", node, in_s)

    def announce_termination(self, node: str) -> None:
        self._do("announce_termination", node)

    def mend_nodes(self, nodes: Sequence[str]) -> None:
        self._do("mend_nodes", tuple(nodes))

    def are_whole(self, nodes: Sequence[str]) -> bool:
        if "are_whole" in self.refuses:
            raise LookupError(self.refuses["are_whole"])
        return self.whole

    # the queue

    def quota_of(self, flavor: str) -> int:
        if flavor not in self.quotas:
            raise LookupError(f"the queue has no flavor {flavor!r}")
        return self.quotas[flavor]

    def set_quota(self, flavor: str, chips: int) -> None:
        self._do("set_quota", flavor, chips)
        self.quotas[flavor] = chips

    def quota_in_force(self, flavor: str) -> int | None:
        return self.counted[flavor]

    def quota_undo(self, flavor: str, *, to: int) -> tuple[ClusterAction, ...]:
        return (RestoreQuota(queue="queue", flavor=flavor, resource="google.com/tpu", quota=str(self.quotas[flavor]), wrote=str(to)),)

    def limit_namespace(self, chips: int | None) -> None:
        self._do("limit_namespace", chips)

    def is_limited_to(self, chips: int | None) -> bool:
        return self.limit == chips

    def limit_undo(self) -> tuple[ClusterAction, ...]:
        return (DeleteObject(api_version="v1", resource="resourcequotas", namespace="run", name="limit"),)

    def occupy(self, name: str, *, flavor: str, chips: int) -> str:
        self._do("occupy", name, flavor, chips)
        return f"job {name} for {chips or 16} chips of flavor {flavor}"

    def occupied(self, name: str, *, flavor: str) -> str:
        if "occupied" in self.refuses:
            raise LookupError(self.refuses["occupied"])
        return f"workload {name} was admitted to chips of flavor {flavor}" if self.admitted else ""

    def preempt(self, name: str, victim: Processes) -> str:
        self._do("preempt", name, victim.task)
        return f"job {name}"

    def has_admitted(self, name: str) -> bool:
        return self.admitted

    def vacate(self, name: str) -> None:
        self._do("vacate", name)

    def is_vacated(self, name: str) -> bool:
        return self.vacated

    def occupation_undo(self, name: str) -> tuple[ClusterAction, ...]:
        return (DeleteObject(api_version="batch/v1", resource="jobs", namespace="run", name=name),)

    def reactivate(self, victim: Processes) -> str:
        self._do("reactivate", victim.task)
        return "workload workload (uid-1) was deleted" if self.has_workload else ""

    def set_active(self, victim: Processes, *, is_active: bool) -> bool:
        self._do("set_active", victim.task, is_active)
        return self.has_workload

    def activation_undo(self, victim: Processes) -> tuple[ClusterAction, ...]:
        if not self.has_workload:
            raise LookupError(f"task {victim.task} has no workload")
        return (Reactivate(namespace="run", name="workload"),)

    def revoke_capacity(self, victim: Processes) -> tuple[str, ...]:
        self._do("revoke_capacity", victim.task)
        return POOLS["dws-pool"]

    # the control plane

    def component_instance(self, component: str) -> str:
        return self.instance

    def kill_component(self, component: str) -> str:
        self._do("kill_component", component)
        return self.instance

    def is_serving(self) -> bool:
        return self.serving

    def forget_image(self, nodes: Sequence[str]) -> str:
        self._do("forget_image", tuple(nodes))
        return f"none of {', '.join(nodes)} knows the image"

    def restore_image(self, nodes: Sequence[str]) -> str:
        self._do("restore_image", tuple(nodes))
        return f"{', '.join(nodes)} know the image"

    def image_undo(self, nodes: Sequence[str]) -> tuple[ClusterAction, ...]:
        return tuple(RestoreImage(node=node, image="job") for node in nodes)
