"""Machines in memory: they start and stop at once, or when a test lets them."""

import threading
from collections.abc import Iterable, Sequence

from harness.errors import BrokenHarnessError
from harness.kind import NodeContainer, NodeState, Topology
from harness.targets.kubernetes.api import NODES, Object, Resource
from harness.targets.kubernetes.pools import NodePools

from .fake_api import FakeApi

WAIT_S = 10.0


class FakeMachines:
    """What ``NodePools`` needs of node containers; node objects come and go with them when there is an API."""

    def __init__(self, topology: Topology, api: FakeApi | None = None, *, off: Iterable[str] = ()) -> None:
        self.states = {
            f"{pool.name}-{number}": NodeState.EXITED if pool.name in off else NodeState.RUNNING
            for pool in topology.pools
            for number in range(pool.nodes)
        }
        self.calls: list[tuple[str, str]] = []
        self.gate = threading.Event()  # starts wait for it
        self.gate.set()
        self.broken: set[str] = set()
        self._api = api
        for name, state in self.states.items():
            if state is NodeState.RUNNING:
                self._register(name)

    def list(self, pool: str | None = None) -> list[NodeContainer]:
        nodes = [NodeContainer(name=name, pool=name.rpartition("-")[0], state=state) for name, state in self.states.items()]
        return [node for node in nodes if pool in (None, node.pool)]

    def start(self, name: str) -> None:
        assert self.gate.wait(WAIT_S)
        self.calls.append(("start", name))
        if name in self.broken:
            raise BrokenHarnessError(f"{name} does not start")
        self.states[name] = NodeState.RUNNING

    def stop(self, name: str, *, graceful: bool = True) -> None:
        self.calls.append(("stop" if graceful else "kill", name))
        self.states[name] = NodeState.EXITED

    def repair(self, names: Sequence[str] | None = None) -> None:
        for name in names or self.states:
            self._register(name)

    def forget(self, name: str) -> None:
        self.calls.append(("forget", name))
        if self._api is not None and self._api.get(NODES, name) is not None:
            self._api.remove(NODES, name)

    def _register(self, name: str) -> None:
        if self._api is not None:
            self._api.put(NODES, {"metadata": {"name": name, "labels": {}}})


def finish(pools: NodePools) -> None:
    """Let everything end that was begun; the next tick tells it."""
    for work in [*pools._works]:
        work.future.exception(WAIT_S)


def pod(name: str, *, node: str = "", namespace: str = "run", chips: int = 4, **more: Object) -> tuple[Resource, Object]:
    """A pod; ``metadata``, ``spec`` and ``status`` are laid over it."""
    from harness.targets.kubernetes.api import PODS

    container = {"name": "host", "resources": {"requests": {"google.com/tpu": str(chips)}}}
    return PODS, {
        "metadata": {"name": name, "namespace": namespace, "uid": f"pod-{name}"} | more.get("metadata", {}),
        "spec": {"containers": [container]} | ({"nodeName": node} if node else {}) | more.get("spec", {}),
        "status": {"phase": "Running" if node else "Pending"} | more.get("status", {}),
    }
