"""Long-running operations of all services: they end when an engine says so, or when their time on the emulator's clock has come.

The locks of the emulator are taken in one order, from the left to the right, and never the other way::

    Cloud Run's executor > Kubernetes Engine's registry > Compute Engine's instances > operations, log, buckets

``settle`` does the work of every service, and so takes the locks of all: whoever holds Compute Engine's lock must not call it, nor
``find``, ``below``, ``all``, ``working_on`` or ``wait``, which settle first. ``begin``, ``finish``, ``fail`` and ``delete`` never settle:
they may be called under any lock.
"""

import heapq
import itertools
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from harness.clock import Clock
from harness.emulator.failures import ApiError

LOOK_S = 0.02
"""Between two looks of a waiter at the clock, which may be moved by hand."""

ENDED_KEPT_S = 14 * 86_400.0
"""How long an operation that has ended is shown. Source: https://docs.cloud.google.com/compute/docs/api/how-tos/api-requests-responses
(Compute Engine, 14 days); for the other services it is assumed."""
ENDED_KEPT_MAX = 10_000
"""Operations that have ended and are shown still, so that an emulator that runs for long stays as fast as it was (of our choosing)."""


@dataclass(slots=True, kw_only=True)
class Operation:
    """One operation, as the services have them in common; each service gives it its own message.

    Attributes:
        name: Whole, like ``projects/P/locations/L/operations/ID``.
        family: The service whose it is: ``run``, ``container``, ``compute``.
        target: The resource that it works on.
        kind: What it does, like ``SET_NODE_POOL_SIZE`` or ``delete``.
        metadata: What its service shows while it lasts.
        created: When it began.
        due_at_s: When it ends by itself, on the monotonic clock; infinity: when an engine says so.
        work: What is done at its end; its result is the response. Raises ``ApiError`` to fail.
        on_cancel: What a cancel does; None: it cannot be cancelled.
        is_done: Whether it has ended.
        ended: When.
        response: What came of it.
        error: Why it failed.
    """

    name: str
    family: str
    target: str
    created: datetime
    kind: str = ""
    metadata: object = None
    due_at_s: float = float("inf")
    work: Callable[[], object] = lambda: None
    on_cancel: Callable[[], None] | None = None
    is_done: bool = False
    ended: datetime | None = None
    response: object = None
    error: ApiError | None = None


class Operations:
    """The operations of the emulator; safe to use from every thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_name: dict[str, Operation] = {}
        self._open: dict[str, Operation] = {}
        self._ended: deque[tuple[float, Operation]] = deque()
        self._timed: list[tuple[float, int, Operation]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition(threading.RLock())

    def begin(
        self,
        parent: str,
        *,
        family: str,
        target: str,
        kind: str = "",
        metadata: object = None,
        lasts_s: float = float("inf"),
        work: Callable[[], object] = lambda: None,
        on_cancel: Callable[[], None] | None = None,
        identifier: str = "",
    ) -> Operation:
        """Begin one below ``parent``: ``{parent}/operations/{identifier}``.

        Args:
            parent: Like ``projects/P/locations/L``.
            family: The service whose it is.
            target: The resource that it works on.
            kind: What it does.
            metadata: What its service shows while it lasts.
            lasts_s: How long on the emulator's clock; 0: its work is done at once, here; infinity: until ``finish`` or ``fail``.
            work: What is done at its end.
            on_cancel: What a cancel does.
            identifier: Its last segment; made up where it is empty.
        """
        operation = Operation(
            name=f"{parent}/operations/{identifier or uuid.uuid4()}",
            family=family,
            target=target,
            kind=kind,
            metadata=metadata,
            created=self._clock.utc(),
            due_at_s=self._clock.monotonic_s() + lasts_s,
            work=work,
            on_cancel=on_cancel,
        )
        with self._changed:
            self._by_name[operation.name] = self._open[operation.name] = operation
            if 0 < lasts_s < float("inf"):
                heapq.heappush(self._timed, (operation.due_at_s, next(self._numbers), operation))
        if lasts_s <= 0:
            self._do(operation)  # its own work alone: a caller may hold the lock of its service, and the work of others needs theirs
        return operation

    def find(self, name: str) -> Operation | None:
        """An operation by its whole name."""
        self.settle()
        with self._changed:
            return self._by_name.get(name)

    def below(self, parent: str, *, family: str) -> list[Operation]:
        """Those of a service below a parent, the oldest first."""
        self.settle()
        with self._changed:
            return [found for found in self._by_name.values() if found.family == family and found.name.startswith(f"{parent}/")]

    def all(self) -> list[Operation]:
        """Those of all services, the oldest first."""
        self.settle()
        with self._changed:
            return list(self._by_name.values())

    def working_on(self, target: str) -> Operation | None:
        """The operation that still works on a resource."""
        self.settle()
        with self._changed:
            return next((found for found in self._open.values() if found.target == target), None)

    def finish(self, operation: Operation, response: object = None) -> None:
        """It has ended well; nothing happens when it has ended before."""
        self._end(operation, response, None)

    def fail(self, operation: Operation, error: ApiError) -> None:
        """It has ended badly; nothing happens when it has ended before."""
        self._end(operation, None, error)

    def delete(self, operation: Operation) -> None:
        """Forget it; what it does goes on."""
        with self._changed:
            self._by_name.pop(operation.name, None)
            self._open.pop(operation.name, None)

    def settle(self) -> None:
        """End those whose time has come, in the order in which it came."""
        for operation in self._take_due():
            self._do(operation)
        with self._changed:
            self._forget()

    def wait(self, operation: Operation, timeout_s: float, *, is_active: Callable[[], bool]) -> bool:
        """Wait until it has ended, at most so long on the emulator's clock and while the caller is there; returns whether it has."""
        until_s = self._clock.monotonic_s() + timeout_s
        while True:
            self.settle()
            with self._changed:
                if operation.is_done or self._clock.monotonic_s() >= until_s or not is_active():
                    return operation.is_done
                self._changed.wait(LOOK_S)

    def _do(self, operation: Operation) -> None:
        try:
            response = operation.work()
        except ApiError as error:
            self._end(operation, None, error)
        else:
            self._end(operation, response, None)

    def _take_due(self) -> Iterator[Operation]:
        """Those whose time has come; the work of each is done once, by whoever came first."""
        while True:
            with self._changed:
                if not self._timed or self._timed[0][0] > self._clock.monotonic_s():
                    return
                operation = heapq.heappop(self._timed)[2]
                if operation.is_done or self._by_name.get(operation.name) is not operation:
                    continue
            yield operation

    def _forget(self) -> None:
        """Those that ended long ago, and the oldest of too many."""
        now_s = self._clock.monotonic_s()
        while self._ended and (len(self._ended) > ENDED_KEPT_MAX or self._ended[0][0] + ENDED_KEPT_S <= now_s):
            operation = self._ended.popleft()[1]
            if self._by_name.get(operation.name) is operation:
                del self._by_name[operation.name]

    def _end(self, operation: Operation, response: object, error: ApiError | None) -> None:
        with self._changed:
            if operation.is_done:
                return
            operation.response, operation.error = response, error
            operation.ended, operation.is_done = self._clock.utc(), True
            self._open.pop(operation.name, None)
            self._ended.append((self._clock.monotonic_s(), operation))
            self._changed.notify_all()
