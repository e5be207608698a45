"""Faults of a Ray cluster that the job runs: a process of its own dies, a node is drained."""

import signal
from collections.abc import Sequence

from harness.capabilities import RayHost, Signalable
from harness.faults.active import OneWay, Scene, named
from harness.history import Event
from harness.scenario.faults import DrainRayNode, KillRayProcess


class ActiveRayKill(OneWay):
    """SIGKILL to a train worker, a raylet or the head's control store; seen when the processes are gone."""

    lasting = "nothing to heal: Ray replaces what it can, the platform the rest"

    def __init__(self, scene: Scene, fault: KillRayProcess) -> None:
        assert isinstance(scene.target, Signalable)
        self._scene, self._target, self._component = scene, scene.target, fault.component
        self._pids: tuple[int, ...] = ()

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._pids = self._kill()
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"SIGKILL to {named(self._pids)} ({self._component})"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        states = self._target.process_states(self._pids)
        is_gone = bool(self._pids) and all(states.get(pid, "gone") == "gone" for pid in self._pids)
        return f"{self._component} {named(self._pids)} gone" if is_gone else ""

    def _kill(self) -> tuple[int, ...]:
        if self._component != "worker":
            assert isinstance(self._scene.target, RayHost)
            return self._scene.target.kill_ray_processes(self._scene.victim, self._component)
        if self._scene.victim.rank < 0:
            raise LookupError("a train worker is one rank's process, and victim.rank is 'all': name a rank")
        return self._target.signal(self._scene.victim, signal.SIGKILL, cause="fault")


class ActiveDrain(OneWay):
    """Seen when Ray has accepted to drain the node.

    Ray sends no signal: a job learns of it by asking ``ray.train.get_preemption_info()``. Source: ray 2.60.0, ray/train/v2.
    """

    lasting = "nothing to heal: a drained node goes away at its deadline"

    def __init__(self, scene: Scene, fault: DrainRayNode) -> None:
        assert isinstance(scene.target, RayHost)
        self._scene, self._target, self._deadline_s = scene, scene.target, fault.deadline_s
        self._node_id = ""

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._node_id = self._target.drain_ray_node(self._scene.victim, self._deadline_s)
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"Ray is told that node {self._node_id} will be preempted in {self._deadline_s:g} s"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        try:
            state = self._target.ray_node_state(self._scene.victim, self._node_id)
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"Ray has accepted to drain node {self._node_id}, which is {state}" if state in ("draining", "dead") else ""
