"""What a broken promise means for who owns the job, in words and by how bad it is."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from harness.explore.result import StateResult
from harness.explore.sequences import broken_by
from harness.verdict import counted


@dataclass(frozen=True, slots=True)
class Consequence:
    """What recovery does when it breaks a promise.

    Attributes:
        rank: 0: acknowledged work is lost; 1: another state is restored; 2: there is no recovery; 3: work is repeated.
        many: Of several states, like ``lose acknowledged work``.
        one: Of one state.
    """

    rank: int
    many: str
    one: str


CONSEQUENCES: Mapping[str, Consequence] = {
    "keeps-what-was-acknowledged": Consequence(0, "lose acknowledged work", "loses acknowledged work"),
    "keeps-the-last-good-checkpoint": Consequence(0, "then delete the last good checkpoint", "then deletes the last good checkpoint"),
    "restores-what-was-saved": Consequence(1, "restore another state than was saved", "restores another state than was saved"),
    "completes-as-uninterrupted": Consequence(1, "end with another result", "ends with another result"),
    "recovers-twice-alike": Consequence(1, "recover differently a second time", "recovers differently a second time"),
    "recovers": Consequence(2, "cannot recover", "cannot recover"),
    "survives-a-crash-in-recovery": Consequence(2, "do not survive a crash in recovery", "does not survive a crash in recovery"),
    "saves-at-its-cadence": Consequence(3, "do not save at their cadence afterwards", "does not save at its cadence afterwards"),
}
"""By promise (``judgement.Broken``)."""


def consequence_of(promise: str) -> Consequence:
    """What it means that a promise is broken; of one that nobody described, its name."""
    return CONSEQUENCES.get(promise) or Consequence(3, f"break {promise}", f"breaks {promise}")


def severity(promises: Iterable[str]) -> int:
    """The rank of the worst of some promises."""
    return min((consequence_of(promise).rank for promise in promises), default=len(CONSEQUENCES))


def by_severity(promises: Iterable[str]) -> tuple[str, ...]:
    """Promises, the worst first."""
    order = list(CONSEQUENCES)
    return tuple(sorted(promises, key=lambda name: (consequence_of(name).rank, order.index(name) if name in order else len(order), name)))


def consequences_of(promises: Iterable[str], states: Collection[StateResult]) -> str:
    """What some states lead to, what most of them do first: ``36 states cannot recover, 18 then delete the last good checkpoint``."""
    broken = Counter(promise for state in states for promise in broken_by(state))
    found = [(broken[promise], consequence_of(promise)) for promise in by_severity(promises) if broken[promise]]
    found.sort(key=lambda each: -each[0])  # of as many the worst stays first
    told = counted(len(states), "state")
    if not found:
        return told
    if len(states) == 1:
        return f"{told} {', '.join(words.one for _, words in found)}"
    parts = [f"{number:,} {words.one if number == 1 else words.many}" for number, words in found]
    number, words = found[0]
    return ", ".join([f"{told} {words.many}", *parts[1:]]) if number == len(states) else f"{told}: {', '.join(parts)}"
