"""What agents say, read back: lines of numbered files, whole files only, in the order of their numbers."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.agent.reports import number_of

PATIENCE_S = 10.0
"""For a file that is half there or missing: an agent writes them one after the other, and again on errors."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One line. ``at`` is the container's CLOCK_MONOTONIC; which of the other fields mean something goes by ``kind``."""

    kind: str
    at: float = 0.0
    version: int = 0
    utc: float = 0.0
    pid: int = 0
    execution: str = ""
    order: int = 0
    line: str = ""
    barrier: int = 0
    signal: int | None = None
    cause: str = ""
    pids: tuple[int, ...] = ()
    states: dict[str, str] = {}
    reason: str = ""
    what: str = ""
    count: int = 0
    seconds: float = 0.0
    ended: float = 0.0
    code: int | None = None
    container: int = 0
    leftovers: int = 0
    swept: bool = True
    began: bool = True


class _Trailer(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    number: int
    lines: int


_report_decoder = msgspec.json.Decoder(Report)
_trailer_decoder = msgspec.json.Decoder(_Trailer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFile:
    """A whole file: its reports, and how many of its lines were none."""

    reports: tuple[Report, ...]
    garbage_count: int = 0


def read_report_file(data: bytes, number: int) -> ReportFile | None:
    """A file's reports; None while it is not whole, or is another's."""
    *lines, rest = data.split(b"\n")
    if rest or not lines:
        return None
    try:
        trailer = _trailer_decoder.decode(lines.pop())
    except (msgspec.MsgspecError, RecursionError):
        return None
    if (trailer.kind, trailer.number, trailer.lines) != ("end", number, len(lines)):
        return None
    reports = [report for line in lines if (report := _read_line(line)) is not None]
    return ReportFile(reports=tuple(reports), garbage_count=len(lines) - len(reports))


def _read_line(line: bytes) -> Report | None:
    try:
        report = _report_decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    return report if math.isfinite(report.at) and math.isfinite(report.ended) else None


def attempt_of(name: str) -> AttemptKey | None:
    """Whose directory or file this is, by ``TASK-ATTEMPT`` in its name; None: nobody's."""
    for part in name.split("/"):
        task, hyphen, attempt = part.partition("-")
        if hyphen and all(text.isascii() and text.isdecimal() and len(text) <= 6 for text in (task, attempt)):
            return AttemptKey(int(task), int(attempt))
    return None


def folder_of(key: AttemptKey) -> str:
    """The directory of an attempt, for orders and for reports."""
    return f"{key.task}-{key.attempt}"


@dataclass(slots=True, kw_only=True)
class ReportOrder:
    """Puts the files of one attempt in order, whichever comes first, each once.

    Attributes:
        next_number: Of the file that is due.
    """

    next_number: int = 1
    _held: dict[int, ReportFile] = field(default_factory=dict)
    _waiting_since_s: float = math.inf

    def wants(self, number: int) -> bool:
        """Whether a file is still to be read."""
        return number >= self.next_number and number not in self._held

    def take(self, number: int, file: ReportFile) -> list[ReportFile]:
        """A file has been read; what can be told now, in order."""
        if self.wants(number):
            self._held[number] = file
        return self._take_due()

    def give_up(self, there: Mapping[int, str] | set[int], now_s: float) -> tuple[int, list[ReportFile]]:
        """Pass over a file that is missing or broken for too long.

        Args:
            there: Numbers of files that there are, whole or not.
            now_s: The moment.

        Returns:
            The number that was passed over (0: none), and what can be told now.
        """
        is_due = self.next_number in there or any(number > self.next_number for number in [*there, *self._held])
        if not is_due or self.next_number in self._held:
            self._waiting_since_s = math.inf
            return 0, []
        self._waiting_since_s = min(self._waiting_since_s, now_s)
        if now_s < self._waiting_since_s + PATIENCE_S:
            return 0, []
        passed, self.next_number = self.next_number, self.next_number + 1
        self._waiting_since_s = math.inf
        return passed, self._take_due()

    def _take_due(self) -> list[ReportFile]:
        taken: list[ReportFile] = []
        while self.next_number in self._held:
            taken.append(self._held.pop(self.next_number))
            self.next_number += 1
            self._waiting_since_s = math.inf
        return taken


def encode_order(number: int, **fields: object) -> bytes:
    """An order as a file."""
    return json.dumps({"number": number, **fields}, separators=(",", ":")).encode()


__all__ = ["PATIENCE_S", "Report", "ReportFile", "ReportOrder", "attempt_of", "encode_order", "folder_of", "number_of", "read_report_file"]
