"""When a task was hit, and when its lives ended."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.history import FaultHealed, FaultRequested
from harness.lineage import Incarnation, Lineage

RUNS_ON = frozenset({"cordon-node", "lower-quota", "limit-namespace", "occupy-capacity", "restart-component", "forget-image"})
"""Faults of a cluster that take nothing away from what runs: they hit what comes later. Kueue evicts nobody when a quota is lowered below
what is used, a container needs neither the control plane nor its image once it runs."""

LASTING = frozenset(
    {"delete-pods", "evict-pods", "drain-node", "lose-node", "lose-pool", "interrupt-node", "evict-workload", "preempt-workload"}
)
"""Faults of a cluster that have taken the job's pods away when they are healed: a new node brings no old pod back."""


@dataclass(frozen=True)
class Hits:
    """The faults that hit a task, and when they were healed."""

    lineage: Lineage
    task: int

    @cached_property
    def faults(self) -> Sequence[FaultRequested]:
        """In the order they acted."""
        return [event for event in self.lineage.of_type(FaultRequested) if event.task == self.task]

    @cached_property
    def healed_s(self) -> Mapping[tuple[str, int], float]:
        """By injection and attempt."""
        healed = [event for event in self.lineage.of_type(FaultHealed) if event.task == self.task]
        return {(event.injection, event.attempt): event.t_s for event in healed}

    def between(self, attempt: int, begin_s: float, end_s: float) -> list[float]:
        """When an attempt was hit in an interval, by what was not healed before its end."""
        mine = [fault for fault in self.faults if fault.attempt == attempt and begin_s <= fault.t_s <= end_s]
        return [fault.t_s for fault in mine if fault.fault not in RUNS_ON and self._acts_at(fault, end_s)]

    def _acts_at(self, fault: FaultRequested, end_s: float) -> bool:
        """Whether it was not healed before a moment, or healing does not bring back what it took."""
        if self.healed_s.get((fault.injection, fault.attempt), math.inf) >= end_s or fault.fault in LASTING:
            return True
        return fault.fault == "break-node" and self._is_silent(fault, end_s)

    def _is_silent(self, fault: FaultRequested, end_s: float) -> bool:
        """Whether the job has said nothing between a fault and a moment: its machine was off, and not just out of sight."""
        lives = [life for life in self.lineage.incarnations_of(self.task) if life.attempt == fault.attempt]
        return not any(fault.t_s < event.t_s < end_s for life in lives for event in life.events)

    def died_s(self, life: Incarnation, after: Incarnation) -> float:
        """When a life ended that another one followed.

        Inside one attempt nobody sees the end: it is taken to be the last word, or the fault that came after it.
        """
        if life.attempt != after.attempt:
            return min(life.ended_s if life.ended_s is not None else after.began_s, after.began_s)
        last_s = min(max(life.events[-1].t_s if life.events else life.began_s, life.began_s), after.began_s)
        return min(self.between(life.attempt, last_s, after.began_s), default=last_s)


def ended_well(life: Incarnation) -> bool:
    """Whether a life said that it was done, or left with 0."""
    return life.done is not None or (life.exit is not None and life.exit.exit_code == 0)
