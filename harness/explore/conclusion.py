"""What an exploration comes to. Pure.

*Valid* needs that every most telling state of every surface was judged and keeps every promise, those of crashes in each recovery that was
begun among them; what a budget has cut behind them is told, and is no proof of anything. Where one of them was not judged, or could not be
decided, or a recording was not the whole truth, it is *unknown*.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.explore.comparison import advice_on
from harness.explore.result import Recorded, Surface
from harness.report.wording import count
from harness.verdict import Outcome

INTERRUPTED = "it was interrupted"

MORE = "; grant more with --budget"
"""What helps where nobody stopped it."""

REASONS_MAX = 5
"""Different ones of a kind."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What was not judged although it tells most.

    Attributes:
        states: How many states.
        is_counted: Whether there are no more than these; False: time was over before all were found.
        recoveries: Why crashes in some recoveries could not be looked at, a sentence each.
    """

    states: int = 0
    is_counted: bool = True
    recoveries: tuple[str, ...] = ()


NOTHING = Missing()


def conclude(
    recorded: Recorded, surfaces: Sequence[Surface], *, missing: Missing = NOTHING, is_interrupted: bool = False
) -> tuple[Outcome, tuple[str, ...]]:
    """The outcome, and why.

    Args:
        recorded: The recording.
        surfaces: What was judged.
        missing: What was not judged of what tells most.
        is_interrupted: Whether somebody stopped it.
    """
    doubts = (*(INTERRUPTED,) * is_interrupted, *_doubts(recorded, surfaces, missing=missing, advice="" if is_interrupted else MORE))
    broken = tuple(_broken(surfaces))
    if broken:
        return Outcome.INVALID, broken
    if doubts:
        return Outcome.UNKNOWN, doubts
    return Outcome.VALID, ()


def _broken(surfaces: Sequence[Surface]) -> Iterator[str]:
    """What must hold, the worst first, else what was said."""
    says = [each.says for surface in surfaces for each in surface.vulnerabilities]
    yield from list(dict.fromkeys(says))[:REASONS_MAX]
    if not says:
        wrong = [state for surface in surfaces for state in surface.states if state.outcome is Outcome.INVALID]
        broken = [each.says for state in wrong for each in state.broken if each.outcome is Outcome.INVALID]
        yield from list(dict.fromkeys(broken))[:REASONS_MAX]


def _doubts(recorded: Recorded, surfaces: Sequence[Surface], *, missing: Missing, advice: str) -> Iterator[str]:
    """Why nothing is proved."""
    if not recorded.is_exact:
        yield f"operations were not seen, so no crash state is known: {recorded.why_not}"
    yield from recorded.blind
    if missing.states:
        were = "was" if missing.states == 1 else "were"
        yield f"{missing.states:,} of the most telling states {were} not judged{advice}"
    if not missing.is_counted:
        yield f"it ended before all of the most telling states were found{advice}"
    yield from missing.recoveries[:REASONS_MAX]
    yield from why_undecided(recorded, surfaces)
    if not any(state.outcome for surface in surfaces for state in surface.states) and not (recorded.blind or not recorded.is_exact):
        yield "no state was judged"


def why_undecided(recorded: Recorded, surfaces: Sequence[Surface]) -> Iterator[str]:
    """Why nothing can be said of states, the most frequent reason first; that the job does not repeat itself is told once."""
    unknown = [state for surface in surfaces for state in surface.states if state.outcome is Outcome.UNKNOWN]
    if recorded.differs:
        without = [state for state in unknown if any(recorded.differs in broken.says for broken in state.broken)]
        where = f", so {count(len(without), 'state')} cannot be decided" if without else ""
        yield f"{recorded.differs}{where}{advice_on(recorded.differs)}"
    said = Counter(broken.says for state in unknown for broken in state.broken if broken.outcome is Outcome.UNKNOWN)
    others = {reason: states for reason, states in said.items() if not recorded.differs or recorded.differs not in reason}
    for reason, states in Counter(others).most_common(REASONS_MAX):
        yield f"in {count(states, 'state')}: {reason}"
