"""Node pools that grow and shrink: machines are node containers, started and stopped beside the loop, never in it.

A pool's size is what its managed instance group would say: machines that it has or is getting. One that a fault took away still counts, so
nobody replaces it behind the fault's back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from harness.errors import UnknownNameError
from harness.history import Event, PoolScaled
from harness.kind import NodeContainer, NodePool, NodeState, Topology
from harness.kind.topology import QUEUED_TAINT
from harness.scenario import Cluster


class Machines(Protocol):
    """What is needed of ``harness.kind.NodeContainers``: each call blocks."""

    def list(self, pool: str | None = None) -> list[NodeContainer]:
        """All nodes, stopped ones too."""
        ...

    def start(self, name: str) -> None:
        """Start a node."""
        ...

    def stop(self, name: str, *, graceful: bool = True) -> None:
        """Stop a node."""
        ...

    def repair(self, names: Sequence[str] | None = None) -> None:
        """Put back what the stop lost, and wait until the nodes are Ready."""
        ...

    def forget(self, name: str) -> None:
        """Delete the node object."""
        ...


class _Phase(Enum):
    OFF = auto()
    STARTING = auto()
    UP = auto()
    STOPPING = auto()


@dataclass(slots=True)
class _Work:
    """What the thread does now or will: the nodes it is about, where they are and will be, and what to tell then."""

    future: Future[None]
    pool: str
    names: tuple[str, ...]
    during: _Phase
    becomes: _Phase
    why: str


ON_DEMAND_POOL = "on-demand-pool"
DWS_POOL = "dws-pool"
"""As guide B calls them."""


def first_sizes(topology: Topology, cluster: Cluster) -> dict[str, int]:
    """Nodes of each pool when a run begins."""
    sizes = {pool.name: resting_size(pool) for pool in topology.pools}
    if cluster.on_demand_nodes >= 0 and ON_DEMAND_POOL in sizes:
        sizes[ON_DEMAND_POOL] = min(cluster.on_demand_nodes, sizes[ON_DEMAND_POOL])
    return sizes


def empty_at_rest(topology: Topology) -> frozenset[str]:
    """Pools whose machines are all off while no run uses them."""
    return frozenset(pool.name for pool in topology.pools if not resting_size(pool))


def resting_size(pool: NodePool) -> int:
    """Nodes of a pool while no run uses it: a queued pool rests at zero, as guide B creates it; the others are there."""
    return 0 if any(taint.key == QUEUED_TAINT for taint in pool.taints) else pool.nodes


class NodePools:
    """The pools of a cluster. Made when a run begins; ``restore`` when it ends."""

    def __init__(self, machines: Machines, topology: Topology) -> None:
        self._machines = machines
        self._topology = topology
        self._phases: dict[str, _Phase] = {}
        self._pool_of: dict[str, str] = {}
        self._works: list[_Work] = []
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="node pools")

    def read(self) -> None:
        """Look which machines run; blocks for one call of Docker.

        Raises:
            CommandFailedError: When Docker does not answer.
        """
        for node in self._machines.list():
            if node.pool:
                self._pool_of[node.name] = node.pool
                self._phases[node.name] = _Phase.OFF if node.state in {NodeState.EXITED, NodeState.CREATED} else _Phase.UP

    def pool(self, name: str) -> NodePool:
        """A pool as the topology has it.

        Raises:
            UnknownNameError: When it has none of that name.
        """
        found = self._topology.pool(name)
        if found is None:
            raise UnknownNameError(kind="node pool", name=name, known=[pool.name for pool in self._topology.pools])
        return found

    def size(self, pool: str) -> int:
        """Machines that the pool has or is getting."""
        return len(self._in(pool, _Phase.UP, _Phase.STARTING))

    def spare(self, pool: str) -> int:
        """How many machines it can still get; those that are being stopped are not free yet."""
        return len(self._in(pool, _Phase.OFF))

    def are_up(self, names: Iterable[str]) -> bool:
        """Whether all of them were started and came; a fault may have taken them away again."""
        return all(self._phases[name] is _Phase.UP for name in names)

    def holds(self, name: str) -> bool:
        """Whether a machine is the pool's, or about to be: one that was given back is not, whatever its container does."""
        return self._phases.get(name) in {_Phase.UP, _Phase.STARTING}

    def put_away(self, names: Iterable[str], why: str) -> None:
        """Begin to stop machines that were given back and run all the same; those that the pool holds are left alone.

        What was begun before is done before, and what is begun after it, after it.

        Args:
            names: All of one pool.
            why: For the history.
        """
        chosen = tuple(name for name in names if not self.holds(name))
        if chosen:
            self._begin(chosen, _Phase.STOPPING, _Phase.OFF, why, lambda: self._stop(chosen, is_graceful=False))

    def is_busy(self) -> bool:
        """Whether machines are being started or stopped."""
        return bool(self._works)

    def scale(self, sizes: Mapping[str, int], why: str) -> None:
        """Begin to bring pools to sizes; those that have them already are left alone, silently."""
        for name, nodes in sizes.items():
            missing = min(nodes, self.pool(name).nodes) - self.size(name)
            if missing > 0:
                self.grow(name, missing, why)
            elif missing < 0:
                self.shrink(self._in(name, _Phase.UP)[missing:], why)

    def grow(self, pool: str, nodes: int, why: str) -> tuple[str, ...]:
        """Begin to start machines, at most ``spare``, and say which; they are there when ``are_up`` says so."""
        names = self._in(pool, _Phase.OFF)[:nodes]
        if names:
            self._begin(names, _Phase.STARTING, _Phase.UP, why, lambda: self._start(names))
        return names

    def shrink(self, names: Iterable[str], why: str, *, is_graceful: bool = False) -> None:
        """Begin to stop machines and forget their node objects; those that are off already are left alone.

        Args:
            names: All of one pool.
            why: For the history.
            is_graceful: Whether what runs there gets SIGTERM first.
        """
        chosen = tuple(name for name in names if self._phases[name] in {_Phase.UP, _Phase.STARTING})
        if chosen:
            self._begin(chosen, _Phase.STOPPING, _Phase.OFF, why, lambda: self._stop(chosen, is_graceful=is_graceful))

    def tick(self, now_s: float) -> list[Event]:
        """What was finished since.

        Raises:
            CommandFailedError: When a machine did not start, stop or become Ready.
        """
        events: list[Event] = []
        while self._works and self._works[0].future.done():
            work = self._works.pop(0)
            work.future.result()
            self._enter([name for name in work.names if self._phases[name] is work.during], work.becomes)
            events.append(PoolScaled(t_s=now_s, pool=work.pool, nodes=len(self._in(work.pool, _Phase.UP)), why=work.why))
        return events

    def restore(self) -> None:
        """Bring every pool to the size at which it rests, after whatever is still being done; blocks until it is so.

        Machines that a fault took away are brought back as well.

        Raises:
            CommandFailedError: As ``tick``; whatever else can be done is done before.
        """
        problems = [work.future.exception() for work in self._works]
        self._works.clear()
        self.read()
        resting = {pool.name: resting_size(pool) for pool in self._topology.pools}
        self.scale(resting, "the run has ended")
        problems += [work.future.exception() for work in self._works]
        self._works.clear()
        self.read()
        for problem in problems:
            if problem is not None:
                raise problem

    def close(self) -> None:
        """Wait for what the thread does now and let it go; what was not begun is not done."""
        self._thread.shutdown(cancel_futures=True)

    def _in(self, pool: str, *phases: _Phase) -> tuple[str, ...]:
        self.pool(pool)
        return tuple(sorted(name for name, phase in self._phases.items() if self._pool_of[name] == pool and phase in phases))

    def _enter(self, names: Iterable[str], phase: _Phase) -> None:
        self._phases.update(dict.fromkeys(names, phase))

    def _begin(self, names: tuple[str, ...], phase: _Phase, becomes: _Phase, why: str, act: Callable[[], None]) -> None:
        self._enter(names, phase)
        pool = self._pool_of[names[0]]
        self._works.append(_Work(self._thread.submit(act), pool, names, phase, becomes, why))

    def _start(self, names: Sequence[str]) -> None:
        for name in names:
            self._machines.start(name)
        self._machines.repair(names)

    def _stop(self, names: Sequence[str], *, is_graceful: bool) -> None:
        """All at once: the hosts of a slice go together."""
        with ThreadPoolExecutor(max_workers=len(names)) as together:
            for stopped in [together.submit(self._machines.stop, name, graceful=is_graceful) for name in names]:
                stopped.result()
        for name in names:
            self._machines.forget(name)
