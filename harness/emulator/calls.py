"""Every call that the emulator got, in order: what proves that a plan has written nothing."""

import heapq
import threading
from collections import deque

import msgspec

KEPT_MAX = 100_000
"""Reads, and as many writes, so that no polling pushes these out; of more the newest ones."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call.

    Attributes:
        number: From 1, in the order in which calls were answered.
        service: Like ``google.cloud.run.v2.Jobs`` or ``storage``.
        method: The whole name, as an injection names it: ``google.cloud.run.v2.Jobs/RunJob``, ``storage.objects.get``.
        resource: What it was about.
        is_write: Whether it was to change something; a request that only validates is none.
        outcome: ``OK``, a ``google.rpc.Code``, ``dropped`` when the connection was cut, or ``broken`` when the emulator has failed.
    """

    number: int
    service: str
    method: str
    resource: str
    is_write: bool
    outcome: str


class CallJournal:
    """Calls in order, of all services; safe to use from every thread."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._reads: deque[Call] = deque(maxlen=kept_max)
        self._writes: deque[Call] = deque(maxlen=kept_max)
        self._count = 0
        self._lock = threading.Lock()

    def note(self, method: str, *, resource: str, is_write: bool, outcome: str) -> Call:
        """Add one."""
        service = method.partition("/")[0] if "/" in method else method.partition(".")[0]
        with self._lock:
            self._count += 1
            call = Call(number=self._count, service=service, method=method, resource=resource, is_write=is_write, outcome=outcome)
            (self._writes if is_write else self._reads).append(call)
        return call

    def all(self) -> tuple[Call, ...]:
        """All of them so far, that are kept: a gap in their numbers is one that is not."""
        with self._lock:
            return tuple(heapq.merge(self._reads, self._writes, key=lambda call: call.number))

    def writes(self) -> tuple[Call, ...]:
        """Those that were to change something, refused ones included: who only plans asks for none."""
        with self._lock:
            return tuple(self._writes)
