"""Ctrl-C, SIGTERM and the end of the terminal, counted: no message is torn apart, and who looks when it suits says what follows."""

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn, Self

COUNTED_MAX = 2
"""The first is an answer to what runs, the second to waiting for its end; whoever sends more is heard at once, wherever we are."""

INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The last one comes when a terminal is closed, or a connection to it is lost."""


def leave_lost_terminal() -> None:
    """Speak to nobody from now on where the terminal is gone: else the next word breaks what is still to be ended and kept."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")  # goes nowhere, and fails where nothing can be written
        except OSError as error:
            if error.errno == errno.EIO:
                with open(os.devnull, "wb", buffering=0) as nobody:  # noqa: PTH123 - no path of ours
                    os.dup2(nobody.fileno(), descriptor)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Have SIGTERM and the end of the terminal interrupt like Ctrl-C meanwhile; who ignores SIGHUP shall outlive it, as under nohup."""
    numbers = [signal.SIGTERM, *([] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP])]
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    leave_lost_terminal()
    raise KeyboardInterrupt


class Interruptions:
    """Counts while it is entered; a signal that was ignored stays so, as in a job of a shell that outlives its terminal.

    Attributes:
        count: How many there were.
        last: The number of the last one.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last = 0
        self._before: dict[int, Callable[[int, FrameType | None], Any] | int] = {}

    def __enter__(self) -> Self:
        for number in INTERRUPTING:
            before = signal.getsignal(number)
            if before is not None and before is not signal.SIG_IGN:
                signal.signal(number, self._count)
                self._before[number] = before
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _count(self, number: int, _frame: FrameType | None) -> None:
        leave_lost_terminal()
        self.last = number
        self.count += 1
        if self.count > COUNTED_MAX:
            raise KeyboardInterrupt
