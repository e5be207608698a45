"""Moments of one surface in the order of the log, and the stretches of them at which recovery is wrong."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.explore.result import Moment, StateResult
from harness.verdict import Outcome


@dataclass(frozen=True, slots=True)
class Sight:
    """A state at one of its moments.

    Attributes:
        promises: Those that it breaks, and that are looked at.
    """

    state: StateResult
    moment: Moment
    promises: frozenset[str]

    @property
    def at(self) -> int:
        """Index of the last entry that was executed."""
        return self.moment.at

    @property
    def is_settled(self) -> bool:
        """Whether it was judged, one way or the other."""
        return self.state.outcome in (Outcome.VALID, Outcome.INVALID)

    def without(self, promises: frozenset[str]) -> "Sight":
        """The same, looked at for other promises than these."""
        return Sight(self.state, self.moment, self.promises - promises)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Moments at which recovery is wrong, without one between them at which it is right.

    Attributes:
        sights: The wrong ones.
        end: The next moment at which it is right; None: there was none.
        before: The last moment before at which it was right; None: there was none.
        gaps: Moments in it, or at its ends, that nobody could judge: there it may go further than it seems.
        is_open: Whether it has no end only because the moments after it were not judged.
    """

    sights: tuple[Sight, ...]
    end: Sight | None
    before: Sight | None
    gaps: int
    is_open: bool

    @property
    def is_bounded(self) -> bool:
        """Whether it was right at some moment before, too."""
        return self.before is not None

    @property
    def first(self) -> Sight:
        """Where it begins."""
        return self.sights[0]

    @property
    def promises(self) -> frozenset[str]:
        """All that are broken somewhere in it."""
        return frozenset().union(*(sight.promises for sight in self.sights))

    def holds(self, at: int) -> bool:
        """Whether an index lies in it."""
        return self.first.at <= at and (self.end is None or at < self.end.at)


def sights_of(states: Iterable[StateResult]) -> list[Sight]:
    """Every moment of every state, in the order of the log."""
    found = [Sight(state, moment, broken_by(state)) for state in states for moment in state.moments]
    return sorted(found, key=lambda sight: (sight.at, sight.moment.cause, sight.state.state))


def broken_by(state: StateResult) -> frozenset[str]:
    """The promises that a state breaks; those that could not be decided are none of them."""
    if state.outcome is not Outcome.INVALID:
        return frozenset()
    return frozenset(broken.promise for broken in state.broken if broken.outcome is Outcome.INVALID)


def stretches_of(sequence: Sequence[Sight]) -> Iterator[Stretch]:
    """The stretches of moments of one kind, which are in the order of the log."""
    wrong: list[Sight] = []
    gaps = 0
    before: Sight | None = None
    for sight in sequence:
        if sight.promises:
            wrong.append(sight)
        elif not sight.is_settled:
            gaps += 1
        else:
            if wrong:
                yield Stretch(tuple(wrong), sight, before, gaps, is_open=False)
            wrong, gaps, before = [], 0, sight
    if wrong:
        yield Stretch(tuple(wrong), None, before, gaps, is_open=not sequence[-1].promises)
