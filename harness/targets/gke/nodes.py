"""Nodes that are hurt by the project's own means: machines reset, deleted and maintained, pools brought to zero and back.

Nothing here makes a machine: managed instance groups and pools do, so another node may be in a lost one's place, under its name or another.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.capabilities import Breakage
from harness.errors import HarnessError
from harness.targets.gcp.adopting import AdoptedPool
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.machines import Machine, Machines, machine_of
from harness.targets.gcp.pool_sizes import PoolSizes, require_allowed_pool, require_resizable
from harness.targets.gcp.works import Doing, Work, Works
from harness.targets.gke.grounds import ProjectGrounds
from harness.targets.gke.refusals import KUBELET, NETWORK
from harness.targets.kubernetes.api import NODES, Object, conditions_of
from harness.targets.kubernetes.node_reading import NodeReading
from harness.undo import (
    ClusterAction,
    DeleteObject,
    NothingToUndo,
    ProjectAction,
    Reactivate,
    ResizeNodePool,
    RestoreInCluster,
    RestoreProject,
    RestoreQuota,
    Uncordon,
    Undo,
)

BY_ITSELF = "the managed instance group of the pool makes the machine again by itself"
LABELS = "GKE announces what it does itself: on a project nothing is announced that does not come"

ASKED_EVERY_S = 0.5
"""Whether a thread that was told to end has."""


@dataclass(slots=True)
class Hands:
    """What acts on the nodes of one run.

    Attributes:
        machines: Acts on Compute Engine.
        sizes: Acts on node pools.
        works: What goes on.
        hasten: Has the run's oversight look again at once.
        boots: By node, the boot that it had when it was hurt.
        pools: By node that was hurt, its pool.
        wanted: By pool, how many of its nodes were ready before any was hurt.
        saved: By pool, what gives it its size and autoscaling back.
        emptying: By pool, the work that takes it away.
        restoring: By pool, the work that gives it back.
    """

    machines: Machines
    sizes: PoolSizes
    works: Works
    hasten: Callable[[], None] = lambda: None
    boots: dict[str, str] = field(default_factory=dict)
    pools: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    saved: dict[str, tuple[ProjectAction, ...]] = field(default_factory=dict)
    emptying: dict[str, Doing] = field(default_factory=dict)
    restoring: dict[str, Doing] = field(default_factory=dict)


class ProjectNodeHosting(NodeReading):
    """The part of the target that is a ``NodeHost`` and a ``ManagedCluster``.

    Attributes:
        cluster_name: Its full name; empty until a run begins. A plain attribute: whoever asks for a capability looks at it.
    """

    cluster_name = ""

    @property
    @abstractmethod
    def grounds(self) -> ProjectGrounds:
        """See ``ClusterHosting``."""

    @property
    @abstractmethod
    def hands(self) -> Hands:
        """What acts.

        Raises:
            LookupError: When no execution runs.
        """

    def pool_names(self) -> tuple[str, ...]:
        """See ``NodeReading``."""
        return tuple(self.grounds.cluster.pools)

    # ---- NodeHost ----------------------------------------------------------------------------------------------------

    def cordon(self, node: str) -> None:
        """See ``NodeHost``."""
        self._require_allowed(self.pool_of(node))
        super().cordon(node)

    def break_nodes(self, nodes: Sequence[str], how: Breakage) -> None:
        """See ``NodeHost``. A machine that is reset is up again as fast as it boots, whatever the scenario says."""
        if how != "power-off":
            raise LookupError(KUBELET if how == "kubelet" else NETWORK)
        machines = self._machines_of(nodes)
        self.hands.boots |= {node: _boot_of(self._node(node)) for node in nodes}
        self._hurt(nodes)
        with _told():
            for node in nodes:
                self.hands.works.begin(self.hands.machines.reset(machines[node]))

    def breakage_of(self, node: str, how: Breakage) -> str:
        """See ``NodeHost``. The kubelet tells the boot that it runs in."""
        del how
        found, before = self.grounds.inventory.node(node), self.hands.boots.get(node, "")
        now = "" if found is None else _boot_of(found)
        return f"its machine has booted anew: {now} instead of {before}" if before and now not in ("", before) else ""

    def lose_nodes(self, nodes: Sequence[str]) -> None:
        """See ``NodeHost``. The instance group brings another machine, and does not wait for ``mend_nodes``."""
        machines = self._machines_of(nodes)
        self._hurt(nodes)
        with _told():
            for node in nodes:
                self.hands.works.begin(self.hands.machines.delete(machines[node]))

    def announce_maintenance(self, node: str, *, in_s: float) -> None:
        """See ``NodeHost``: refused."""
        del in_s
        raise LookupError(f"{LABELS} (node {node})")

    def announce_termination(self, node: str) -> None:
        """See ``NodeHost``: refused."""
        raise LookupError(f"{LABELS} (node {node})")

    def mend_nodes(self, nodes: Sequence[str]) -> None:
        """See ``NodeHost``. Pools that were emptied get back what they had; what is still being emptied is not emptied any further."""
        hands = self.hands
        for pool in sorted({hands.pools.get(node, "") for node in nodes} & set(hands.saved)):
            what = f"giving back of node pool {pool}"
            before = [_ended(hands.emptying.pop(pool))] if pool in hands.emptying else []
            hands.restoring[pool] = hands.works.begin(*before, *(hands.sizes.changing(action, what) for action in hands.saved.pop(pool)))

    def are_whole(self, nodes: Sequence[str]) -> bool:
        """See ``NodeHost``. As many nodes are ready in their pools as were before, of whatever names."""
        hands = self.hands
        pools = {hands.pools[node] for node in nodes if node in hands.pools}
        for doing in [hands.restoring[pool] for pool in pools if pool in hands.restoring]:
            if doing.failure:
                raise LookupError(doing.failure)
            if not doing.is_done:
                return False
        return all(self._ready_in(pool) >= hands.wanted.get(pool, 0) for pool in pools)

    # ---- ManagedCluster ----------------------------------------------------------------------------------------------

    def undo_of(self, actions: Sequence[ClusterAction]) -> Undo:
        """See ``ManagedCluster``. Machines that are reset or deleted come back by themselves."""
        grounds = self.grounds
        for action in actions:
            if isinstance(action, Uncordon):
                self._require_schedulable(action.node)
        inside = tuple(
            RestoreInCluster(cluster=grounds.cluster.name, uid=grounds.cluster.uid, action=action)
            for action in actions
            if isinstance(action, Uncordon | DeleteObject | RestoreQuota | Reactivate)
        )
        return self._undo(inside) if inside else NothingToUndo(why=BY_ITSELF)

    def pool_undo(self, pool: str) -> Undo:
        """See ``ManagedCluster``. The size that is saved is what is there: all machines that were hurt before must have come back."""
        found, wanted = self._pool(pool), self.hands.wanted.get(pool, 0)
        with _told():
            saved = self.hands.sizes.saved(found)
        there = sum(action.node_count * found.zones for action in saved if isinstance(action, ResizeNodePool))
        if there < wanted:
            raise LookupError(f"node pool {pool} has {there} machines, and had {wanted} before some were hurt: it would stay so small")
        self.hands.saved[pool] = saved
        return self._undo(saved)

    def empty_pool(self, pool: str) -> None:
        """See ``ManagedCluster``."""
        found = self._require_allowed(pool)
        require_resizable(found)
        if pool not in self.hands.saved:
            raise LookupError(f"what gives node pool {pool} its size back was not written down")
        self._hurt(self.nodes_in(pool))
        self.hands.emptying[pool] = self.hands.works.begin(*self.hands.sizes.emptying(found))

    def take_by_maintenance(self, nodes: Sequence[str], *, is_preemption: bool) -> None:
        """See ``ManagedCluster``."""
        machines = self._machines_of(nodes)
        hands = self.hands
        with _told():
            for node, machine in machines.items():
                if hands.machines.is_spot(machine) is not is_preemption:
                    kind, profile = ("no Spot machine", "gke-maintenance-graceful") if is_preemption else ("a Spot machine", "gke-spot")
                    raise LookupError(f"node {node} is {kind}: it is not taken so; name the profile {profile}")
            self._hurt(nodes)
            for machine in machines.values():
                hands.works.begin(hands.machines.simulate_maintenance(machine))

    # ---- what they need ----------------------------------------------------------------------------------------------

    def _undo(self, actions: tuple[ProjectAction, ...]) -> Undo:
        grounds = self.grounds
        return RestoreProject(project=grounds.project.place.project, actions=actions, emulator=grounds.emulator)

    def _machines_of(self, nodes: Sequence[str]) -> dict[str, Machine]:
        """The machines behind nodes of pools on which faults are allowed.

        Raises:
            LookupError: When a node has none, or its pool is not to be touched.
        """
        for pool in sorted({self.pool_of(node) for node in nodes}):
            self._require_allowed(pool)
        project = self.grounds.project.place.project
        return {node: machine_of(str((self._node(node).get("spec") or {}).get("providerID", "")), project) for node in nodes}

    def _require_allowed(self, name: str) -> AdoptedPool:
        """A pool as it is now, which is about to be hurt: looked up each time, for its owner may have taken the label back.

        Raises:
            LookupError: When it is not to be touched; the run's oversight looks again at once, and ends the run.
        """
        with _told():
            found = self.hands.sizes.current(self._pool(name))
        if not found.is_allowed:
            self.hands.hasten()
        require_allowed_pool(found)
        return found

    def _require_schedulable(self, name: str) -> None:
        """See that nobody has cordoned a node: what takes the fault back would let it take pods again.

        Raises:
            LookupError: When somebody has.
        """
        with _told():
            found = self.grounds.api.get(NODES, name)
        if found is not None and (found.get("spec") or {}).get("unschedulable"):
            raise LookupError(f"node {name} is cordoned already, as before an upgrade: it is left as it is")

    def _hurt(self, nodes: Sequence[str]) -> None:
        """Nodes are about to be hurt: remember how many there were, and whose pods they had."""
        for node, pods in self.pods_by_node(nodes).items():
            pool = self.pool_of(node)
            self.hands.pools[node] = pool
            self.hands.wanted.setdefault(pool, self._ready_in(pool))
            self.grounds.note_hurt(pods)

    def _pool(self, name: str) -> AdoptedPool:
        pools = self.grounds.cluster.pools
        if name not in pools:
            raise LookupError(f"the cluster had no node pool {name!r} when the run began, but {', '.join(pools)}")
        return pools[name]

    def _node(self, name: str) -> Object:
        found = self.grounds.inventory.node(name)
        if found is None:
            raise LookupError(f"node {name} is gone")
        return found

    def _ready_in(self, pool: str) -> int:
        try:
            return sum(_is_ready(self._node(node)) for node in self.nodes_in(pool))
        except LookupError:
            return 0  # it is empty


@contextmanager
def _told() -> Iterator[None]:
    """What a project refuses, or does not answer, is a ``LookupError``, as the contracts of capabilities want it."""
    try:
        yield
    except HarnessError as error:
        raise LookupError(str(error)) from error


def _ended(doing: Doing) -> Work:
    """Give a work up, and see that it asks for nothing any more: what it has asked for last is counted by what follows."""
    doing.give_up()

    def wait(caller: Caller) -> None:
        while not doing.is_done:
            caller.clock.sleep(ASKED_EVERY_S)

    return Work(f"end of {doing.what}", wait)


def _boot_of(node: Object) -> str:
    """Tells one boot of a machine from another. Source: Kubernetes core/v1, NodeSystemInfo.bootID."""
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""))


def _is_ready(node: Object) -> bool:
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions_of(node))
