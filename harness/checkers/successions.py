"""From one life of the job to the next: who went on from which step, after whom, and what storage had offered."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from signal import SIGKILL

from harness.checkers.evidence import Evidence
from harness.checkers.storage import Offer, offer_to
from harness.checkers.strides import stride_of
from harness.history import LogLine
from harness.lineage import Incarnation


@dataclass(frozen=True, slots=True)
class Succession:
    """A life after the first of its task.

    Attributes:
        life: Which went on.
        before: The last one before it that trained; None when none did.
        offer: What storage offered it.
        low, high: The steps from which it can have gone on: one where it said so, a range where a silent job logs only some of its steps.
        known_steps: Steps that the uninterrupted run of a silent job logged; empty where every step must be seen.
    """

    life: Incarnation
    before: Incarnation | None
    offer: Offer
    low: int
    high: int
    known_steps: Sequence[int]

    @property
    def who(self) -> str:
        """The life in words."""
        return name_of_life(self.life)

    @property
    def step(self) -> int:
        """The step it went on from; of a range the one that is right, if it holds that."""
        required = self.offer.required_step
        return self.high if required is None else min(max(required, self.low), self.high)

    @property
    def executed_before(self) -> int:
        """The highest step that its predecessor had executed when it began."""
        return self.before.last_step(before_s=self.life.began_s) if self.before is not None else 0


def name_of_life(life: Incarnation) -> str:
    """The task where there may be several, the attempt, and the life where an attempt may hold several."""
    task = f"task {life.task} " if life.task else ""
    again = f" (life {life.number})" if life.number != life.attempt else ""
    return f"{task}attempt {life.attempt}{again}"


def successions(task: int, evidence: Evidence) -> Iterator[Succession]:
    """Each life of a task that trained after another one had been there."""
    known = _known_steps(task, evidence)
    before: Incarnation | None = None
    for life in evidence.lineage.incarnations_of(task):
        if life.restored_step is None:
            continue
        if life.number > 0:
            low, high = _range(life, known, evidence)
            yield Succession(life, before, offer_to(life, evidence), low, high, known)
        before = life


def had_its_grace(life: Incarnation, evidence: Evidence) -> bool:
    """Whether SIGTERM came while it lived, and nothing but itself ended it."""
    attempt = next(each for each in evidence.lineage.attempts_of(life.task) if each.number == life.attempt)
    sent, end = attempt.sigterm(), life.exit
    return sent is not None and end is not None and end.cause != "grace" and end.signal != SIGKILL and sent.t_s >= life.began_s


def is_guessed(resume: Succession, evidence: Evidence) -> bool:
    """Whether what a life went on from is taken from its first step or its silence, and its word of it may be among those that are lost."""
    return resume.life.started is None and bool(evidence.lost_words())


def _known_steps(task: int, evidence: Evidence) -> Sequence[int]:
    workload = evidence.scenario.workload
    if workload.speaks_protocol or evidence.golden is None or shows_some_steps(evidence):
        return ()
    return sorted({step.step for life in evidence.golden.incarnations_of(task) for step in life.steps})


def shows_some_steps(evidence: Evidence) -> bool:
    """Whether steps are read from a progress bar: it shows them by time, so that one it does not show was not skipped."""
    pattern = evidence.scenario.workload.outside.logs.step
    lines = (event for event in evidence.events if isinstance(event, LogLine) and event.is_redrawn)
    return bool(pattern) and any(re.search(pattern, line.text) for line in lines)


def _range(life: Incarnation, known: Sequence[int], evidence: Evidence) -> tuple[int, int]:
    workload = evidence.scenario.workload
    high = life.restored_step or 0
    if life.started is not None or workload.speaks_protocol:
        return high, high
    index = bisect_right(known, high)
    is_any = bool(known) or shows_some_steps(evidence)
    unsaid = 0 if is_any else max(stride_of(life.task, evidence).every - 1, 0)
    low = known[index - 1] if index else (0 if is_any else max(high - unsaid, 0))
    if low == 0 and workload.outside.logs.resumed:
        return 0, 0  # it would have said that it resumed
    return low, high
