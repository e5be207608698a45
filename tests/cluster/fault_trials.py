"""A sleeping job on the real cluster, and one fault that hits it: what the injector records of it."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.clock import SystemClock
from harness.history import Event, FaultFailed, FaultHealed, FaultObserved
from harness.history.cluster import NodeSeen, PodSeen
from harness.runner.binding import launch_of
from harness.runner.injector import Injector
from harness.scenario import Cluster, Injection, Platform, Scenario, Workload
from harness.scenario.expectations import Completes
from harness.store import RunStore
from harness.targets.kubernetes.target import KubernetesTarget

CHECKOUT = Path(__file__).parents[2]
"""Mounted into every node: a job runs below it."""

SLEEP = "trap 'exit 143' TERM; while :; do sleep 0.2; done"
"""A job that a signal ends at once: nothing here is about what it does with its grace."""

TICK_S = 0.05
PATIENCE_S = 100.0
"""Until a silent kubelet is called not ready 50 s pass; a component of the control plane is back after 10 to 30 s."""


class Trial:
    """One run with its injections."""

    def __init__(
        self,
        directory: Path,
        *injections: Injection,
        ranks: int = 1,
        cluster: Cluster | None = None,
        command: str = SLEEP,
        grace_s: float = 5.0,
    ) -> None:
        self.clock = SystemClock()
        self.target = KubernetesTarget(self.clock)
        self.events: list[Event] = []
        store = RunStore(directory / "runs", self.clock)
        scenario = Scenario(
            name="a-sleeping-job-is-hit",
            why="a test",
            workload=Workload(name="sleeper", command=("sh", "-c", command), steps=1, ranks=ranks),
            platform=Platform(tasks=1, max_retries=6, grace_s=grace_s),
            cluster=cluster or Cluster(),
            injections=injections,
            expects=(Completes(),),
            deadline_s=600.0,
        )
        self.directory, run_id = store.create(scenario.name, 0)
        self._epoch_s = self.clock.monotonic_s()
        self.launch = launch_of(scenario, self.directory, target=self.target, run_id=run_id, root=CHECKOUT, seed=0, epoch_s=self._epoch_s)
        self.journal = self.directory.undo
        self.injector = Injector(
            scenario=scenario,
            target=self.target,
            journal=self.journal,
            kept_dir=self.directory.kept,
            clock=self.clock,
            now_s=self.now_s,
            record=self.events.extend,
        )

    def now_s(self) -> float:
        return self.clock.monotonic_s() - self._epoch_s

    @contextlib.contextmanager
    def running(self) -> Iterator["Trial"]:
        """Submitted; at the end everything is healed and stopped, whatever happened."""
        self.target.start(self.launch)
        try:
            yield self
        finally:
            try:
                healed, failures = self.injector.heal_all()
                self.events += healed
            finally:
                self.target.stop()
            assert not failures
            assert not self.journal.owed()

    def until(self, holds: Callable[[], object], what: str, *, patience_s: float = PATIENCE_S) -> None:
        """Let the run go on until something holds."""
        end_s = self.now_s() + patience_s
        while not holds():
            assert self.now_s() < end_s, f"after {patience_s:g} s still not {what}:\n{self.told()}"
            polled = list(self.target.poll())
            self.events += polled
            self.injector.tick(polled)
            self.target.wait(TICK_S)

    def observed(self) -> str:
        """The evidence, once there is some."""
        self.until(lambda: self.of(FaultObserved) or self.of(FaultFailed), "observed")
        assert not self.of(FaultFailed), self.told()
        found = self.of(FaultObserved)[-1]
        assert isinstance(found, FaultObserved)
        return found.evidence

    def healed(self) -> str:
        """How the end was seen, within the run."""
        self.until(lambda: self.of(FaultHealed), "healed")
        found = self.of(FaultHealed)[-1]
        assert isinstance(found, FaultHealed)
        return found.evidence

    def of(self, kind: type[Event]) -> list[Event]:
        """Events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def hosts(self) -> list[PodSeen]:
        """The newest look at each pod of the job, in the order in which they came."""
        pods = {event.uid: event for event in self.events if isinstance(event, PodSeen) and event.role == "host"}
        return list(pods.values())

    def node(self, name: str) -> NodeSeen:
        """The newest look at a node."""
        return [event for event in self.events if isinstance(event, NodeSeen) and event.name == name][-1]

    def told(self) -> str:
        """The end of the history."""
        return "\n".join(str(event) for event in self.events[-40:])
