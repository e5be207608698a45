"""Where the job is held: at every request for a place, or only where somebody waits for it.

A place is ``event:when``. ``step:after@step=12,rank=0`` holds at one step of a rank, ``save.commit:after@nth=3`` at an occurrence; so
a job that asks after each of its steps is held once, not at each of them.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple, Sequence  # noqa: UP035  a container may have Python 3.8

ARMED, OWN = "armed", "own"
"""Why somebody is held: a fault acts there, or the target looks at storage there."""


class Point(NamedTuple):
    """Where to hold at a place; what is None does not matter."""

    rank: int | None = None
    step: int | None = None
    nth: int | None = None


class Points:
    """All places, and how often each was asked at.

    Args:
        armed: Where faults act, with conditions.
        own: Places where the target looks at storage.
    """

    def __init__(self, armed: Sequence[str], own: Sequence[str] = ()) -> None:
        self._points: dict[str, list[Point]] = {}
        for text in armed:
            place, _, conditions = text.partition("@")
            self._points.setdefault(place, []).append(read_point(conditions))
        self._own = tuple(own)
        self._asked: Counter[tuple[str, int]] = Counter()

    @property
    def places(self) -> list[str]:
        """Where the job is to ask."""
        return list(dict.fromkeys([*self._points, *self._own]))

    def hold_for(self, line: bytes) -> str:
        """Why whoever asks so is held (``ARMED``, ``OWN``); empty: it is not. Each request is given once."""
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return ""
        if not isinstance(document, dict):
            return ""
        place = f"{document.get('event')}:{document.get('when')}"
        rank = document.get("rank", 0)
        if not isinstance(rank, int):
            return ""
        if place in self._points:
            self._asked[place, rank] += 1
            if any(_is_at(point, rank, document.get("step"), self._asked[place, rank]) for point in self._points[place]):
                return ARMED
        return OWN if place in self._own else ""


def is_request(line: bytes) -> bool:
    """Whether a line asks at some place."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and isinstance(document.get("event"), str) and document.get("when") in ("before", "after")


def read_point(conditions: str) -> Point:
    """``step=12,rank=0`` as a point; what cannot be read is no condition, so that one is held too often rather than never."""
    said = dict(part.partition("=")[::2] for part in conditions.split(",") if "=" in part)
    numbers = {name: int(value) for name, value in said.items() if name in Point._fields and value.isdecimal()}
    return Point(**numbers)


def _is_at(point: Point, rank: int, step: object, nth: int) -> bool:
    return point.rank in (None, rank) and point.step in (None, step) and point.nth in (None, nth)
