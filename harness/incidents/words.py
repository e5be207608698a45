"""What the lines of a job's log say of its training: the words of the guides, unless the job's own are given.

A job that says which step it saves has done that step, and one that says it saves has only begun to: the guide's job prints "Saving
checkpoint" before it writes. So a line of a save that begins is told apart from one of a save that has ended, of which only the last is
a promise.

Source: facts of the guides "Cloud Run jobs with GPUs: survive maintenance" and "TPU training that falls back to DWS flex-start".
"""

from collections.abc import Iterator, Mapping

import msgspec

from harness.history import Done, JobEvent, LogLine, SaveBegun, SaveEnded, Started, StepDone
from harness.protocol.log_patterns import PATTERN_NAMES, LogPatternReader
from harness.scenario import LogPatterns

GUIDES = LogPatterns(
    step=r"^(?:\([^)]{0,120}\) )?(?:\[[^\]]{0,80}\]\s*)?(?:(?:Completed|Finished|Done) )?(?:[Ss]tep|[Ee]poch)[ :=]{1,4}(?P<step>\d+)\b",
    saved=r"\b[Ss]aved (?:a )?checkpoint\b.{0,80}?\bstep[ :=]{1,3}(?P<step>\d+)",
    resumed=r"\b[Rr]esum(?:ing|ed) from (?:checkpointed |checkpoint at )?step (?P<step>\d+)",
    sigterm=r"\b(?:[Rr]eceived|[Cc]aught|[Gg]ot|[Nn]oticed)\b.{0,40}?\bSIGTERM\b|\bSIGTERM (?:was )?(?:received|caught|noticed)\b",
    done=r"^(?:\([^)]{0,120}\) )?(?:Completed (?P<step>\d+) steps|Training [Cc]omplete)",
)
"""Lines of the guides' jobs, and of jobs that follow them closely."""

SAVING = r"\b[Ss]aving (?:a )?checkpoint\b(?:.{0,80}?\bstep[ :=]{1,3}(?P<step>\d+))?"
SCRATCH = r"\b[Ss]tart(?:ing|ed|s)? from scratch\b"
"""A save begins; nothing was restored. A ``harness.toml`` has no patterns for these: the guide's words stay."""


class JobWords(msgspec.Struct, frozen=True, kw_only=True):
    """How a job's log is read.

    Attributes:
        patterns: By name, as in ``[workload.logs]``.
        steps: The final step; 0 when it is not known.
        are_own: Whether somebody gave the job's own patterns.
    """

    patterns: LogPatterns = GUIDES
    steps: int = 0
    are_own: bool = False

    @property
    def has_own_done(self) -> bool:
        """Whether somebody gave the job's own word for its end."""
        return self.are_own and self.patterns.done != GUIDES.done


def words_of(logs: LogPatterns, *, steps: int) -> JobWords:
    """The job's own patterns, and where it has none the guides'; a job without any is read by the guides' alone."""
    own: Mapping[str, str] = {name: getattr(logs, name) for name in PATTERN_NAMES if getattr(logs, name)}
    return JobWords(patterns=msgspec.structs.replace(GUIDES, **own), steps=steps, are_own=bool(own))


class WordReader:
    """Reads the lines of one attempt in the order of time."""

    def __init__(self, words: JobWords) -> None:
        self._reader = LogPatternReader(msgspec.structs.asdict(words.patterns), steps=words.steps)
        self._done = 0

    def read(self, line: LogLine) -> Iterator[JobEvent]:
        """The events that a line stands for; usually none."""
        found = self._reader.read(line)
        if not any(isinstance(event, SaveEnded) for event in found):
            found = [*found, *self._saving(line)]
        if line.search(SCRATCH) is not None and not any(isinstance(event, Started) for event in found):
            found = [*found, Started(t_s=line.t_s, task=line.task, attempt=line.attempt, restored_step=0)]
        for event in found:
            yield from self._implied(event)
            yield event

    def _saving(self, line: LogLine) -> list[JobEvent]:
        match = line.search(SAVING)
        if match is None:
            return []
        text = match["step"]
        step = self._done if text is None else int(text) if len(text) <= len(str(1 << 53)) - 1 else -1
        return [] if step < 1 else [SaveBegun(t_s=line.t_s, task=line.task, attempt=line.attempt, step=step)]

    def _implied(self, event: JobEvent) -> Iterator[JobEvent]:
        """The step that a save, or the end, says was done, where no line of its own has said so."""
        if isinstance(event, Started):
            self._done = max(self._done, event.restored_step)
        if not isinstance(event, StepDone | SaveBegun | SaveEnded | Done) or event.step <= self._done:
            return
        self._done = event.step
        if not isinstance(event, StepDone):
            yield StepDone(t_s=event.t_s, task=event.task, attempt=event.attempt, step=event.step)
