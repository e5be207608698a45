"""What the log of an execution tells: its lines, what silent jobs say in them, and how the platform saw attempts end."""

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from harness.capabilities import Launch
from harness.errors import StoreError
from harness.history import Event, LogLine, ObservationLost
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.log_patterns import LogPatternReader
from harness.protocol.output import severity_of
from harness.targets.gcp.clock_offsets import ClockOffset
from harness.targets.gcp.log_reading import EntrySeen
from harness.targets.gcp.masking import EntryMask
from harness.targets.gcp.secrets import Secrets

_EXIT = re.compile(r"^Container called exit\((?P<code>\d{1,3})\)")
_SIGNAL = re.compile(r"^Container terminated on signal (?P<number>\d{1,2})")
"""How the platform says that a container has ended. Source: public exports of Cloud Run job logs."""

ENTRIES_NAME = "entries.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEnd:
    """How the platform saw a container end: by a code or a signal; ``t_s`` when, None where it does not say."""

    exit_code: int | None = None
    signal: int | None = None
    t_s: float | None = None


@dataclass(slots=True, kw_only=True)
class LogBook:
    """Takes entries, gives events, and keeps the entries as they came beside the history.

    Attributes:
        launch: What runs.
        secrets: What is not to be written down.
        offset: Google's time of day to our monotonic clock.
        ends: Of containers, by attempt.
        played: How many lines of ours have come back, by attempt.
        has_audit: Whether the entry at the end of the execution has come.
        newest_s: When the last entry came, on the monotonic clock.
    """

    launch: Launch
    secrets: Secrets
    offset: ClockOffset = field(default_factory=ClockOffset)
    ends: dict[AttemptKey, ContainerEnd] = field(default_factory=dict)
    played: Counter[AttemptKey] = field(default_factory=Counter)
    has_audit: bool = False
    newest_s: float = 0.0
    _readers: dict[AttemptKey, LogPatternReader] = field(default_factory=dict)
    _mask: EntryMask = field(init=False)
    _cut: int = 0

    def __post_init__(self) -> None:
        self._mask = EntryMask(self.secrets)

    def take(self, entries: list[tuple[EntrySeen, dict[str, object]]], seen_s: float) -> list[Event]:
        """Entries as events, each by its own time.

        Raises:
            StoreError: When they cannot be kept.
        """
        if not entries:
            return []
        self.newest_s = seen_s
        self._keep(entries)
        events: list[Event] = []
        for seen, _ in entries:
            raw = self._line(seen, seen_s)
            line = self._told(raw)
            events.append(line)
            self._note(seen, line.t_s)
            if seen.lost_count:
                events.append(ObservationLost(t_s=line.t_s, what="logs", count=seen.lost_count, detail=line.text))
            if seen.stream in ("stdout", "stderr") and self.launch.log_patterns:
                events += self._reader(seen.key).read(raw)  # what looks like a credential may be a step; no text of it is told
        return events

    def told_cuts(self, t_s: float) -> list[Event]:
        """What of the lines was not recorded, once."""
        count, self._cut = self._cut, 0
        return [ObservationLost(t_s=t_s, what="logs", count=count, detail="lines that are longer than a line may be, cut")] if count else []

    def note_made(self, created: datetime, *, asked_s: float, seen_s: float) -> None:
        """Google stamped something between two moments of ours."""
        self.offset.answered(asked_s, created.timestamp(), seen_s)

    def _line(self, seen: EntrySeen, seen_s: float) -> LogLine:
        """As its source has written it; what is told of it is masked."""
        at_s = seen_s if seen.at is None else min(seen_s, self.offset.to_ours(seen.at.timestamp()))
        severity = seen.severity
        if severity == "DEFAULT" and seen.stream in ("stdout", "stderr"):
            severity = severity_of(seen.text)
        return LogLine(
            t_s=max(0.0, at_s - self.launch.epoch_s),
            task=seen.key.task,
            attempt=seen.key.attempt,
            stream=seen.stream,
            text=seen.text,
            severity=severity,
            reason=seen.reason,
        )

    def _told(self, raw: LogLine) -> LogLine:
        text, reason = self.secrets.redact(raw.text), self.secrets.redact(raw.reason)
        return msgspec.structs.replace(raw, text=text, reason=reason, is_masked=text != raw.text)

    def _note(self, seen: EntrySeen, t_s: float) -> None:
        self._cut += seen.was_cut
        self.has_audit = self.has_audit or seen.stream == "audit"
        if seen.is_played:
            self.played[seen.key] += 1
        elif seen.stream == "system":
            if found := _EXIT.search(seen.text):
                self.ends[seen.key] = ContainerEnd(exit_code=int(found["code"]), t_s=t_s)
            elif found := _SIGNAL.search(seen.text):
                self.ends[seen.key] = ContainerEnd(signal=int(found["number"]), t_s=t_s)

    def _reader(self, key: AttemptKey) -> LogPatternReader:
        if key not in self._readers:
            self._readers[key] = LogPatternReader(self.launch.log_patterns, steps=self.launch.steps)
        return self._readers[key]

    def _keep(self, entries: list[tuple[EntrySeen, dict[str, object]]]) -> None:
        path = self.launch.logs_dir / ENTRIES_NAME
        text = "".join(self._mask.line_of((seen.key, seen.stream), entry) + "\n" for seen, entry in entries)
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise StoreError(path=path, attempted="append to the log entries", reason=error.strerror or str(error)) from error
