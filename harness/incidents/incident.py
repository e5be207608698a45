"""An incident as a document: ``incident.json``."""

from collections.abc import Sequence

import msgspec

from harness.errors import UnknownNameError, UsageError
from harness.history import Event
from harness.incidents.cloud_run import execution_of, read_execution
from harness.incidents.conclusion import diagnose
from harness.incidents.diagnosis import Diagnosis, outcome_of
from harness.incidents.entries import Export
from harness.incidents.exports import Malformed
from harness.incidents.kubernetes import is_of_cluster, job_of, read_job
from harness.incidents.losses import Losses, losses_of
from harness.incidents.moments import Gap, Moment, gaps_of, moments_of
from harness.incidents.recording import assumptions, history_of
from harness.incidents.sightings import UnknownEntries, UnknownKind
from harness.incidents.timeline import Timeline
from harness.incidents.timestamps import write_timestamp
from harness.incidents.words import JobWords
from harness.verdict import Outcome

INCIDENT_SCHEMA = 1

NOTHING = "nothing"
"""The name of an incident of which no entry tells anything."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What an export held.

    Attributes:
        entries: Entries, each once.
        read: Those of the incident.
        duplicates: How many more times some of them stood there.
        unknown: Entries that nothing was read from.
        malformed: Parts that are no entries.
    """

    entries: int
    read: int
    duplicates: int
    unknown: int
    malformed: int


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """What happened.

    Attributes:
        schema: Of this document.
        name: The execution, or the job of a cluster.
        platform: Where.
        began_at, ended_at: Its first and last entry.
        outcome: ``valid``: healthy, or recovered. ``invalid``: something went wrong. ``unknown``: the entries do not tell.
        diagnoses: What was found, the worst first.
        losses: What each task lost.
        moments, moments_left_out: The time-line in words.
        gaps: Times in which nothing was said.
        counts: What the export held.
        unknown: The kinds of entries that nothing was read from, each with a sample.
        malformed: The first of the parts that are no entries, each with its place.
        assumed: What is assumed of the platform, for no entry says it.
    """

    schema: int = INCIDENT_SCHEMA
    name: str
    platform: str
    began_at: str
    ended_at: str
    outcome: Outcome
    diagnoses: tuple[Diagnosis, ...]
    losses: tuple[Losses, ...]
    moments: tuple[Moment, ...]
    moments_left_out: int
    gaps: tuple[Gap, ...]
    counts: Counts
    unknown: tuple[UnknownKind, ...]
    malformed: tuple[Malformed, ...]
    assumed: tuple[str, ...]


def timeline_of(export: Export, words: JobWords, *, name: str = "") -> Timeline:
    """The time-line of the one execution, or job of a cluster, that an export holds, or of the one that is named.

    Raises:
        UsageError: When the export holds several and none is named.
        UnknownNameError: When it holds none of that name.
    """
    executions = sorted({found for entry in export.entries if (found := execution_of(entry))})
    jobs = sorted({found for entry in export.entries if is_of_cluster(entry) and (found := job_of(entry))})
    known = [*executions, *(job for job in jobs if job not in executions)]
    if name and name not in known:
        raise UnknownNameError(kind="execution", name=name, known=known)
    if not name and len(known) > 1:
        raise UsageError(f"the export holds {len(known)} executions: {_listed(known)}; name one with --execution")
    if not known:
        return _nothing(export, words)
    chosen = name or known[0]
    return read_execution(export, chosen, words) if chosen in executions else read_job(export, chosen, words)


def _listed(names: Sequence[str], shown: int = 20) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(name[:120] for name in names[:shown]) + more


def _nothing(export: Export, words: JobWords) -> Timeline:
    """Of an export in which no entry names an execution or a job: every entry is unknown."""
    unknown = UnknownEntries()
    for entry in export.entries:
        unknown.add(entry)
    moments = [entry.t_ns for entry in export.entries] or [0]
    return Timeline(
        platform="cloud-run",
        name=NOTHING,
        job=NOTHING,
        epoch_ns=moments[0],
        export_end_ns=moments[-1],
        seen=(),
        attempts=(),
        words=words,
        unknown=unknown,
        entry_count=0,
    )


def incident_of(export: Export, timeline: Timeline) -> Incident:
    """The document of an incident."""
    history: list[Event] = history_of(timeline, name=timeline.name, run_id="", argv=())
    diagnoses = diagnose(timeline)
    moments, left_out = moments_of(timeline)
    last_ns = timeline.seen[-1].entry.t_ns if timeline.seen else timeline.epoch_ns
    return Incident(
        name=timeline.name,
        platform=timeline.platform,
        began_at=write_timestamp(timeline.epoch_ns),
        ended_at=write_timestamp(last_ns),
        outcome=outcome_of(diagnoses),
        diagnoses=diagnoses,
        losses=losses_of(timeline, history),
        moments=moments,
        moments_left_out=left_out,
        gaps=gaps_of(timeline),
        counts=Counts(
            entries=len(export.entries),
            read=timeline.entry_count,
            duplicates=export.duplicates,
            unknown=timeline.unknown.count,
            malformed=export.malformed_count,
        ),
        unknown=timeline.unknown.kinds(),
        malformed=export.malformed,
        assumed=assumptions(timeline),
    )
