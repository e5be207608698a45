"""What was charged to the retry budget of a submitted object: its own count of failures, which evictions by the queue must not raise."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.history import SubmissionSeen


@dataclass(frozen=True, slots=True)
class Charge:
    """A rise of the count of failures, from ``before_s`` (when it was last seen lower) to ``t_s``."""

    before_s: float
    t_s: float
    failed: int


def read_charges(seen: Iterable[SubmissionSeen]) -> Iterator[Charge]:
    """Follow the count of one task's object; one that was made anew begins again from 0."""
    known: dict[str, tuple[float, int]] = {}
    for event in sorted(seen, key=lambda event: event.t_s):
        before_s, failed = known.get(event.uid, (event.t_s, 0))
        if event.failed > failed:
            yield Charge(before_s, event.t_s, event.failed - failed)
        known[event.uid] = event.t_s, max(failed, event.failed)
