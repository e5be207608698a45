"""``harness reproduce``: what a log export tells of an incident, kept as a run, and its scenario run here."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from harness.cli.asked import workload_asked_for
from harness.cli.exits import EXIT_CODES
from harness.cli.incidents import Progress, print_comparison, print_incident
from harness.cli.running import require_target
from harness.clock import Clock, SystemClock
from harness.config import read_config
from harness.errors import HarnessError, UsageError
from harness.incidents import (
    Export,
    Incident,
    JobWords,
    Reproduction,
    incident_of,
    read_export,
    read_file,
    read_stream,
    read_values,
    reproduce,
    timeline_of,
    words_of,
)
from harness.incidents.comparison import Comparison, compare
from harness.incidents.directory import Kept, keep_incident
from harness.incidents.entries import Entry
from harness.incidents.timeline import Timeline
from harness.report import write_index, write_run
from harness.runner import Options, run_scenario
from harness.scenario import Scenario, Workload
from harness.store import RunDirectory, RunStore
from harness.targets import create
from harness.targets.gcp.private_keys import KeyLines
from harness.targets.gcp.secrets import Secrets, redact, redact_document
from harness.verdict import Outcome

STAND_IN = "counter"
"""The workload of the catalogue that plays an incident where none is named: the job of the Cloud Run guide."""

LONG_EXPORT = 50_000
"""Entries, from which on a person waits for more than a few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedJob:
    """The job of an incident, or what stands in for it.

    Attributes:
        workload: What plays it; None: no scenario can be made.
        words: How its log is read.
        root: What its directory is relative to.
        why_not: Why there is none.
    """

    workload: Workload | None
    words: JobWords
    root: Path
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How it is done.

    Attributes:
        execution: Which, where the export holds several; empty: the only one.
        speed: How many times faster the scenario goes than the incident.
        runs: Whether the scenario is run here.
        output: Where the scenario is written besides; None: only beside the incident.
        as_json: Whether the answer is for a machine.
    """

    execution: str = ""
    speed: float = 1.0
    runs: bool = False
    output: Path | None = None
    as_json: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is printed for a machine."""

    incident: Incident
    directory: str
    scenario: str
    notes: tuple[str, ...]
    comparison: Comparison | None


def job_asked_for(*, config: Path | None, workload: str, catalogue: str, root: Path) -> AskedJob:
    """The job that was named; where none was, the job of the guide stands in, if the catalogue is here.

    Raises:
        UsageError: When two were named, or the one that was is not known.
    """
    if config is not None and workload:
        raise UsageError("two jobs are named: give --config or --workload, not both")
    if config is not None:
        found = next(iter(read_config(config).values())).workload
        return AskedJob(workload=found, words=words_of(found.outside.logs, steps=found.steps), root=config.parent.resolve())
    try:
        found = workload_asked_for(workload or STAND_IN, catalogue=catalogue, root=root)
    except HarnessError:
        if workload:
            raise
        why_not = "no scenario: name the job with --config harness.toml, or a workload of a catalogue with --workload"
        return AskedJob(workload=None, words=JobWords(), root=root, why_not=why_not)
    return AskedJob(workload=found, words=words_of(found.outside.logs, steps=0), root=root)


def entries_asked_for(export: str, *, project: str, execution: str) -> Export:
    """The entries that were asked for: of a file, of standard input, or of a project's log as it is now; without credentials.

    Raises:
        UsageError: When it is none of these, or two of them, or the file cannot be read.
        TargetUnavailableError: When the log of a project was asked for, and there are no clients or no credentials.
    """
    if bool(export) == bool(project):
        raise UsageError("name the file of an export, or - for standard input; or a log with --project and --execution")
    if project:
        if not execution:
            raise UsageError("--project reads the log of one execution; name it with --execution")
        from harness.targets.gcp.log_reading import live_entries

        found = read_values(live_entries(project=project, execution=execution))
        if not found.entries:
            raise UsageError(
                f"the log of project {project} has no entry of an execution {execution!r}; name another: "
                f"`gcloud run jobs executions list --project {project}` shows them, and a log is kept for its retention only"
            )
        return masked(found)
    data = read_stream(sys.stdin.buffer, "standard input") if export == "-" else read_file(Path(export))
    return masked(read_export(data, tell=Progress(SystemClock())))


def masked(export: Export) -> Export:
    """The same without credentials: jobs print them, and what is kept of an incident, its report first of all, is for others to read."""
    keys = KeyLines(Secrets())
    malformed = tuple(msgspec.structs.replace(each, problem=redact(each.problem), sample=redact(each.sample)) for each in export.malformed)
    return replace(export, entries=tuple(_masked(entry, keys) for entry in export.entries), malformed=malformed)


def _masked(entry: Entry, keys: KeyLines) -> Entry:
    source = (entry.log, *entry.resource.values(), *entry.labels.values())
    text, payload = keys.redact(source, entry.text), redact_document(entry.payload)
    return msgspec.structs.replace(entry, text=text, payload=payload)


def reproduce_incident(export: Export, job: AskedJob, ways: Ways, *, runs_dir: Path, clock: Clock) -> int:
    """Diagnose an incident, keep it, print it, and run its scenario where that was asked for; returns the exit code."""
    if not export.entries and export.malformed_count:
        first = export.malformed[0]
        raise UsageError(f"no log entry could be read: {first.place}: {first.problem}; give an export of Cloud Logging as JSON")
    if len(export.entries) > LONG_EXPORT:
        typer.echo(f"{len(export.entries)} entries: what they say takes a while to work out", err=True)
    timeline = timeline_of(export, job.words, name=ways.execution)
    incident = incident_of(export, timeline)
    made = (
        reproduce(timeline, incident.diagnoses, job.workload, speed=ways.speed) if job.workload is not None and timeline.attempts else None
    )
    target = "kind" if timeline.platform == "kubernetes" else "local"
    if ways.runs:
        _require_runnable(made, job, target)
    store = RunStore(runs_dir.resolve(), clock)
    kept = keep_incident(incident, timeline, reproduction=made, store=store, argv=sys.argv)
    if ways.output is not None and made is not None:
        _write_output(ways.output, kept.directory)
    console = Console(stderr=ways.as_json)
    if not ways.as_json:
        print_incident(console, kept, attempts=len(timeline.attempts), why_not=job.why_not)
    comparison = _run(made, job, timeline, kept, store=store, clock=clock, target=target) if ways.runs and made is not None else None
    if comparison is not None and not ways.as_json:
        print_comparison(console, comparison)
    write_index(store)
    if ways.as_json:
        answer = Answer(
            incident=incident,
            directory=str(kept.directory.path),
            scenario=str(kept.directory.reproduction_path) if made is not None else "",
            notes=made.notes if made is not None else (),
            comparison=comparison,
        )
        typer.echo(msgspec.json.encode(answer).decode())
    if comparison is not None and not comparison.is_same:
        return EXIT_CODES[Outcome.UNKNOWN]
    return EXIT_CODES[incident.outcome]


def _require_runnable(made: Reproduction | None, job: AskedJob, target: str) -> None:
    if made is None:
        raise UsageError(job.why_not or "there is nothing to run: no entry tells of an attempt of the job")
    require_target(target)


def _write_output(path: Path, directory: RunDirectory) -> None:
    try:
        path.write_bytes(directory.reproduction_path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}; name a writable place") from error


def _run(
    made: Reproduction, job: AskedJob, timeline: Timeline, kept: Kept, *, store: RunStore, clock: Clock, target: str
) -> Comparison | None:
    """Run the scenario and hold its log against the incident's; a cluster keeps no log of that shape."""
    scenario: Scenario = made.scenario
    options = Options(root=job.root, argv=tuple(sys.argv))
    run = run_scenario(scenario, target=lambda: create(target, clock), clock=clock, store=store, options=options)
    write_run(run.directory)
    if timeline.platform == "kubernetes":
        return None
    steps = scenario.workload.steps if job.words.are_own else 0
    return compare(kept.incident, run.directory, msgspec.structs.replace(job.words, steps=steps))
