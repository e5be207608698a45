"""An incident as one page: what its log shows, by the same parts as the page of a run.

What is found is above this package, so the page has structures of its own: plain words, which ``incidents.directory`` fills.
"""

import os.path
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from harness.report.accounts import accounts_of, recoveries_of
from harness.report.excerpts import excerpts_of
from harness.report.record import Record
from harness.report.templating import render
from harness.report.text import Whole
from harness.report.timeline import timeline_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRow:
    """A diagnosis: what it is, how sure, by which entries, and what to do."""

    kind: str
    outcome: str
    certainty: str
    says: str
    advice: str
    evidence: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadRow:
    """Entries that nothing was read from, or a part of the export that is no entry."""

    what: str
    count: int
    sample: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentPage:
    """All that the page shows beside the history.

    Attributes:
        name: Of the execution or job.
        platform: Where it ran.
        outcome: ``valid``, ``invalid`` or ``unknown``.
        sentence: What happened, in one sentence.
        diagnoses: The worst first.
        lost_steps, recovery_s, goodput: Of all tasks; None where the log does not tell.
        entries: How many the export held.
        unknown, malformed: What was not read.
        assumed: What is assumed of the platform.
        notes: What the scenario cannot do; empty where there is none.
        command: How to run the scenario; empty where there is none.
        scenario: As JSON.
    """

    name: str
    platform: str
    outcome: str
    sentence: str
    diagnoses: Sequence[DiagnosisRow]
    lost_steps: int | None
    recovery_s: float | None
    goodput: float | None
    entries: int
    unknown: Sequence[UnreadRow]
    malformed: Sequence[UnreadRow]
    assumed: Sequence[str] = ()
    notes: Sequence[str] = ()
    command: str = ""
    scenario: str = ""


def page_of_incident(page: IncidentPage, record: Record) -> bytes:
    """The page of an incident; ``record`` has its history."""
    return render(
        "incident.html.j2",
        {
            "accounts": accounts_of(record),
            "excerpts": excerpts_of(record),
            "index_href": quote(os.path.relpath(record.directory.index_path, record.directory.path)),
            "page": page,
            "record": record,
            "recoveries": recoveries_of(record),
            "scenario_json": Whole(page.scenario),
            "timeline": timeline_of(record),
        },
    )
