"""What is said of one crash state: each promise is held against what was tried. Pure.

A promise that could not be checked proves nothing, and a recovery of which no content was compared with anything that was known beforehand
is *unknown*, however well it ended.
"""

from collections.abc import Collection

from harness.explore.judgement import Broken, Judgement, Recovery
from harness.explore.judging.case import Case
from harness.explore.judging.expected import Expected
from harness.explore.judging.promises import CHECKS
from harness.explore.judging.rulings import COMPLETES, CRASH_IN_RECOVERY, KEEPS, KEPT, RECOVERS
from harness.explore.judging.standing import steps_standing
from harness.explore.recipe import Piece, Tried
from harness.verdict import Outcome

NOTHING_COMPARED = (
    "it left with 0, and neither its result nor any digests could be compared with anything; name its result, as with --result FILE"
)


def judge(tried: Tried, expected: Expected, *, at: int, pieces: Collection[Piece] = ()) -> Judgement:
    """Hold what was tried against what is expected after a crash at entry ``at`` of the log (``CrashState.at``).

    ``pieces`` are those of the state: they tell which checkpoints need not be saved again.

    The same tree may be what several crashes leave: it is tried once, and judged for each of them.
    """
    if tried.first is None:
        lost = Broken(promise="recovers", says=f"nothing is known of it: {tried.lost or 'it was not tried'}", outcome=Outcome.UNKNOWN)
        return Judgement(state=tried.state, recovery=Recovery(), broken=(lost,))
    case = Case(expected, at, tried.first, tried.second, steps_standing(expected.made, pieces))
    rulings = {promise: check(case) for promise, check in CHECKS.items()}
    broken = [ruling for ruling in rulings.values() if isinstance(ruling, Broken)]
    checked = [name for name, ruling in rulings.items() if ruling == KEPT or (isinstance(ruling, Broken) and _is_invalid(ruling))]
    if expected.is_of_recovery:
        broken, checked = _as_crash_in_recovery(broken, checked)
    is_told = bool(expected.golden_differs and broken)
    if case.ended_well and not any(map(_is_invalid, broken)) and not case.compared_content() and not is_told:
        broken.append(Broken(promise=COMPLETES, says=NOTHING_COMPARED, outcome=Outcome.UNKNOWN))
    return Judgement(state=tried.state, recovery=tried.first, broken=tuple(broken), checked=tuple(checked))


def _as_crash_in_recovery(broken: list[Broken], checked: list[str]) -> tuple[list[Broken], list[str]]:
    """Of a crash in recovery: that it comes through and loses nothing is one promise."""
    own = (RECOVERS, KEEPS)
    renamed = [Broken(promise=CRASH_IN_RECOVERY, says=each.says, outcome=each.outcome) if each.promise in own else each for each in broken]
    others = [name for name in checked if name not in own]
    return renamed, others if len(others) == len(checked) else [CRASH_IN_RECOVERY, *others]


def _is_invalid(broken: Broken) -> bool:
    return broken.outcome is Outcome.INVALID
