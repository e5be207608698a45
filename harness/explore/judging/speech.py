"""What a recovery says, while it runs and afterwards: the end of its output, and its events, from its file or by patterns."""

import os
import selectors
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Literal

from harness.history import LogLine
from harness.protocol.lines import LOG_LINE_BYTES_MAX, LineSplitter

KEPT_BYTES = 8 << 10
"""Of the end of the output: a traceback fits in."""

READ_BYTES = 64 << 10
"""What a pipe holds by default on Linux: one read empties it."""

DRAIN_READS_MAX = 64
"""At the end of a recovery that never stops talking: 4 MiB."""

Stream = Literal["stdout", "stderr"]

Hear = Callable[[LogLine], None]


class Lines:
    """What is printed in pieces, as lines of text: each redraw of a progress bar is one, and so is a last one that was never ended."""

    def __init__(self) -> None:
        self._splitter = LineSplitter(LOG_LINE_BYTES_MAX, drops_long=False, splits_redraws=True)

    def feed(self, data: bytes) -> list[str]:
        """The lines that end in ``data``."""
        return _texts(self._splitter.feed(data))

    def end(self) -> list[str]:
        """What was never ended, when nothing more comes."""
        return _texts(self._splitter.take_partial()) if self._splitter.has_partial else []


def _texts(lines: Iterable[bytes]) -> list[str]:
    texts = (line.decode(errors="replace").strip("\r") for line in lines)
    return [part for text in texts for part in text.split("\r") if part]


class Output:
    """What comes through pipes, read as it comes: bounded in memory however much it is.

    Standard output and error are heard apart, as in a recording: a progress bar on the one that ends no line takes no line of the other.

    Args:
        pipes: The descriptor of each stream; they become non-blocking.
        hear: Gets each line.
    """

    def __init__(self, pipes: Mapping[Stream, int], hear: Hear | None = None) -> None:
        self._streams: dict[int, Stream] = {descriptor: stream for stream, descriptor in pipes.items()}
        for descriptor in self._streams:
            os.set_blocking(descriptor, False)
        self._hear = hear
        self._kept, self._last = b"", -1
        self._kept_of = dict.fromkeys(self._streams, b"")
        self._lines = {descriptor: Lines() for descriptor in self._streams}

    def watch_in(self, selector: selectors.BaseSelector) -> None:
        """Have a selector wake when something comes."""
        for descriptor in self._streams:
            selector.register(descriptor, selectors.EVENT_READ)

    def take(self, ready: Container[int], selector: selectors.BaseSelector) -> None:
        """Take what has come through the descriptors that are ready; one at its end is watched no more."""
        for descriptor in self._streams:
            if descriptor in ready and self.read(descriptor) == b"":
                selector.unregister(descriptor)

    def read(self, descriptor: int) -> bytes | None:
        """Take what has come, at most one pipe full: empty at the end of the stream, None when nothing has come yet."""
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return None
        if data:
            between = b"\n" if self._last not in {descriptor, -1} and not self._kept.endswith(b"\n") else b""
            self._kept, self._last = (self._kept + between + data)[-KEPT_BYTES:], descriptor
            self._kept_of[descriptor] = (self._kept_of[descriptor] + data)[-KEPT_BYTES:]
        self._tell(descriptor, self._lines[descriptor].feed(data))
        return data

    def drain(self) -> None:
        """Take the rest, when whoever spoke has ended; a line that was never ended counts as one."""
        for descriptor in self._streams:
            for _ in range(DRAIN_READS_MAX):
                if not self.read(descriptor):
                    break
            self._tell(descriptor, self._lines[descriptor].end())

    @property
    def end(self) -> str:
        """The last of all of it, as text."""
        return self._kept.decode(errors="replace").strip()

    def end_of(self, stream: Stream) -> str:
        """The last of one stream, as text."""
        found = (self._kept_of[descriptor] for descriptor, name in self._streams.items() if name == stream)
        return next(found, b"").decode(errors="replace").strip()

    def _tell(self, descriptor: int, lines: Iterable[str]) -> None:
        if self._hear is not None:
            for line in lines:
                self._hear(LogLine(t_s=0.0, task=0, attempt=1, stream=self._streams[descriptor], text=line))
