"""What the services share."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.clock import Clock
from harness.emulator.calls import CallJournal
from harness.emulator.injection import Injections
from harness.emulator.operations import Operations
from harness.emulator.project import Callers, Projects

LogEntryDict = Mapping[str, object]
"""A ``LogEntry`` in its JSON shape, as ``harness.cloud_run.log_entries`` writes it."""


class LogStore(Protocol):
    """Keeps log entries."""

    def append(self, entries: Iterable[LogEntryDict]) -> None:
        """Take entries; each names its log, and by it its project."""
        ...


class BucketStore(Protocol):
    """Keeps buckets as directories: an object is the file whose path below it is the object's name."""

    def mount(self, bucket: str, below: str = "") -> Path:
        """Where a job finds a bucket, or what lies below a prefix of it; the directory is made, and is no object.

        Raises:
            ApiError: NOT_FOUND when there is no such bucket, INVALID_ARGUMENT for a prefix that is none.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the services share.

    Attributes:
        clock: Moves operations, timeouts and graces.
        root: Where buckets, runs and logs live.
        projects: The projects that there are.
        log: Where entries go.
        buckets: Where objects are.
        operations: The long ones.
        calls: All calls so far.
        injections: Faults of the services in force.
        callers: Whose tokens have expired.
        closing: Set when the emulator closes: whoever waits goes on.
    """

    clock: Clock
    root: Path
    projects: Projects
    log: LogStore
    buckets: BucketStore
    operations: Operations
    calls: CallJournal = field(default_factory=CallJournal)
    injections: Injections = field(default_factory=Injections)
    callers: Callers = field(default_factory=Callers)
    closing: threading.Event = field(default_factory=threading.Event)
