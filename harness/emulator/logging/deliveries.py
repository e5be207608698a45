"""An entry as the store keeps it: encoded, with what it is sorted by."""

import heapq
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.emulator.logging.query import Subject

_DECODER = msgspec.json.Decoder(type=dict[str, Any])

Key = tuple[int, str, int]
"""Moment in nanoseconds since 1970, insert id, number: what entries are sorted by, and where a page ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """An entry that can be found from a moment on.

    Attributes:
        key: What it is sorted by; its last part is the number of the delivery.
        project: Whose it is.
        log_name: Of the entry.
        encoded: The entry in its JSON form.
        subjects: What it is found by.
        copy: 0 but for what is delivered again on purpose: such a copy is not taken for the same entry.
    """

    key: Key
    project: str
    log_name: str
    encoded: bytes
    subjects: frozenset[Subject] = frozenset()
    copy: int = 0

    @property
    def identity(self) -> tuple[str, int, str, int]:
        """Two entries with the same are one to a query.

        Source: the comment of ``LogEntry.insert_id`` in google.logging.v2.
        """
        return self.project, self.key[0], self.key[1], self.copy

    def entry(self) -> dict[str, Any]:
        """The entry in its JSON form; each call makes a new one."""
        return _DECODER.decode(self.encoded)


@dataclass(slots=True)
class Waiting:
    """Deliveries whose moment has not come."""

    heap: list[tuple[float, int, Delivery]] = field(default_factory=list)

    def add(self, visible_at_s: float, delivery: Delivery) -> None:
        """Hold a delivery until a moment of the monotonic clock."""
        heapq.heappush(self.heap, (visible_at_s, delivery.key[2], delivery))

    def take(self, now_s: float) -> list[Delivery]:
        """Those whose moment has come, in the order in which it came."""
        taken: list[Delivery] = []
        while self.heap and self.heap[0][0] <= now_s:
            taken.append(heapq.heappop(self.heap)[2])
        return taken
