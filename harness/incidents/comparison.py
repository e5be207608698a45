"""Whether a run of the scenario of an incident went wrong in the same way: its own log is read like the platform's, and diagnosed alike."""

from collections.abc import Mapping

import msgspec

from harness.errors import StoreError
from harness.history import read_regular
from harness.incidents.diagnosis import DiagnosisKind
from harness.incidents.entries import Export, read_export
from harness.incidents.incident import Incident, incident_of, timeline_of
from harness.incidents.words import JobWords
from harness.scenario import Scenario, read_scenario
from harness.scenario.faults import EndGrace, Kill
from harness.store import RunDirectory
from harness.verdict import Outcome

TOLD_ALIKE: frozenset[DiagnosisKind] = frozenset({"healthy", "unknown", "terminated", "preempted"})
"""Kinds that are not compared: that all is well is the absence of the others, and why SIGTERM came is what the scenario chose."""

PLAYED_AS: Mapping[DiagnosisKind, tuple[DiagnosisKind, type[Kill | EndGrace]]] = {
    "out-of-memory": ("killed-without-notice", Kill),
    "save-did-not-fit-the-grace": ("no-save-after-sigterm", EndGrace),
}
"""What looks otherwise here, by the fault that plays it: a target without a limit of memory kills and does not say why, and a grace that
ends in a save ends it between the job's word for it and its line in the log."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """An incident and a run of its scenario.

    Attributes:
        run: The run directory.
        outcome: Of the run's log, as that of the incident.
        same: What both show.
        missing: What only the incident shows.
        additional: What only the run shows.
        lost_steps: Steps that each had to do again, incident and run; None where the log does not tell.
    """

    run: str
    outcome: Outcome
    same: tuple[DiagnosisKind, ...]
    missing: tuple[DiagnosisKind, ...]
    additional: tuple[DiagnosisKind, ...]
    lost_steps: tuple[int | None, int | None]

    @property
    def is_same(self) -> bool:
        """Whether the same things went wrong, and no others."""
        return not self.missing and not self.additional


def compare(incident: Incident, run: RunDirectory, words: JobWords) -> Comparison:
    """Hold a run against the incident.

    Raises:
        StoreError: When its log cannot be read.
        InvalidDocumentError: When its scenario cannot be read.
    """
    export = _log_of(run)
    again = incident_of(export, timeline_of(export, words))
    then = _kinds(incident)
    now = _as_played(_kinds(again), then, read_scenario(run.scenario_path))
    return Comparison(
        run=str(run.path),
        outcome=again.outcome,
        same=tuple(sorted(then & now)),
        missing=tuple(sorted(then - now)),
        additional=tuple(sorted(now - then)),
        lost_steps=(_lost(incident), _lost(again)),
    )


def _log_of(run: RunDirectory) -> Export:
    path = run.logs / "entries.jsonl"
    try:
        return read_export(read_regular(path))
    except OSError as error:
        raise StoreError(path=path, attempted="read the log of the run", reason=error.strerror or str(error)) from error


def _kinds(incident: Incident) -> frozenset[DiagnosisKind]:
    return frozenset(each.kind for each in incident.diagnoses) - TOLD_ALIKE


def _as_played(now: frozenset[DiagnosisKind], then: frozenset[DiagnosisKind], scenario: Scenario) -> frozenset[DiagnosisKind]:
    """The run's kinds, by the names that the incident has for them."""
    for kind, (played, fault) in PLAYED_AS.items():
        is_played = any(isinstance(injection.fault, fault) for injection in scenario.injections)
        if is_played and kind in then and kind not in now and played in now and played not in then:
            now = (now - {played}) | {kind}
    return now


def _lost(incident: Incident) -> int | None:
    lost = [each.lost_steps for each in incident.losses]
    known = [steps for steps in lost if steps is not None]
    return sum(known) if known and len(known) == len(lost) else None
