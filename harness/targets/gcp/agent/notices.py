"""What the agent does later by itself: SIGKILL when a grace is over, SIGCONT to what was stopped and forgotten."""

from __future__ import annotations

import math
import signal

from harness.targets.gcp.agent.orders import WHOLE, Order


class Timers:
    """Graces and pauses that run."""

    def __init__(self) -> None:
        self._graces: dict[int, float] = {}
        self._pauses: dict[int, float] = {}
        self._held_since_s: float | None = None
        self._held_s = 0.0

    @property
    def has_grace(self) -> bool:
        """Whether a grace runs."""
        return bool(self._graces)

    def note_held(self, is_held: bool, now_s: float) -> float:  # noqa: FBT001  a state, not a switch
        """No grace runs while somebody is held at the barrier: that time is the harness's, not the job's.

        Returns:
            By how many seconds graces were prolonged, when nobody is held any more.
        """
        if self._held_since_s is not None and self._graces:
            passed_s = now_s - self._held_since_s
            self._graces = {pid: due_s + passed_s for pid, due_s in self._graces.items()}
            self._held_s += passed_s
        self._held_since_s = now_s if is_held else None
        if is_held:
            return 0.0
        told_s, self._held_s = self._held_s, 0.0
        return told_s

    def next_due_s(self) -> float:
        """When ``take_due`` has something to give; infinity when it has nothing."""
        return min([*self._graces.values(), *self._pauses.values()], default=math.inf)

    def give_notice(self, order: Order, *, due_s: float) -> None:
        """A grace runs; a second notice does not prolong the first."""
        self._graces.setdefault(order.pid, due_s)

    def take_notice(self, pid: int) -> float | None:
        """End a grace before its time; when it would have ended, None when none runs."""
        return self._graces.pop(pid, None)

    def note_signal(self, number: int, pid: int, *, due_s: float) -> None:
        """What is stopped goes on by itself then, should nobody order it; a killed one has no grace left."""
        if number == signal.SIGSTOP:
            self._pauses[pid] = due_s
        elif number == signal.SIGCONT:
            self._pauses.pop(pid, None)
            if pid == WHOLE:
                self._pauses.clear()

    def take_due(self, now_s: float) -> list[tuple[int, int, str]]:
        """Process, signal and cause of each that is due; each once."""
        due: list[tuple[int, int, str]] = []
        for pid in [pid for pid, due_s in self._graces.items() if due_s <= now_s]:
            del self._graces[pid]
            due.append((pid, signal.SIGKILL, "grace"))
        for pid in [pid for pid, due_s in self._pauses.items() if due_s <= now_s]:
            del self._pauses[pid]
            due.append((pid, signal.SIGCONT, "fault"))
        return due
