"""The content of a file as pieces of the log's data: what its operations make of it, without holding a byte."""

from bisect import bisect_right
from collections.abc import Iterator

Piece = tuple[int, int, int]
"""Where it begins in the file, where it ends, and where its bytes begin in the data."""


class Pieces:
    """What lies between the pieces, or behind the last one up to ``size``, is zeros."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[Piece] = []

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)

    def write(self, offset: int, size: int, data: int) -> None:
        """Bytes of the data from ``data`` on went to ``offset``."""
        end = offset + size
        if self._pieces and offset < self._pieces[-1][1]:
            self._cut(offset, end)
        last = self._pieces[-1] if self._pieces else (0, 0, 0)
        if self._pieces and last[1] == offset and last[2] + last[1] - last[0] == data:
            self._pieces[-1] = (last[0], end, last[2])
        else:
            self._pieces.insert(bisect_right(self._pieces, (offset, end, data)), (offset, end, data))
        self.size = max(self.size, end)

    def truncate(self, size: int) -> None:
        """The file is so large now."""
        if size < self.size:
            self._cut(size, self.size)
        self.size = size

    def _cut(self, offset: int, end: int) -> None:
        """Take a range out; what stays on either side stays where it is."""
        first = bisect_right(self._pieces, (offset,)) - 1
        at = max(first, 0)
        kept: list[Piece] = []
        stop = at
        while stop < len(self._pieces) and self._pieces[stop][0] < end:
            begins, ends, data = self._pieces[stop]
            if begins < offset:
                kept.append((begins, min(ends, offset), data))
            if ends > end:
                kept.append((max(begins, end), ends, data + max(begins, end) - begins))
            stop += 1
        self._pieces[at:stop] = kept
