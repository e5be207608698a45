"""The content of a file as spans of the recording's data: cheap to copy, never in memory as a whole.

A value: writing to it gives another one. ``data_file`` reads and hashes it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.explore.operations import Extent

Span = tuple[int, int]
"""Where in the data file, and how many bytes; ``ZEROS`` for bytes that nobody wrote."""

ZEROS = -1


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes, told as the spans they are read from. Adjacent spans are joined, so that equal spans are equal bytes; not the reverse.

    Attributes:
        spans: In order, none of them empty.
        size: Of all, in bytes.
    """

    spans: tuple[Span, ...] = ()
    size: int = 0

    @classmethod
    def of(cls, extent: Extent) -> "Content":
        """The content that one write made of an empty file."""
        return EMPTY.written(0, (extent.start, extent.size))

    def written(self, offset: int, span: Span) -> "Content":
        """With the bytes of ``span`` at ``offset``; a hole before them reads as zeros."""
        if not span[1]:
            return self
        end = offset + span[1]
        if offset == self.size:  # most writes append
            return Content(_joined(self.spans[:-1], (*self.spans[-1:], span)), end)
        return Content(_joined(self.resized(offset).spans, (span, *self._cut(end, self.size))), max(end, self.size))

    def resized(self, size: int) -> "Content":
        """Cut to a size, or grown to it with zeros."""
        if size == self.size:
            return self
        if size > self.size:
            return Content(_joined(self.spans, ((ZEROS, size - self.size),)), size)
        return Content(tuple(self._cut(0, size)), size)

    def _cut(self, start: int, end: int) -> Iterator[Span]:
        at = 0
        for begin, size in self.spans:
            first, last = max(start, at), min(end, at + size)
            if first < last:
                yield (begin if begin == ZEROS else begin + first - at), last - first
            at += size


def _joined(head: tuple[Span, ...], tail: Iterable[Span]) -> tuple[Span, ...]:
    spans = list(head)
    for begin, size in tail:
        if spans and (begin == spans[-1][0] == ZEROS or (begin >= 0 <= spans[-1][0] and begin == sum(spans[-1]))):
            spans[-1] = (spans[-1][0], spans[-1][1] + size)
        else:
            spans.append((begin, size))
    return tuple(spans)


EMPTY = Content()
