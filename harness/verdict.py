"""Three outcomes, and the worst outranks: invalid > unknown > valid."""

import enum
from collections.abc import Iterable

import msgspec


class Outcome(enum.StrEnum):
    """What a checker may say. Unknown is never a pass: it means that nothing was proved."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"


_RANK = {Outcome.VALID: 0, Outcome.UNKNOWN: 1, Outcome.INVALID: 2}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One checker's judgement of one expectation.

    Attributes:
        checker: Name of the checker, kebab-case.
        outcome: What it says.
        reason: One sentence with the values that decided it.
        evidence: Lines a reader can verify in the history, most telling first.
        measures: Figures by name, units last in the name (``lost_steps``, ``margin_s``).
    """

    checker: str
    outcome: Outcome
    reason: str
    evidence: tuple[str, ...] = ()
    measures: dict[str, float] = {}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of a run: the worst of its findings."""

    outcome: Outcome
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        """Short: an assertion that fails prints it."""
        return f"Verdict({self.outcome}, {len(self.findings)} findings)"

    @property
    def is_valid(self) -> bool:
        """Whether every expectation was checked and kept."""
        return self.outcome is Outcome.VALID

    def worst(self) -> tuple[Finding, ...]:
        """The findings that decided the outcome."""
        return tuple(finding for finding in self.findings if finding.outcome is self.outcome)

    def measure(self, name: str) -> float | None:
        """A figure by name, from the first checker that measured it."""
        return next((finding.measures[name] for finding in self.findings if name in finding.measures), None)


def merge(findings: Iterable[Finding]) -> Verdict:
    """Judge a run by its findings; without any it is unknown, for nothing was checked."""
    found = tuple(findings)
    if not found:
        nothing = Finding(checker="none", outcome=Outcome.UNKNOWN, reason="the scenario expects nothing, so nothing was checked")
        return Verdict(outcome=Outcome.UNKNOWN, findings=(nothing,))
    return Verdict(outcome=max((finding.outcome for finding in found), key=_RANK.__getitem__), findings=found)


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, for the words of findings and all that is told of them: ``1 step``, ``1,200 steps``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
