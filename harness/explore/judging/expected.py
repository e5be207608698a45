"""What a recovery owes at each moment of the recording: what the job had announced and acknowledged by then, and what it ends with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from harness.explore.judgement import Recovery
from harness.explore.judging.observation import WORK
from harness.explore.judging.speech import Lines, Stream
from harness.explore.judging.wording import how_it_ended
from harness.explore.operations import AnyEntry, Change, Ended, Printed, Said
from harness.explore.recipe import Piece
from harness.history import JobEvent, LogLine, Restored, SaveBegun, SaveEnded, StepDone
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.job_lines import JobLineReader
from harness.protocol.log_patterns import LogPatternReader

CHANGES = get_args(Change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """The state in memory at one step, as the job told it at entry ``index`` of the log: before the save, or after the step."""

    index: int
    step: int
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is expected of every recovery.

    Attributes:
        golden: The uninterrupted run, observed like a recovery: tried from the empty state.
        golden_differs: Why no difference from the uninterrupted run proves anything: it does not repeat itself, or did not come through.
        golden_again: The run after it, on what it left, where that was tried.
        announced: Digests taken in memory, in the order of the log.
        begun: Pairs of entry and step: saves that were begun. Empty where the job does not say so. What a recording that goes on from
            something must know of before, here as in ``announced``, has the entry 0: it may be whole, and be restored.
        acknowledged: Pairs of entry and step: what the job has promised to be durable; a step that it restored was so already.
        changes: Entries that altered the checkpoint directory, by index.
        made: By step, what its save made (``standing.made_by_saves``); a step whose checkpoint stands need not be saved again.
        kept_before: The newest step that was acknowledged before the recording began, of a recording that goes on from something.
        is_of_recovery: Whether what was recorded is itself a recovery: then a crash state is one of a crash in recovery.
        may_count_from_0: Whether a step was told after the save of that many steps: it may be the one after them.
        is_timeout_given: Whether the caller has said how long a recovery may take; else what did not end may only have waited.
    """

    golden: Recovery
    golden_differs: str = ""
    golden_again: Recovery | None = None
    announced: tuple[Announced, ...] = ()
    begun: tuple[tuple[int, int], ...] = ()
    acknowledged: tuple[tuple[int, int], ...] = ()
    changes: tuple[int, ...] = ()
    made: Mapping[int, frozenset[Piece]] = field(default_factory=dict)
    kept_before: int = 0
    is_of_recovery: bool = False
    may_count_from_0: bool = False
    is_timeout_given: bool = False

    def promised_step(self, at: int) -> int:
        """The newest step that was acknowledged by an entry of the log; 0: none, and starting from scratch is right."""
        return max(self.kept_before, *(step for index, step in self.acknowledged if index <= at), 0)

    def digests_at(self, step: int, at: int) -> Mapping[str, str]:
        """Of the state in memory at a step, as told last; empty: it was never told."""
        end = self.said_until(at)
        found = (told.digests for told in reversed(self.announced) if told.step == step and told.index <= end and told.digests)
        return next(found, {})

    def was_begun(self, step: int, at: int) -> bool | None:
        """Whether a save of a step had been begun, or had been promised; None where the job does not tell."""
        if not self.begun:
            return None
        end, told = self.said_until(at), (*self.begun, *self.acknowledged)
        return step <= self.kept_before or any(index <= end and step == begun for index, begun in told)

    def said_until(self, at: int) -> int:
        """The last entry that was said by a crash at an entry: what stands before the next change, for that one may be half done."""
        return next((index - 1 for index in self.changes if index > at), _END)


_END = 1 << 62
"""Later than all entries."""


def expect(
    entries: Iterable[AnyEntry],
    golden: Recovery,
    *,
    patterns: Mapping[str, str] | None = None,
    golden_again: Recovery | None = None,
    golden_differs: str = "",
    made: Mapping[int, frozenset[Piece]] | None = None,
    kept_before: int = 0,
    is_of_recovery: bool = False,
    is_timeout_given: bool = False,
) -> Expected:
    """Read the log of a recording.

    Args:
        entries: All of it.
        golden: The uninterrupted run.
        patterns: Of a job that does not speak the protocol: what it printed is what it said. None: it speaks it.
        golden_again: As in ``Expected``.
        golden_differs: As in ``Expected``.
        made: As in ``Expected``.
        kept_before: As in ``Expected``.
        is_of_recovery: As in ``Expected``.
        is_timeout_given: As in ``Expected``.
    """
    reader = EntryReader(patterns)
    announced: list[Announced] = []
    begun: list[tuple[int, int]] = []
    acknowledged: list[tuple[int, int]] = []
    changes: list[int] = []
    restored: tuple[int, int] | None = None
    saved, told_late = set[int](), False
    for entry in entries:
        if isinstance(entry, CHANGES):
            changes.append(entry.index)
        for event in reader.events_of(entry):
            if isinstance(event, SaveBegun | StepDone) and event.rank == 0:
                told_late |= isinstance(event, StepDone) and event.step in saved and all(told.step != event.step for told in announced)
                announced.append(Announced(index=entry.index, step=event.step, digests=event.digests))
            if isinstance(event, SaveBegun):
                begun.append((entry.index, event.step))
            elif isinstance(event, SaveEnded):
                acknowledged.append((entry.index, event.step))
                saved.add(event.step)
            if isinstance(event, Restored) and event.rank == 0:
                restored = (entry.index, event.step)  # one that falls back to an older one has said the newer one first
            elif restored is not None and isinstance(event, WORK) and event.rank == 0:
                if not isinstance(event, StepDone) or event.step > restored[1]:  # else it went on from less than it said
                    acknowledged.append(restored)
                restored = None
    acknowledged += [] if restored is None else [restored]
    return Expected(
        golden=golden,
        golden_differs=golden_differs or ("" if golden.exit_code == 0 else how_it_ended(golden)),
        golden_again=golden_again,
        announced=tuple(announced),
        begun=tuple(begun),
        acknowledged=tuple(acknowledged),
        changes=tuple(changes),
        made=made or {},
        kept_before=kept_before,
        is_of_recovery=is_of_recovery,
        may_count_from_0=told_late or 0 in golden.digests,
        is_timeout_given=is_timeout_given,
    )


class EntryReader:
    """Entries of the log, in their order, as events of the job; what is no line of the protocol says nothing.

    Args:
        patterns: Of a job that does not speak the protocol; None: it speaks it.
    """

    def __init__(self, patterns: Mapping[str, str] | None) -> None:
        self._lines = JobLineReader(AttemptKey(0, 0), 0.0)
        self._patterns = None if patterns is None else LogPatternReader(patterns, steps=0)
        self._printed: dict[Stream, Lines] = {"stdout": Lines(), "stderr": Lines()}

    def events_of(self, entry: AnyEntry) -> Sequence[JobEvent]:
        """What an entry says; a line that is printed in pieces is said with its last one, one that was never ended at the job's end."""
        if isinstance(entry, Said) and self._patterns is None:
            try:
                return [self._lines.read_event(entry.line.encode(errors="replace"), entry.t_s)]
            except ValueError:
                return []
        if isinstance(entry, Printed):
            return self._spoken(entry, entry.stream, self._printed[entry.stream].feed(entry.text.encode(errors="replace")))
        if isinstance(entry, Ended):
            return [event for stream, lines in self._printed.items() for event in self._spoken(entry, stream, lines.end())]
        return []

    def _spoken(self, entry: AnyEntry, stream: Stream, lines: Iterable[str]) -> list[JobEvent]:
        if self._patterns is None:
            return []
        spoken = [LogLine(t_s=entry.t_s, task=0, attempt=0, stream=stream, text=text) for text in lines]
        return [event for line in spoken for event in self._patterns.read(line)]
