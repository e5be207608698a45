"""What storage held when the run was over: checkpoints as the survey saw them, and files as the content ledger counts them."""

from dataclasses import dataclass

from harness.checkpoints import ManifestEntry
from harness.history import CheckpointSeen, CheckpointsSeen
from harness.report.record import Record

ROWS_MAX = 40
FILES_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The checkpoints of one task, the newest first."""

    task: int
    t_s: float
    checkpoints: tuple[CheckpointSeen, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The content ledger in short; ``unread`` files have no digest."""

    count: int
    size_bytes: int
    unread: int
    first: tuple[ManifestEntry, ...]


def holdings_of(record: Record) -> tuple[Holding, ...]:
    """The last look at the whole storage of each task."""
    last: dict[int, CheckpointsSeen] = {}
    for event in record.events:
        if isinstance(event, CheckpointsSeen) and event.is_whole:
            last[event.task] = event
    return tuple(_holding(last[task]) for task in sorted(last)[:ROWS_MAX])


def _holding(seen: CheckpointsSeen) -> Holding:
    checkpoints = sorted(seen.checkpoints, key=lambda checkpoint: (-checkpoint.step, checkpoint.path))
    return Holding(task=seen.task, t_s=seen.t_s, checkpoints=tuple(checkpoints[:ROWS_MAX]), left_out=max(0, len(checkpoints) - ROWS_MAX))


def files_of(record: Record) -> Files | None:
    """The content ledger; None when there is none."""
    if record.manifest is None:
        return None
    return Files(
        count=len(record.manifest),
        size_bytes=sum(entry.size_bytes for entry in record.manifest),
        unread=sum(not entry.sha256 for entry in record.manifest),
        first=record.manifest[:FILES_MAX],
    )
