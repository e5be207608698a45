"""Ctrl-C and SIGTERM, counted: nothing is torn apart in the middle of a message, and who looks when it suits says what follows."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

COUNTED_MAX = 2
"""The first is an answer to what runs, the second to waiting for its end; whoever sends more is heard at once, wherever we are."""


class Interruptions:
    """Counts while it is entered; a signal that was ignored stays so, as in a job of a shell that outlives its terminal."""

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[int, Callable[[int, FrameType | None], Any] | int] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if before is not None and before is not signal.SIG_IGN:
                signal.signal(number, self._count)
                self._before[number] = before
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > COUNTED_MAX:
            raise KeyboardInterrupt
