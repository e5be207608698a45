"""What one recovery said and left, as a ``Recovery``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.explore.judgement import Recovery, SaveSeen
from harness.explore.judging.ended import Ended
from harness.history import Done, JobEvent, LogLine, RestoreBegun, Restored, SaveEnded, Started, StepDone
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.event_file import EventFile
from harness.protocol.job_lines import JobLineReader
from harness.protocol.log_patterns import LogPatternReader

WORK = StepDone | SaveEnded | Done
"""What a job says when it has restored what it goes on from."""

EVENTS_MAX = 200_000
"""Kept of a silent job's log, as many as of a file of events."""

READ_AT_ONCE_BYTES = 64 << 20
"""All that is ever read of a file of events: the job has ended, so nobody waits."""

DETAIL_LENGTH_MAX = 4000
"""Characters of its output that are kept where it failed: the last ones say why."""


class PatternListener:
    """Collects the events that a silent job's output stands for.

    Two pipes do not tell in which order both were written, so what is said on the one to be restored comes before what is done on the
    other: each recovery restores first.

    Attributes:
        events: In their order.
        lost: How many were over the limit.

    Raises:
        UnknownNameError: When a pattern has a name that stands for no event.
    """

    def __init__(self, patterns: Mapping[str, str]) -> None:
        self.events: list[JobEvent] = []
        self.lost = 0
        self._reader = LogPatternReader(patterns, steps=0)
        self._restores = 0
        self._at_work: set[str] = set()

    def hear(self, line: LogLine) -> None:
        """Take a line."""
        for event in self._reader.read(line):
            if len(self.events) >= EVENTS_MAX:
                self.lost += 1
            elif isinstance(event, Restored | Started) and line.stream not in self._at_work:
                self.events.insert(self._restores, event)
                self._restores += 1
            else:
                self.events.append(event)
            if isinstance(event, WORK):
                self._at_work.add(line.stream)


def read_events(path: Path, *, attempt: int, now_s: float) -> tuple[list[JobEvent], str]:
    """The events of a job that has ended, and what of them could not be read, in words; empty: all was.

    Raises:
        StoreError: When the file cannot be opened.
    """
    file = EventFile(path, reader=JobLineReader(AttemptKey(0, attempt), 0.0))
    events: list[JobEvent] = []
    while True:
        events += file.read(now_s, READ_AT_ONCE_BYTES)
        if file.is_caught_up:
            break
    return events, "; ".join(lost.detail for lost in file.finish(now_s))


def observe(ended: Ended, events: Sequence[JobEvent], *, unheard: str = "") -> Recovery:
    """What a recovery did, but for what it left on storage: rank 0 speaks for all, a save is of whoever wrote it.

    The step that was restored is that of the last ``restore``, or line of its output that stands for one, before it did or saved anything:
    who falls back to an older checkpoint has said the newer one first. Where there is none, it is what the last ``start`` until then says.
    """
    first_rank = [event for event in events if event.rank == 0]
    before = first_rank[: next((index for index, event in enumerate(first_rank) if isinstance(event, WORK)), len(first_rank))]
    chosen = next((event.step for event in reversed(before) if isinstance(event, RestoreBegun)), -1)
    loaded = next((event for event in reversed(before) if isinstance(event, Restored)), None)
    started = next((event.restored_step for event in reversed(before) if isinstance(event, Started)), -1)
    steps = [event for event in first_rank if isinstance(event, StepDone)]
    done = next((event for event in reversed(first_rank) if isinstance(event, Done)), None)
    return Recovery(
        exit_code=ended.exit_code,
        signal=ended.signal,
        timed_out=ended.timed_out,
        slept=ended.slept,
        seconds=ended.seconds,
        detail="" if ended.is_good else ended.said[-DETAIL_LENGTH_MAX:],
        chosen_step=chosen,
        restored_step=started if loaded is None else loaded.step,
        restored_digests={} if loaded is None else loaded.digests,
        final_step=steps[-1].step if steps else -1 if done is None else done.step,
        digests={event.step: event.digests for event in steps},
        saves=tuple(SaveSeen(step=event.step, digests=event.digests) for event in events if isinstance(event, SaveEnded)),
        done=done is not None,
        unheard=unheard,
    )
