"""What the agent is told: numbered files, each read once, in order, by a thread of its own.

A file may be half there, or be nonsense: it is read again for a while, then refused. One that is missing while later ones are there is
waited for, then passed over. Whatever is refused is told; nothing that stands in a file can end the agent.
"""

from __future__ import annotations

import json
import math
import os
import threading
from typing import Callable, NamedTuple  # noqa: UP035  a container may have Python 3.8

from harness.targets.gcp.agent.clock import monotonic_s
from harness.targets.gcp.agent.processes import is_signal
from harness.targets.gcp.agent.reports import file_name, number_of

ORDER_BYTES_MAX = 64 << 10

PATIENCE_S = 5.0
"""For an order that is half there, and for one that is missing among others."""

LIST_EVERY_S = 1.0
"""How often it is looked whether later orders are there: a listing costs more than to ask for one file."""

ORDERS = ("start", "signal", "notice", "end-grace", "release")

WHOLE = -1


class Order(NamedTuple):
    """An order.

    Attributes:
        number: Of its file.
        do: ``start`` the job; send a ``signal``; give ``notice`` (SIGTERM, and SIGKILL after ``grace_s``); ``end-grace`` now; ``release``
            who waits at the barrier.
        signal: Which.
        grace_s: Of a notice.
        pid: Of one process of the job, by the container's ids; ``WHOLE``: the job as a whole.
        cause: Whom the target holds responsible; told again with what was done.
        barrier: Who is let go.
    """

    number: int
    do: str
    signal: int = 0
    grace_s: float = 0.0
    pid: int = WHOLE
    cause: str = ""
    barrier: int = 0


def read_order(data: bytes, number: int) -> Order:
    """An order from its file.

    Raises:
        ValueError: When it is none, or stands under another number.
    """
    if len(data) > ORDER_BYTES_MAX:
        raise ValueError(f"longer than {ORDER_BYTES_MAX} bytes")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}"[:200]) from error
    if not isinstance(document, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  what is wrong is what stands there
    if document.get("number") != number or isinstance(document["number"], bool):
        raise ValueError(f"it says that its number is {document.get('number')!r}"[:200])
    order = Order(
        number=number,
        do=_text(document, "do"),
        signal=_whole(document, "signal", 0),
        grace_s=_seconds(document, "grace_s"),
        pid=_whole(document, "pid", WHOLE),
        cause=_text(document, "cause"),
        barrier=_whole(document, "barrier", 0),
    )
    if order.do not in ORDERS:
        raise ValueError(f"no order is called {order.do!r}")
    if order.do == "signal" and not is_signal(order.signal):
        raise ValueError(f"{order.signal} is no signal")
    if order.pid != WHOLE and order.pid <= 1:
        raise ValueError(f"{order.pid} is no process of a job")
    return order


class OrderReader:
    """Reads the orders of one attempt.

    Args:
        directory: Where they come.
        deliver: Gets each order, in order.
        refuse: Gets the number of each that cannot be followed, and why.
    """

    def __init__(self, directory: str, *, deliver: Callable[[Order], None], refuse: Callable[[int, str], None]) -> None:
        self._directory = directory
        self._deliver, self._refuse = deliver, refuse
        self._next = 1
        self._unread_since_s = self._missing_since_s = math.inf
        self._listed_s = -math.inf
        self._stopped = threading.Event()

    def start(self, *, every_s: float) -> None:
        """Begin to look, every so often."""
        threading.Thread(target=self._run, args=(every_s,), name="orders", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def look(self, now_s: float) -> bool:
        """Look for the next order; whether it was there and there may be another."""
        path = os.path.join(self._directory, file_name(self._next, "json"))  # noqa: PTH118
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                data = file.read(ORDER_BYTES_MAX + 1)
        except FileNotFoundError:
            return self._pass_over_missing(now_s)
        except OSError:
            return False  # storage fails for a while
        try:
            order = read_order(data, self._next)
        except ValueError as error:
            return self._refuse_unreadable(str(error), now_s)
        self._advance()
        self._deliver(order)
        return True

    def _refuse_unreadable(self, why: str, now_s: float) -> bool:
        self._unread_since_s = min(self._unread_since_s, now_s)
        if now_s < self._unread_since_s + PATIENCE_S:
            return False
        self._refuse(self._next, why)
        self._advance()
        return True

    def _pass_over_missing(self, now_s: float) -> bool:
        if now_s < self._listed_s + LIST_EVERY_S:
            return False
        self._listed_s = now_s
        try:
            later = any(number_of(name) > self._next for name in os.listdir(self._directory))
        except OSError:
            return False
        self._missing_since_s = min(self._missing_since_s, now_s) if later else math.inf
        if now_s < self._missing_since_s + PATIENCE_S:
            return False
        self._refuse(self._next, "it never came, and later ones did")
        self._advance()
        return True

    def _advance(self) -> None:
        self._next += 1
        self._unread_since_s = self._missing_since_s = math.inf

    def _run(self, every_s: float) -> None:
        while not self._stopped.is_set():
            if not self.look(monotonic_s()):
                self._stopped.wait(every_s)


def _text(document: dict[str, object], name: str) -> str:
    value = document.get(name, "")
    if not isinstance(value, str) or len(value) > 100:
        raise ValueError(f"{name} is no word")
    return value


def _whole(document: dict[str, object], name: str, default: int) -> int:
    value = document.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 1 << 31:
        raise ValueError(f"{name} is no whole number")
    return value


def _seconds(document: dict[str, object], name: str) -> float:
    value = document.get(name, 0.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 86_400:
        raise ValueError(f"{name} is no number of seconds of a day")
    return float(value)
