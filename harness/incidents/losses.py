"""What an incident cost: steps done again, seconds, recovery; from the same ledger as for runs."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from harness.history import Event
from harness.incidents.absences import absent_before
from harness.incidents.timeline import AttemptStory, Timeline
from harness.ledger import CATEGORIES, Ledger, keep
from harness.lineage import trace


class RecoveryTold(msgspec.Struct, frozen=True, kw_only=True):
    """From a death to the first step that had not been done before.

    Attributes:
        attempt: The attempt that died.
        died_s: When, in seconds of the history.
        seconds: How long it took.
        lost_steps: Steps that had to be done again; None where the log does not tell.
        parts: Seconds by what they were spent on.
    """

    attempt: int
    died_s: float
    seconds: float
    lost_steps: int | None
    parts: dict[str, float]


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """What a task lost.

    Attributes:
        task: Which.
        lost_steps: Steps that were done and that the next attempt did not go on from; None where the log does not tell.
        lost_s: Seconds of training that were not kept.
        recovery_s: The longest recovery; None where there was none.
        recoveries: All of them.
        unrecovered: Deaths after which nothing new was done.
        wall_s: From its first entry to its end.
        goodput: The share of that which was training that was kept; None where no step is told.
        seconds: By category of the ledger.
    """

    task: int
    lost_steps: int | None
    lost_s: float
    recovery_s: float | None
    recoveries: tuple[RecoveryTold, ...]
    unrecovered: int
    wall_s: float
    goodput: float | None
    seconds: dict[str, float]


def losses_of(timeline: Timeline, history: Sequence[Event]) -> tuple[Losses, ...]:
    """What each task lost, by the history that was made of its entries."""
    lineage = trace(history)
    ledgers = (keep(lineage, task) for task in timeline.tasks)
    return tuple(_losses(ledger, timeline.tasks[ledger.task]) for ledger in ledgers if ledger is not None)


def _losses(ledger: Ledger, stories: Sequence[AttemptStory]) -> Losses:
    lost = {story.number: _lost_at(story, later) for story, later in pairwise(stories)} | dict.fromkeys(absent_before(stories))
    known = [steps for steps in lost.values() if steps is not None]
    has_steps = any(story.last_step is not None for story in stories)
    recoveries = tuple(
        RecoveryTold(
            attempt=each.attempt,
            died_s=each.fault_s,
            seconds=each.seconds,
            lost_steps=lost.get(each.attempt),
            parts={name: seconds for name, seconds in each.parts.items() if seconds > 0},
        )
        for each in ledger.recoveries
    )
    return Losses(
        task=ledger.task,
        lost_steps=sum(known) if has_steps and len(known) == len(lost) else None,
        lost_s=ledger.total("lost"),
        recovery_s=max((each.seconds for each in recoveries), default=None),
        recoveries=recoveries,
        unrecovered=len(ledger.unrecovered_s),
        wall_s=ledger.wall_s,
        goodput=ledger.goodput if has_steps else None,
        seconds={category: ledger.total(category) for category in CATEGORIES if ledger.total(category) > 0},
    )


def _lost_at(story: AttemptStory, later: AttemptStory) -> int | None:
    """Steps that an attempt did and the next one did not go on from; None where the log does not tell one of the two."""
    if story.last_step is None:
        return 0 if story.resumed is not None else None
    return None if later.resumed is None else max(0, story.last_step - later.resumed[0])
