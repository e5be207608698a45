"""Whether a result can be held against what was accepted: what cannot is unknown until it is accepted anew, or is said."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from harness.gate.document import TARGET_PLACE
from harness.gate.result import Accepted, AcceptedScenario, Measured, MeasuredScenario
from harness.verdict import counted

ANEW: Final = "see that it is meant, and accept it anew: harness gate --accept"
"""Said where what is accepted is a measure no longer: only a person can say that this is meant."""


def no_match(measured: MeasuredScenario, accepted: AcceptedScenario) -> Iterator[str]:
    """Why a scenario cannot be held against what was accepted of it."""
    if accepted.digest != measured.digest:
        yield f"not compared: the scenario was another one when its result was accepted; {ANEW}"
    elif len(measured.seeds) < len(accepted.seeds):
        runs = f"the worst of {counted(len(accepted.seeds), 'run')} was accepted, and {len(measured.seeds)} would be held against it"
        yield f"{runs}: run as many (repeats in [gate]), or {ANEW}"


def unmatched(measured: Measured, accepted: Accepted) -> Iterator[str]:
    """What was accepted and is held against nothing."""
    if accepted.target != measured.target:
        targets = f"the accepted result is of target {quoted(accepted.target)}, and this one of {quoted(measured.target)}"
        yield f'not compared: {targets}; give each its own: accepted = "accepted-{TARGET_PLACE}.json" in [gate], then harness gate --accept'
        return
    names = {scenario.name for scenario in measured.scenarios}
    gone = [name for name in accepted.scenarios if name not in names]
    if gone:
        yield f"accepted and not run now: {listed(gone)}; {ANEW}"


def differences(measured: Measured, accepted: Accepted) -> Iterator[str]:
    """What is otherwise than when it was accepted, and compared all the same; and what is new."""
    new = [scenario.name for scenario in measured.scenarios if scenario.name not in accepted.scenarios]
    if new:
        yield f"not compared, nothing of them is accepted yet: {listed(new)}"
    if not any(scenario.runs for scenario in measured.scenarios):
        return
    for what, then, now in (
        ("versions", accepted.versions, measured.versions),
        ("surroundings", accepted.surroundings, measured.surroundings),
    ):
        others = [
            f"{name} {then.get(name, 'none')} then, {now.get(name, 'none')} now"
            for name in sorted({*then, *now})
            if then.get(name) != now.get(name)
        ]
        if others:
            yield f"other {what} than when it was accepted: {listed(others)}"
    reseeded = [
        each.name
        for each in measured.scenarios
        if (before := accepted.scenarios.get(each.name)) is not None and Counter(before.seeds) - Counter(each.seeds)
    ]
    if reseeded:
        yield f"other seeds than when it was accepted: {listed(reseeded)}"


NAMES_MAX: Final = 5
"""In one note: enough to know which kind it is; the table has them all."""


def quoted(name: str) -> str:
    """What others have written, marked as such in a sentence of ours: in Markdown it is code then, and no link."""
    return f"`{name.replace('`', chr(39))}`"


def listed(names: Sequence[str]) -> str:
    """The first few names of many."""
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(quoted(name) for name in names[:NAMES_MAX]) + more
