"""What can befall an entry on its way: late, twice, never, with a wrong clock, too large. Cloud Logging promises none of it away.

Source: the comments of ``LogEntry.timestamp``, ``receive_timestamp`` and ``insert_id`` in google.logging.v2
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.emulator.logging.query import Expression, matches, parse_filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Befalls the entries that arrive after it and match its filter.

    Attributes:
        filter: In the Logging query language; empty: every entry.
        late_s: How long after its arrival an entry is found; infinity: when ``LogEntryStore.release`` is called.
        late_max_s: When larger, each entry's lateness is drawn between the two: entries then arrive out of order.
        copies: How often it is delivered in all; 0: never, it is lost.
        skew_s: Added to the timestamp: the clock of the writer is wrong.
        padded_bytes: The text of its payload is padded to this length.
        times: How many entries it befalls; 0: without end.
        seed: Of what is drawn.
    """

    filter: str = ""
    late_s: float = 0.0
    late_max_s: float = 0.0
    copies: int = 1
    skew_s: float = 0.0
    padded_bytes: int = 0
    times: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.late_s < 0 or self.copies < 0 or self.padded_bytes < 0 or self.times < 0:
            raise ValueError(f"{self}: late_s, copies, padded_bytes and times are numbers >= 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What befalls one entry, all disturbances together."""

    late_s: float = 0.0
    copies: int = 1
    skew_s: float = 0.0
    padded_bytes: int = 0


class Disturbable:
    """The disturbances that tests play most, by name."""

    def disturb(self, disturbance: Disturbance) -> None:
        """From now on entries that match are disturbed.

        Raises:
            FilterError: When its filter cannot be read.
        """
        raise NotImplementedError

    def hold_back(self, matching: str = "", *, late_s: float = float("inf"), late_max_s: float = 0.0, seed: int = 0) -> None:
        """From now on entries that match are found late, or when ``release`` is called."""
        self.disturb(Disturbance(filter=matching, late_s=late_s, late_max_s=late_max_s, seed=seed))

    def duplicate(self, matching: str = "", *, copies: int = 2) -> None:
        """From now on entries that match are delivered several times, as the same entry."""
        self.disturb(Disturbance(filter=matching, copies=copies))

    def lose(self, matching: str = "", *, times: int = 0) -> None:
        """From now on entries that match are lost: the next ``times``, or all."""
        self.disturb(Disturbance(filter=matching, copies=0, times=times))

    def skew(self, matching: str = "", *, skew_s: float) -> None:
        """From now on entries that match bear the time of a clock that is wrong."""
        self.disturb(Disturbance(filter=matching, skew_s=skew_s))

    def enlarge(self, matching: str = "", *, padded_bytes: int) -> None:
        """From now on entries that match have a payload of this length, however long Google lets one be."""
        self.disturb(Disturbance(filter=matching, padded_bytes=padded_bytes))


class Disturbances:
    """Those in force; not safe to use from several threads, its store is."""

    def __init__(self) -> None:
        self._active: list[_Active] = []

    @property
    def are_any(self) -> bool:
        """Whether there is one that may befall an entry."""
        return bool(self._active)

    def add(self, disturbance: Disturbance) -> None:
        """Put one in force.

        Raises:
            FilterError: When its filter cannot be read.
        """
        self._active.append(_Active(disturbance))

    def clear(self) -> None:
        """Take all of them back; what they have done stays."""
        self._active.clear()

    def fate(self, entry: Mapping[str, object]) -> Fate:
        """What befalls an entry."""
        late_s, copies, skew_s, padded_bytes = 0.0, 1, 0.0, 0
        for active in self._active:
            if active.strikes(entry):
                late_s += active.draw_late_s()
                copies *= active.disturbance.copies
                skew_s += active.disturbance.skew_s
                padded_bytes = max(padded_bytes, active.disturbance.padded_bytes)
        return Fate(late_s=late_s, copies=copies, skew_s=skew_s, padded_bytes=padded_bytes)


class _Active:
    def __init__(self, disturbance: Disturbance) -> None:
        self.disturbance = disturbance
        self._filter: Expression = parse_filter(disturbance.filter)
        self._random = random.Random(disturbance.seed)  # noqa: S311
        self._count = 0

    def strikes(self, entry: Mapping[str, object]) -> bool:
        is_over = self.disturbance.times and self._count >= self.disturbance.times
        if is_over or not matches(self._filter, entry):
            return False
        self._count += 1
        return True

    def draw_late_s(self) -> float:
        late_s, late_max_s = self.disturbance.late_s, self.disturbance.late_max_s
        return self._random.uniform(late_s, late_max_s) if late_max_s > late_s else late_s


def pad(entry: dict[str, Any], length: int) -> None:
    """Pad the text of the payload; an entry without a text gets a field ``padding`` beside the others."""
    if isinstance(entry.get("textPayload"), str):
        entry["textPayload"] = entry["textPayload"].ljust(length, "x")
        return
    kind = next((kind for kind in ("jsonPayload", "protoPayload") if isinstance(entry.get(kind), dict)), "jsonPayload")
    entry[kind] = {**entry.get(kind, {}), "padding": "x" * length}
