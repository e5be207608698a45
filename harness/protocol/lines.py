"""Bytes to lines, with a bound on the length of a line whatever is written."""

LINE_BYTES_MAX = 1 << 20
"""A line of the protocol: a step with thousands of sample ids fits, a job that never ends its line does not fill our memory."""

LOG_LINE_BYTES_MAX = 256 << 10
"""The size of an entry in Cloud Logging. Source: https://docs.cloud.google.com/logging/quotas"""


class LineSplitter:
    """Cuts a stream into lines; a longer line is cut to the limit or, with ``drops_long``, dropped.

    With ``splits_redraws`` a lone carriage return ends a line too, and stays as its last byte: a progress bar that never ends its line is
    seen as it goes.

    Attributes:
        long_count: How many lines were too long.
    """

    def __init__(self, limit_bytes: int, *, drops_long: bool, splits_redraws: bool = False) -> None:
        self._limit_bytes = limit_bytes
        self._drops_long = drops_long
        self._splits_redraws = splits_redraws
        self._partial = bytearray()
        self._held = b""
        self._is_long = False
        self.long_count = 0

    @property
    def has_partial(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._partial) or self._is_long

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in ``data``, without their newline."""
        *ended, rest = (self._end_redraws(data) if self._splits_redraws else data).split(b"\n")
        lines: list[bytes] = []
        for piece in ended:
            self._extend(piece)
            lines += self.take_partial()
        self._extend(rest)
        return lines

    def take_partial(self) -> list[bytes]:
        """End the line that has begun: at most one, none when it is dropped."""
        line, is_long = bytes(self._partial), self._is_long
        self._partial, self._is_long = bytearray(), False
        return [] if is_long and self._drops_long else [line]

    def _end_redraws(self, data: bytes) -> bytes:
        """Put a newline after each lone carriage return; one at the end of ``data`` waits for what follows, which may be its newline."""
        data = self._held + data
        self._held = b"\r" if data.endswith(b"\r") else b""
        return data.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\r\n")

    def _extend(self, piece: bytes) -> None:
        room = self._limit_bytes - len(self._partial)
        if len(piece) > room and not self._is_long:
            self._is_long = True
            self.long_count += 1
        self._partial += piece[:room]
