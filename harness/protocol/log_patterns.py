"""Events of a job that does not speak the protocol, read from its log by the patterns of ``Launch.log_patterns``.

They come when the line was read, carry no digests, and know of no rank but 0: a job that is silent is judged more coarsely.
"""

import re
from collections.abc import Mapping

from harness.errors import UnknownNameError
from harness.history import Done, JobEvent, LogLine, Restored, SaveEnded, SigtermSeen, Started, StepDone

PATTERN_NAMES = ("step", "saved", "resumed", "sigterm", "done")
"""The fields of ``harness.scenario.workload.LogPatterns``."""


class LogPatternReader:
    """Reads the log of one attempt.

    Raises:
        UnknownNameError: When a pattern has a name that stands for no event.
    """

    def __init__(self, patterns: Mapping[str, str], *, steps: int) -> None:
        for name in patterns:
            if name not in PATTERN_NAMES:
                raise UnknownNameError(kind="log pattern", name=name, known=PATTERN_NAMES)
        self._patterns = [(name, re.compile(pattern)) for name, pattern in patterns.items() if pattern]
        self._steps = steps
        self._step_last = 0

    def read(self, line: LogLine) -> list[JobEvent]:
        """The events that a line stands for; usually none."""
        events: list[JobEvent] = []
        for name, pattern in self._patterns:
            match = line.search(pattern)
            if match is not None:
                events += self._to_events(name, match, line)
        return events

    def _to_events(self, name: str, match: re.Match[str], line: LogLine) -> list[JobEvent]:
        t_s, task, attempt = line.t_s, line.task, line.attempt
        step = _step_of(match)
        if name == "sigterm":
            return [SigtermSeen(t_s=t_s, task=task, attempt=attempt)]
        if name == "done":
            return [Done(t_s=t_s, task=task, attempt=attempt, step=self._steps or self._step_last if step is None else step)]
        if step is None:
            return []
        self._step_last = step
        if name == "step":
            return [StepDone(t_s=t_s, task=task, attempt=attempt, step=step)]
        if name == "saved":
            return [SaveEnded(t_s=t_s, task=task, attempt=attempt, step=step)]
        return [
            Restored(t_s=t_s, task=task, attempt=attempt, step=step),
            Started(t_s=t_s, task=task, attempt=attempt, restored_step=step, steps=self._steps),
        ]


def _step_of(match: re.Match[str]) -> int | None:
    text = match.groupdict().get("step")
    return int(text) if text is not None and text.isdecimal() and len(text) <= 15 else None
