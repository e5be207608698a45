"""An incident in a run directory: its history, its document, a scenario of the same timing, and pages to look at."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from harness.history import History, HistoryWriter
from harness.incidents.diagnosis import Diagnosis
from harness.incidents.incident import Incident
from harness.incidents.recording import history_of
from harness.incidents.reproduction import Reproduction, scenario_name
from harness.incidents.timeline import Timeline
from harness.report.incident import DiagnosisRow, IncidentPage, UnreadRow, page_of_incident
from harness.report.record import Record
from harness.report.summary import Summary
from harness.scenario import encode
from harness.store import RunDirectory, RunStore
from harness.verdict import Finding, Verdict

TAG = "incident"


@dataclass(frozen=True, slots=True)
class Kept:
    """An incident on disk."""

    directory: RunDirectory
    incident: Incident
    reproduction: Reproduction | None


def keep_incident(
    incident: Incident, timeline: Timeline, *, reproduction: Reproduction | None, store: RunStore, argv: Sequence[str]
) -> Kept:
    """Write everything; the verdict comes last, for it says that the rest is there.

    Raises:
        StoreError: When something cannot be written.
    """
    directory, run_id = store.create(scenario_name(incident.name), 0)
    history = history_of(timeline, name=directory.path.parent.name, run_id=run_id, argv=argv, malformed=incident.counts.malformed)
    writer = HistoryWriter(directory.history_path)
    writer.append(history)
    writer.close()
    directory.write(directory.incident_path, encode(incident))
    if reproduction is not None:
        directory.write(directory.reproduction_path, encode(reproduction.scenario))
    record = Record(directory=directory, scenario=None, history=History(events=tuple(history)), verdict=verdict_of(incident))
    directory.write(directory.report_path, page_of_incident(_page(incident, directory, reproduction), record))
    directory.write(directory.verdict_path, msgspec.json.format(msgspec.json.encode(verdict_of(incident)), indent=2) + b"\n")
    directory.write(directory.summary_path, msgspec.json.encode(summary_of(incident, directory, record)))
    directory.remove_checkpoints()
    return Kept(directory, incident, reproduction)


def verdict_of(incident: Incident) -> Verdict:
    """The diagnoses as findings, so that the index shows an incident like a run."""
    return Verdict(outcome=incident.outcome, findings=tuple(_finding(diagnosis) for diagnosis in incident.diagnoses))


def _finding(diagnosis: Diagnosis) -> Finding:
    evidence = tuple(map(str, diagnosis.evidence))
    return Finding(checker=diagnosis.kind, outcome=diagnosis.outcome, reason=diagnosis.says, evidence=evidence)


def summary_of(incident: Incident, directory: RunDirectory, record: Record) -> Summary:
    """The row of the index."""
    losses = incident.losses
    lost = [each.lost_steps for each in losses if each.lost_steps is not None]
    return Summary(
        scenario=directory.path.parent.name,
        outcome=incident.outcome,
        reasons=tuple(f"{each.kind}: {each.says}" for each in incident.diagnoses if each.outcome is incident.outcome),
        faults_landed=0,
        faults_declared=0,
        attempts=len(record.lineage.attempts),
        lost_steps=sum(lost) if lost else None,
        recovery_s=max((each.recovery_s for each in losses if each.recovery_s is not None), default=None),
        margin_s=None,
        wall_s=record.end_s,
        run=str(directory.path),
        opened_at=incident.began_at,
        target=incident.platform,
        seed=0,
        tags=(TAG,),
    )


def _page(incident: Incident, directory: RunDirectory, reproduction: Reproduction | None) -> IncidentPage:
    losses = incident.losses
    lost = [each.lost_steps for each in losses]
    goodputs = [each.goodput for each in losses if each.goodput is not None]
    return IncidentPage(
        name=incident.name,
        platform=incident.platform,
        outcome=incident.outcome,
        sentence=f"{incident.diagnoses[0].says[:1].upper()}{incident.diagnoses[0].says[1:]}.",
        diagnoses=[_row(diagnosis) for diagnosis in incident.diagnoses],
        lost_steps=sum(each for each in lost if each is not None) if lost and None not in lost else None,
        recovery_s=max((each.recovery_s for each in losses if each.recovery_s is not None), default=None),
        goodput=min(goodputs, default=None),
        entries=incident.counts.entries,
        unknown=[UnreadRow(what=each.what, count=each.count, sample=each.sample) for each in incident.unknown],
        malformed=[UnreadRow(what=f"{each.place}: {each.problem}", count=1, sample=each.sample) for each in incident.malformed],
        assumed=incident.assumed,
        notes=reproduction.notes if reproduction is not None else (),
        command=run_line(directory) if reproduction is not None else "",
        scenario=encode(reproduction.scenario).decode() if reproduction is not None else "",
    )


def _row(diagnosis: Diagnosis) -> DiagnosisRow:
    return DiagnosisRow(
        kind=diagnosis.kind,
        outcome=diagnosis.outcome,
        certainty=diagnosis.certainty,
        says=diagnosis.says,
        advice=diagnosis.advice,
        evidence=tuple(map(str, diagnosis.evidence)),
    )


def run_line(directory: RunDirectory) -> str:
    """How to run the scenario of an incident."""
    return f"harness run {shlex.quote(str(directory.reproduction_path))}"
