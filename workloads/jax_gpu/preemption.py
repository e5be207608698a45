"""How the platform's SIGTERM reaches the training loop: by our own handler in one process, by JAX's agreement in several."""

import signal
from collections.abc import Callable
from types import FrameType

from workloads import protocol


class SigtermFlag:
    """One process: the handler sets a flag that the loop reads at each step.

    JAX's ``reached_preemption_sync_point`` is no use here: without a distributed client it is always False, and a job that
    trusts it dies of the signal without a save.
    """

    def __init__(self) -> None:
        self._received = False
        signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        if not self._received:
            self._received = True
            protocol.emit("sigterm")

    def reached(self) -> bool:
        return self._received


class SyncPoint:
    """Several processes: JAX swallows the signal, tells all ranks, and lets them agree on a step that none of them has passed.

    The agreement counts questions, not steps, because its counter starts at 0 in every attempt: asked about step 11 first, it
    could settle on step 1 after a signal that came early, and be true never.
    """

    def __init__(self, rank: int, agreed_on: Callable[[int], bool]) -> None:
        self._rank = rank
        self._agreed_on = agreed_on
        self._questions = 0

    def reached(self) -> bool:
        """Ask once a step, on every rank; 0.2 to 2.2 s pass from the signal to the step where it is true everywhere."""
        self._questions += 1
        if not self._agreed_on(self._questions):
            return False
        protocol.emit("sigterm", rank=self._rank)
        return True
