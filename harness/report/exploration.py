"""An exploration of kill points as one page.

What is explored is above this package, so the page has structures of its own: plain words and figures, which ``explore.page`` fills.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report.strip import SAID, Shade
from harness.report.surfaces import SurfacePart, together
from harness.report.templating import render
from harness.report.wording import count

WRONG_MAX = 100
"""Operations of one surface that are listed in words; the strip has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Where a vulnerability was seen, what it leads to there, and what of the storage model that rests on."""

    surface: str
    leads_to: str
    assumed: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of several vulnerabilities on one card: the operation that makes the difference, where it was seen, and how to see it again."""

    operation: str
    seen: Sequence[Seen]
    replay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A vulnerability, or several that ask for the same thing at the same moment.

    Attributes:
        says: What must hold.
        files: Classes of the paths that it is about.
        marker: What the job had said before the first.
        seen: On which surfaces; empty where there are ``parts``.
        example: What the smallest state does.
        replay: A command line.
        parts: The vulnerabilities, where there are several.
    """

    says: str
    files: Sequence[str]
    marker: str
    seen: Sequence[Seen]
    example: str
    replay: str
    parts: Sequence[Part] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was recorded: a sentence, why operations were not seen, what else was not seen, and what a reader should know of it."""

    told: str
    why_not: str = ""
    blind: Sequence[str] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What it took, and where it ended.

    Attributes:
        seconds: Of all.
        judged_seconds: Of trying recovery.
        judge: How recovery was tried.
        budget: What was granted; empty: no end.
    """

    seconds: float
    judged_seconds: float
    judge: str = ""
    budget: str = ""


@dataclass(frozen=True, kw_only=True)
class ExplorationPage:
    """All that the page shows."""

    workload: str
    command: Sequence[str]
    outcome: str
    reasons: Sequence[str]
    recording: Recording
    surfaces: Sequence[SurfacePart]
    cards: Sequence[Card]
    effort: Effort

    def states(self, *shades: Shade) -> int:
        """How many states of all surfaces there are, of some shades or of all."""
        return sum(part.states.get(shade, 0) for part in self.surfaces for shade in shades or tuple(SAID))

    @property
    def rows(self) -> list[SurfacePart]:
        """The surfaces of the job, and below them those of crashes in recoveries, each storage and scope once."""
        relapses: dict[tuple[str, str], list[SurfacePart]] = {}
        for part in self.relapses:
            relapses.setdefault((part.model, part.scope), []).append(part)
        return [*self.own, *map(together, relapses.values())]

    @property
    def own(self) -> list[SurfacePart]:
        """The surfaces of the job itself."""
        return [part for part in self.surfaces if not part.after]

    @property
    def relapses(self) -> list[SurfacePart]:
        """Those of its recoveries."""
        return [part for part in self.surfaces if part.after]

    def outcome_of(self, part: SurfacePart) -> str:
        """What is said of a surface: valid only where everything was seen."""
        is_blind = bool(self.recording.blind or self.recording.why_not)
        return "unknown" if is_blind and part.outcome == "valid" else part.outcome

    @property
    def judged(self) -> int:
        """How many states were judged, whatever came of it."""
        return self.states() - self.states("unjudged")

    @property
    def kill_points(self) -> int:
        """Of all surfaces."""
        return sum(part.kill_points for part in self.surfaces)

    @property
    def vulnerabilities(self) -> int:
        """How many there are on all cards."""
        return sum(max(1, len(card.parts)) for card in self.cards)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.outcome == "invalid":
            wrong = f"Recovery is wrong in {self.states('invalid'):,} of {count(self.judged, 'state')} that were judged"
            others = self.vulnerabilities - max(1, len(self.cards[0].parts)) if self.cards else 0
            more = f", and {count(others, 'other thing')} must hold too" if others else ""
            return f"{wrong}: {self.cards[0].says}{more}." if self.cards else f"{wrong}."
        if self.outcome == "unknown":
            return f"Nothing is proved: {self.reasons[0] if self.reasons else 'not every state could be judged'}."
        if self.states("unjudged"):
            return f"Recovery keeps every promise in the {self.judged:,} of {count(self.states(), 'state')} that were judged."
        return f"Recovery keeps every promise in all {count(self.judged, 'state')} that a crash can leave."


def page_of_exploration(page: ExplorationPage) -> bytes:
    """The page of an exploration."""
    return render("exploration.html.j2", {"page": page, "argv": shlex.join(page.command), "said": SAID, "wrong_max": WRONG_MAX})
