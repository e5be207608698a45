"""What can be said of one promise, and the names of all of them."""

from typing import Final, Literal

from harness.explore.judgement import Broken
from harness.explore.judging.case import Case
from harness.verdict import Outcome

KEPT: Final = "kept"

Ruling = Broken | Literal["kept"] | None
"""What is said of one promise."""

RECOVERS = "recovers"
RESTORES = "restores-what-was-saved"
KEEPS = "keeps-what-was-acknowledged"
COMPLETES = "completes-as-uninterrupted"
SAVES = "saves-at-its-cadence"
KEEPS_GOOD = "keeps-the-last-good-checkpoint"
TWICE = "recovers-twice-alike"
CRASH_IN_RECOVERY = "survives-a-crash-in-recovery"


def broken(promise: str, says: str) -> Broken:
    """It was not kept."""
    return Broken(promise=promise, says=says)


def unknown(promise: str, says: str) -> Broken:
    """Nobody knows whether it was kept."""
    return Broken(promise=promise, says=says, outcome=Outcome.UNKNOWN)


def doubtful(case: Case, promise: str, says: str) -> Broken:
    """Broken, where all that it said was heard: what is missing may be among what was not."""
    if case.first.unheard:
        return unknown(promise, f"{says}; but not all that it said could be read: {case.first.unheard}")
    return broken(promise, says)
