"""Node containers in memory: they are started and stopped, and answer commands as a test says."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.kind import CommandFailedError, NodeContainer, NodeState
from tests.unit.targets.kubernetes.fake_api import FakeApi


@dataclass
class FakeNodeContainers:
    """Those of ``harness.kind.NodeContainers`` that faults use; a node that starts registers when ``repair`` asks for it.

    Attributes:
        states: By name.
        done: What was asked, in order.
        failing: Names of methods that fail.
        says: What a command in a node prints.
        pools: Of nodes, by name.
    """

    api: FakeApi
    states: dict[str, NodeState] = field(default_factory=dict)
    done: list[tuple[object, ...]] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    says: str = ""
    pools: dict[str, str] = field(default_factory=dict)

    def _do(self, name: str, *what: object) -> None:
        if name in self.failing:
            raise CommandFailedError(command=["docker", name], outcome="ended with 1")
        self.done.append((name, *what))

    def state(self, name: str) -> NodeState:
        return self.states.get(name, NodeState.RUNNING)

    def start(self, name: str) -> None:
        self._do("start", name)
        self.states[name] = NodeState.RUNNING

    def kill(self, name: str) -> None:
        self._do("kill", name)
        self.states[name] = NodeState.EXITED

    def stop(self, name: str, *, graceful: bool = True) -> None:
        self._do("stop" if graceful else "kill", name)
        self.states[name] = NodeState.EXITED

    def forget(self, name: str) -> None:
        self._do("forget", name)

    def exec(self, name: str, argv: Sequence[str], *, deadline_s: float = 60.0, stdin: str | None = None) -> str:
        self._do("exec", name, *argv)
        return self.says

    def repair(self, names: Sequence[str] | None = None, *, deadline_s: float = 120.0) -> None:
        from harness.targets.kubernetes.api import NODES

        self._do("repair", tuple(names or ()))
        for name in names or ():
            if self.api.get(NODES, name) is None:
                self.api.put(NODES, {"metadata": {"name": name}, "spec": {}})

    def scripts(self) -> list[str]:
        """The last words of what was run in nodes."""
        return [str(what[-1]) for what in self.done if what[0] == "exec"]

    def list(self) -> list[NodeContainer]:
        return [NodeContainer(name=name, pool=pool, state=self.state(name)) for name, pool in self.pools.items()]
