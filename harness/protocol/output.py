"""Reads what an attempt prints, as an operator sees it: lines of stdout and stderr, bounded, never waiting."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from harness.history import LogLine, ObservationLost
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.lines import LOG_LINE_BYTES_MAX, LineSplitter

RETURN = b"\r"

PIPE_READ_BYTES = 64 << 10
"""What a pipe holds by default on Linux: one read empties it."""

SEVERITIES = frozenset({"DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"})
"""Source: https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#LogSeverity"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    """How much of one attempt is kept. A chatty training job prints a line a step; more than this is a job gone wild."""

    lines: int = 20_000
    bytes: int = 32 << 20


class _StructuredLine(msgspec.Struct, frozen=True, kw_only=True):
    severity: str = "DEFAULT"


_structured_decoder = msgspec.json.Decoder(_StructuredLine)


def severity_of(text: str) -> str:
    """The severity that a line of JSON claims; plain text has none.

    Source: https://docs.cloud.google.com/run/docs/logging#using-json
    """
    if not text.startswith("{"):
        return "DEFAULT"
    try:
        severity = _structured_decoder.decode(text).severity.upper()
    except (msgspec.MsgspecError, RecursionError):
        return "DEFAULT"
    return severity if severity in SEVERITIES else "DEFAULT"


class Source(Protocol):
    """Where bytes of one stream come from."""

    @property
    def descriptor(self) -> int:
        """Becomes readable when something has come."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether more can come."""
        ...

    def read(self, budget_bytes: int) -> Iterator[bytes]:
        """Pieces as long as there are some, within the budget; the end of the stream closes it."""
        ...


class PipeSource:
    """The reading end of a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_open = True
        os.set_blocking(descriptor, False)

    @property
    def descriptor(self) -> int:
        """See ``Source``."""
        return self._descriptor

    @property
    def is_open(self) -> bool:
        """See ``Source``."""
        return self._is_open

    def read(self, budget_bytes: int) -> Iterator[bytes]:
        """See ``Source``."""
        while self._is_open and budget_bytes > 0:
            try:
                data = os.read(self._descriptor, PIPE_READ_BYTES)
            except BlockingIOError:
                return
            self._is_open = bool(data)
            budget_bytes -= len(data)
            if data:
                yield data


class _Stream:
    def __init__(self, name: Literal["stdout", "stderr"], source: Source) -> None:
        self.name = name
        self.source = source
        self.splitter = LineSplitter(LOG_LINE_BYTES_MAX, drops_long=False, splits_redraws=True)
        self.is_redrawing = False


class JobOutput:
    """Stdout and stderr of one attempt.

    Attributes:
        is_drained: Whether the last ``read`` left nothing unread.
    """

    def __init__(self, key: AttemptKey, *, stdout: Source, stderr: Source, limits: OutputLimits | None = None) -> None:
        self._key = key
        self._limits = limits or OutputLimits()
        self._streams = (_Stream("stdout", stdout), _Stream("stderr", stderr))
        self._lines = self._bytes = self._dropped = 0
        self.is_drained = True

    @property
    def open_descriptors(self) -> Sequence[int]:
        """Those that can still bring something."""
        return [stream.source.descriptor for stream in self._streams if stream.source.is_open]

    def read(self, t_s: float, budget_bytes: int) -> list[LogLine]:
        """The lines that ended since, at most ``budget_bytes`` from each stream."""
        lines: list[LogLine] = []
        self.is_drained = True
        for stream in self._streams:
            size = 0
            for data in stream.source.read(budget_bytes):
                size += len(data)
                lines += self._keep(stream, stream.splitter.feed(data) if self._has_room(len(data)) else self._drop(stream, data), t_s)
            self.is_drained &= size < budget_bytes
        return lines

    def finish(self, t_s: float) -> tuple[list[LogLine], list[ObservationLost]]:
        """Last lines that no newline ended, and, once, what was not recorded."""
        lines: list[LogLine] = []
        for stream in self._streams:
            if stream.splitter.has_partial:
                lines += self._keep(stream, stream.splitter.take_partial(), t_s)
        long_count = sum(stream.splitter.long_count for stream in self._streams)
        if not self._dropped and not long_count:
            return lines, []
        detail = (
            f"task {self._key.task} attempt {self._key.attempt}: {self._dropped} lines over the limit of {self._limits.lines} lines or "
            f"{self._limits.bytes} bytes, {long_count} lines cut at {LOG_LINE_BYTES_MAX} bytes"
        )
        return lines, [ObservationLost(t_s=t_s, what="logs", count=self._dropped + long_count, detail=detail)]

    def _has_room(self, size: int) -> bool:
        self._bytes += size
        return self._lines < self._limits.lines and self._bytes <= self._limits.bytes

    def _drop(self, stream: _Stream, data: bytes) -> list[bytes]:
        stream.splitter.take_partial()  # its newline is still to come and is counted then
        self._dropped += data.count(b"\n")
        return []

    def _keep(self, stream: _Stream, raw_lines: list[bytes], t_s: float) -> list[LogLine]:
        kept: list[LogLine] = []
        for raw in raw_lines:
            ends_redrawn = raw.endswith(RETURN)
            is_redrawn, stream.is_redrawing = ends_redrawn or stream.is_redrawing, ends_redrawn
            if ends_redrawn and not raw.strip():
                continue  # a progress bar goes back to the first column, or wipes its line
            if self._lines >= self._limits.lines:
                self._dropped += 1
                continue
            self._lines += 1
            text = raw.removesuffix(RETURN).decode("utf-8", "replace")
            kept.append(
                LogLine(
                    t_s=t_s,
                    task=self._key.task,
                    attempt=self._key.attempt,
                    stream=stream.name,
                    text=text,
                    severity=severity_of(text),
                    is_redrawn=is_redrawn,
                )
            )
        return kept
