"""A target in memory that does what a test says and remembers what it was asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from harness.capabilities import Fidelity, Launch, Processes, StorageRule
from harness.faults import ActiveFault, activate
from harness.history import BarrierReached, Event
from harness.scenario import Fault, Injection, Layout, Victim
from harness.scenario.faults import DamageFault
from harness.scenario.triggers import AtStep, OnEffect
from tests.unit.faults.fake_cluster import FakeCluster


class BareTarget:
    """Runs jobs and offers nothing else."""

    name = "bare"

    def fidelity(self) -> Sequence[Fidelity]:
        return ()

    def start(self, launch: Launch) -> None:
        raise AssertionError("a fault starts nothing")

    def poll(self) -> Sequence[Event]:
        return ()

    def wait(self, timeout_s: float) -> None:
        raise AssertionError("a fault does not wait")

    def release(self, barrier: BarrierReached) -> None:
        raise AssertionError("a fault releases nobody")

    def is_finished(self) -> bool:
        return False

    def stop(self) -> Sequence[Event]:
        return ()


@dataclass(kw_only=True)
class FullTarget(FakeCluster, BareTarget):
    """Offers every capability; ``absent`` makes it answer that nobody is there."""

    directory: Path
    now_s: float = 0.0
    states: dict[int, str] = field(default_factory=lambda: {101: "running", 102: "running"})
    asked: list[tuple[object, ...]] = field(default_factory=list)
    absent: str = ""
    hits: int = 0
    problem: str = ""
    node_state: Literal["alive", "draining", "dead"] = "alive"
    ignores_continue: bool = False

    def _ask(self, *what: object) -> None:
        if self.absent:
            raise LookupError(self.absent)
        self.asked.append(what)

    def _there(self) -> tuple[int, ...]:
        return tuple(pid for pid, state in self.states.items() if state != "gone")

    def process_ids(self, victim: Processes) -> tuple[int, ...]:
        self._ask("process_ids", victim.rank)
        return self._there()

    def signal(self, victim: Processes, signal_number: int, *, cause: str) -> tuple[int, ...]:
        self._ask("signal", int(signal_number), cause, victim.rank)
        pids = self._there()
        change = {9: "gone", 19: "stopped", 20: "stopped", 18: "stopped" if self.ignores_continue else "running"}
        self.states.update({pid: change[signal_number] for pid in pids if signal_number in change})
        return pids

    def process_states(self, pids: Sequence[int]) -> dict[int, str]:
        return {pid: self.states[pid] for pid in pids}

    def terminate(self, victim: Processes, *, cause: str, message: str = "", reason: str = "") -> tuple[int, ...]:
        self._ask("terminate", cause, message, reason)
        return self._there()

    def expire_grace(self, victim: Processes) -> tuple[int, ...]:
        self._ask("expire_grace", victim.rank)
        return self._there()

    def cancel(self) -> None:
        self._ask("cancel")

    def expire_timeout(self, victim: Processes) -> None:
        self._ask("expire_timeout", victim.attempt)

    def abandon(self, victim: Processes) -> None:
        self._ask("abandon", victim.attempt)

    def end_abandoned(self, victim: Processes) -> int:
        self._ask("end_abandoned", victim.attempt)
        return len(self._there())

    def checkpoint_path(self, task: int) -> Path:
        self._ask("checkpoint_path", task)
        return self.directory

    def storage_problem(self) -> str:
        return self.problem

    def set_storage_rule(self, task: int, rule: StorageRule) -> None:
        self._ask("set_storage_rule", task, rule)

    def clear_storage_rule(self, task: int) -> None:
        self._ask("clear_storage_rule", task)

    def storage_rule_hits(self, task: int) -> int:
        return self.hits

    def kill_ray_processes(self, victim: Processes, component: str) -> tuple[int, ...]:
        self._ask("kill_ray_processes", victim.task, component)
        return (101,)

    def drain_ray_node(self, victim: Processes, deadline_s: float) -> str:
        self._ask("drain_ray_node", victim.task, deadline_s)
        return "node-1"

    def ray_node_state(self, victim: Processes, node_id: str) -> Literal["alive", "draining", "dead"]:
        self._ask("ray_node_state", victim.task, node_id)
        return self.node_state


Activate = Callable[..., ActiveFault]


@pytest.fixture
def bare() -> BareTarget:
    return BareTarget()


@pytest.fixture
def target(tmp_path: Path) -> FullTarget:
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    return FullTarget(directory=directory)


@pytest.fixture
def make(target: FullTarget, tmp_path: Path) -> Activate:
    """Activates a fault against task 1, attempt 2, of the full target."""

    def make(fault: Fault, *, rank: int = -1, layout: Layout = "step-directories") -> ActiveFault:
        at_rest = isinstance(fault, DamageFault)
        who = Victim(task=1, rank=rank if rank >= 0 else "all")
        injection = Injection(fault=fault, at=OnEffect(of="0-kill") if at_rest else AtStep(step=1), victim=who)
        victim = Processes(task=1, attempt=2, rank=rank)
        return activate(
            injection, "1-fault", target=target, victim=victim, layout=layout, kept_dir=tmp_path / "kept", now_s=lambda: target.now_s
        )

    return make
