"""A diagnosis: what went wrong or was survived, by which entries, how sure that is, and what to do about it."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from harness.incidents.entries import Entry
from harness.verdict import Outcome

DiagnosisKind = Literal[
    "healthy",
    "unknown",
    "preempted",
    "terminated",
    "killed-without-notice",
    "no-save-after-sigterm",
    "save-did-not-fit-the-grace",
    "restarted-from-scratch",
    "resumed-from-an-older-checkpoint",
    "resumed-from-an-unsaved-step",
    "skipped-steps",
    "never-resumed",
    "retries-exhausted",
    "timed-out",
    "out-of-memory",
    "failed-by-itself",
    "left-unfinished",
    "cancelled",
    "waited-for-quota",
    "fell-back-to-dws",
    "stockout",
    "evicted",
    "preempted-in-the-queue",
    "node-maintenance",
    "host-error",
    "node-preempted",
    "capacity-revoked",
]
"""What can be said of an incident. ``preempted``: the platform took the instance of a Cloud Run task; ``preempted-in-the-queue``: Kueue
gave the quota to a job of higher priority; ``node-preempted``: the machine of a Spot node was taken."""

Certainty = Literal["seen", "inferred", "assumed"]
"""``seen``: an entry says so. ``inferred``: it follows from the order of entries, or from one that is missing. ``assumed``: it rests on an
entry whose shape nobody has confirmed on the platform."""

EVIDENCE_MAX = 6
"""Entries that are shown for one diagnosis, the most telling first."""

TEXT_CHARACTERS_MAX = 300


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a diagnosis rests on.

    Attributes:
        insert_id: Its id; empty where the export has none.
        at: Its timestamp.
        log: The id of its log.
        text: What it says.
    """

    insert_id: str
    at: str
    log: str
    text: str

    def __str__(self) -> str:
        """One line of a terminal or of a verdict."""
        return f"{self.at} {self.insert_id or 'no insertId'} {self.log}: {self.text}"


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the entries show.

    Attributes:
        kind: What it is.
        outcome: ``invalid``: something went wrong. ``valid``: it was survived, or all is well. ``unknown``: the entries do not tell.
        certainty: How sure it is.
        says: One sentence with the figures that decide it.
        advice: What to do.
        evidence: The entries.
        task, attempt: Whose; None where it is of the whole.
    """

    kind: DiagnosisKind
    outcome: Outcome
    certainty: Certainty
    says: str
    advice: str
    evidence: tuple[Evidence, ...] = ()
    task: int | None = None
    attempt: int | None = None


def evidence_of(*entries: Entry | None) -> tuple[Evidence, ...]:
    """The entries that a diagnosis rests on, those that there are, each once."""
    found = dict.fromkeys(
        Evidence(insert_id=entry.insert_id, at=entry.at, log=entry.log, text=_shortened(entry.text))
        for entry in entries
        if entry is not None
    )
    return tuple(found)[:EVIDENCE_MAX]


def _shortened(text: str) -> str:
    line = " ".join(text[: 4 * TEXT_CHARACTERS_MAX].split())
    return line if len(line) <= TEXT_CHARACTERS_MAX else f"{line[: TEXT_CHARACTERS_MAX - 1]}…"


def outcome_of(diagnoses: Iterable[Diagnosis]) -> Outcome:
    """The worst outranks: something wrong, then what is not known. Nothing seen is unknown."""
    outcomes = {diagnosis.outcome for diagnosis in diagnoses}
    return next((outcome for outcome in (Outcome.INVALID, Outcome.UNKNOWN, Outcome.VALID) if outcome in outcomes), Outcome.UNKNOWN)
