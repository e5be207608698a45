"""The recorded operations and words of a job, looked up by their index and named as a reader knows them."""

from collections.abc import Iterator, Sequence

from harness.explore.result import Moment, Strip

SAVE_BEGINS, SAVE_ENDS = "save.begin", "save.end"
"""A save is in flight between them (workloads/protocol.md)."""

EVENT = "event"

ACKNOWLEDGED = "saved"
"""The word of an acknowledgement that was printed, and that no log of words has (``scenario.LogPatterns``)."""

ACKNOWLEDGEMENTS = frozenset({SAVE_ENDS, ACKNOWLEDGED})
"""Words after which more is promised."""

QUIET = frozenset({"close", "sync"})
"""Operations that change nothing of what a loss leaves out: what is missing before one is missing after it."""


class Journal:
    """What stands at an index of the log.

    Args:
        operations: Operations and words, in the order of the log.
    """

    def __init__(self, operations: Sequence[Strip]) -> None:
        self._by_index = {strip.index: strip for strip in operations}
        self._operations = tuple(operations)
        self._idle_begins = tuple(_idle_begins(operations))
        self._in_flight = frozenset(_in_flight(operations))

    def is_word(self, moment: Moment) -> bool:
        """Whether the last thing before a moment is a word of the job, so that storage is as it was before."""
        strip = self._by_index.get(moment.at)
        return strip.kind == EVENT if strip is not None else moment.at > 0 and not moment.point.operation

    def name(self, index: int) -> str:
        """Kind and class of an operation, like ``write step_*/data``; a word of the job by itself."""
        strip = self._by_index.get(index)
        if strip is None:
            return f"entry {index} of the log"
        return _named(strip.kind, strip.path_class)

    def name_at(self, moment: Moment) -> str:
        """The same of what was executed last."""
        if moment.at in self._by_index:
            return self.name(moment.at)
        return ACKNOWLEDGED if self.is_word(moment) else _named(moment.point.operation, moment.point.path_class)

    def path_class(self, index: int) -> str:
        """What an operation was on; empty where that is not known."""
        strip = self._by_index.get(index)
        return strip.path_class if strip is not None else ""

    def kind(self, index: int) -> str:
        """What an operation was; empty where that is not known."""
        strip = self._by_index.get(index)
        return strip.kind if strip is not None else ""

    def marker(self, index: int) -> str:
        """What the job said last before an operation."""
        strip = self._by_index.get(index)
        return strip.marker if strip is not None else ""

    def changes_between(self, after: int, before: int) -> tuple[int, ...]:
        """Entries between two indices that may turn right into wrong: operations that change something, and acknowledgements."""
        between = [strip for strip in self._operations if after < strip.index < before]
        return tuple(
            strip.index for strip in between if (strip.path_class in ACKNOWLEDGEMENTS if strip.kind == EVENT else strip.kind not in QUIET)
        )

    def is_acknowledged_between(self, after: int, before: int) -> bool:
        """Whether a save was acknowledged between two indices."""
        return any(
            strip.kind == EVENT and strip.path_class in ACKNOWLEDGEMENTS for strip in self._operations if after < strip.index < before
        )

    def has_save_in_flight(self, index: int) -> bool:
        """Whether a save had begun, and was not acknowledged, at an operation."""
        return index in self._in_flight

    def has_idle_begin(self, after: int, before: int) -> bool:
        """Whether a save began between two indices while no other was in flight: there at the latest nothing was under way."""
        return any(after < index < before for index in self._idle_begins)


def _named(kind: str, path_class: str) -> str:
    return path_class if kind == EVENT else f"{kind} {path_class}".strip()


def _in_flight(operations: Sequence[Strip]) -> Iterator[int]:
    """Operations while a save was in flight."""
    in_flight = 0
    for strip in operations:
        if strip.kind == EVENT:
            in_flight += (strip.path_class == SAVE_BEGINS) - (strip.path_class == SAVE_ENDS and in_flight > 0)
        elif in_flight:
            yield strip.index


def _idle_begins(operations: Sequence[Strip]) -> list[int]:
    in_flight, found = 0, []
    for strip in operations:
        if strip.kind != EVENT:
            continue
        if strip.path_class == SAVE_BEGINS:
            if in_flight == 0:
                found.append(strip.index)
            in_flight += 1
        elif strip.path_class == SAVE_ENDS:
            in_flight = max(0, in_flight - 1)
    return found
