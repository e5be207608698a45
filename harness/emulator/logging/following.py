"""Who follows the log: each follower has a queue of its own, and one that is too slow is told how many it has missed."""

import threading
from collections import deque
from dataclasses import dataclass, field

from harness.emulator.logging.deliveries import Delivery

QUEUE_MAX = 10_000
"""Entries that wait for one follower; Google sends at most 60,000 a minute. Source: https://docs.cloud.google.com/logging/quotas"""


@dataclass(slots=True)
class Follower:
    """One of them; its store puts deliveries in under its own lock.

    Attributes:
        missed: Entries that found the queue full, since ``take`` was called last.
    """

    missed: int = 0
    _queue: deque[tuple[float, Delivery]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, now_s: float, delivery: Delivery) -> None:
        """A delivery can be found since ``now_s`` of the monotonic clock."""
        with self._lock:
            if len(self._queue) >= QUEUE_MAX:
                self.missed += 1
            else:
                self._queue.append((now_s, delivery))

    def take(self, until_s: float, count_max: int, bytes_max: int) -> tuple[list[Delivery], int]:
        """Those that can be found since ``until_s`` or longer, one at least however long it is, and how many were missed."""
        with self._lock:
            taken: list[Delivery] = []
            room = bytes_max
            while self._queue and len(taken) < count_max and self._queue[0][0] <= until_s:
                room -= len(self._queue[0][1].encoded)
                if taken and room < 0:
                    break
                taken.append(self._queue.popleft()[1])
            missed, self.missed = self.missed, 0
            return taken, missed
