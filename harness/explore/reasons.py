"""What a wrong recovery is to be blamed on, and the same mistake told once: what was judged in full answers for what was judged in part."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.explore.journal import ACKNOWLEDGEMENTS
from harness.explore.ranks import NAMING
from harness.explore.result import Rule
from harness.explore.sequences import Sight

How = Literal["", "the job says ", "the next "]


@dataclass(frozen=True, slots=True)
class Blame:
    """What must hold, and between which operations.

    Attributes:
        first, second: Their names; ``second`` is empty where the first alone is the matter, and a guess, or empty, where it is not known.
        marker: What the job had said before the first.
        is_open: Whether the second is not known, because moments between were not judged.
        gaps: Moments beside it that were not judged.
        candidates: Where moments between were not judged: the second may be any of these, which are in order.
        how: The second is a word of the job, or comes after the save of the first was acknowledged, or where the next one begins.
    """

    rule: Rule
    first: str = ""
    second: str = ""
    marker: str = ""
    is_open: bool = False
    gaps: int = 0
    candidates: tuple[str, ...] = ()
    how: How = ""

    @property
    def is_sure(self) -> bool:
        """Whether all was judged that tells where it begins and ends."""
        return not self.is_open and not self.gaps


@dataclass(frozen=True, slots=True)
class Blamed:
    """A wrong state at one of its moments, and what it is blamed on."""

    sight: Sight
    blame: Blame


RECOVERY = Blame("survives")


def settle(found: Iterable[Blamed]) -> list[Blamed]:
    """Blame what was judged in part on what was judged in full, where that can be the same; else guess alike of what is alike."""
    every = list(found)
    blames = list(dict.fromkeys(each.blame for each in every))
    known = sorted((each for each in blames if not each.is_open and each.second), key=lambda each: not each.is_sure)
    answers = {blame: _answer(blame, known) for blame in blames if not blame.is_sure}
    guesses = _guesses([blame for blame, answer in answers.items() if answer is blame])
    return [Blamed(each.sight, _guessed(answers.get(each.blame, each.blame), guesses)) for each in every]


def _answer(unsure: Blame, known: Sequence[Blame]) -> Blame:
    """What it is the same as; itself where nothing is."""
    alike = [each for each in known if each.rule == unsure.rule and (each.is_sure or unsure.is_open)]
    if unsure.candidates:
        named = {each.second: each for each in reversed(alike) if each.first == unsure.first}
        return next((named[name] for name in unsure.candidates if name in named), unsure)
    if unsure.rule != "atomic" or not (unsure.second or unsure.is_open):
        return unsure
    return next((each for each in alike if each.first == unsure.first or each.second == unsure.second), unsure)


def _guesses(unsure: Sequence[Blame]) -> dict[tuple[Rule, str], str]:
    """By rule and first: what gives or takes a name, or acknowledges, and can be the second of most of them; of as many the earliest."""
    told: dict[tuple[Rule, str], Counter[str]] = defaultdict(Counter)
    for blame in sorted((each for each in unsure if each.is_open), key=lambda each: len(each.candidates)):
        told[blame.rule, blame.first].update(dict.fromkeys(filter(is_telling, blame.candidates), 1))
    return {key: names.most_common(1)[0][0] for key, names in told.items() if names}


def is_telling(name: str) -> bool:
    """Whether it acknowledges, or other things are found after it than before: what is missing is mostly missed there."""
    return name in ACKNOWLEDGEMENTS or name.partition(" ")[0] in NAMING


def _guessed(blame: Blame, guesses: dict[tuple[Rule, str], str]) -> Blame:
    if not (blame.is_open and blame.candidates):
        return blame
    second = guesses.get((blame.rule, blame.first), "")
    return replace(blame, second=second, how="the job says " if second in ACKNOWLEDGEMENTS else "")
