"""What a run left behind, read so that a damaged run can still be shown: what cannot be read is named, not raised."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from harness.capabilities import Fidelity
from harness.checkpoints import ManifestEntry, read_manifest
from harness.errors import HarnessError, HistoryCorruptError
from harness.history import AnyEvent, Event, GoldenKnown, History, RunClosed, RunOpened, read_history
from harness.ledger import Ledger, keep
from harness.lineage import Lineage, trace
from harness.report.cluster import ClusterView, cluster_of
from harness.report.strikes import Strike, strikes_of
from harness.scenario import Scenario, decode, read_scenario
from harness.store import RunDirectory
from harness.verdict import Finding, Verdict

T_S_MAX = 1e9
"""Thirty years: a moment beyond is no moment of a run, and no picture has room for it."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run as read.

    Attributes:
        directory: Where it lies.
        scenario: What was promised; None when it cannot be read.
        history: What was seen; without the lines that are no events.
        verdict: The judgement; None when there is none.
        fidelity: What the target said of itself; None when nobody wrote it down.
        manifest: The content ledger of the checkpoint directory at the end; None when there is none.
        problems: What could not be read, a sentence each.
    """

    directory: RunDirectory
    scenario: Scenario | None
    history: History
    verdict: Verdict | None
    fidelity: tuple[Fidelity, ...] | None = None
    manifest: tuple[ManifestEntry, ...] | None = None
    problems: tuple[str, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the history."""
        return self.history.events

    @cached_property
    def lineage(self) -> Lineage:
        """The history as lives of the job."""
        return trace(self.events)

    @cached_property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The ledger of each task that has one."""
        return tuple(ledger for task in self.lineage.tasks if (ledger := keep(self.lineage, task)) is not None)

    @cached_property
    def cluster(self) -> ClusterView | None:
        """What was seen of a cluster; None where none was."""
        return cluster_of(self.lineage, self.end_s)

    @cached_property
    def strikes(self) -> tuple[Strike, ...]:
        """The acts of all injections, in order."""
        return strikes_of(self.events)

    @cached_property
    def opened(self) -> RunOpened | None:
        """The header."""
        return next((event for event in self.events if isinstance(event, RunOpened)), None)

    @cached_property
    def golden(self) -> GoldenKnown | None:
        """Whether two uninterrupted runs were equal."""
        return next((event for event in self.events if isinstance(event, GoldenKnown)), None)

    @cached_property
    def closed(self) -> RunClosed | None:
        """Why the run ended; None when the harness was killed before it did."""
        return next((event for event in reversed(self.events) if isinstance(event, RunClosed)), None)

    @cached_property
    def end_s(self) -> float:
        """The last moment that was recorded."""
        return max((event.t_s for event in self.events), default=0.0)

    @property
    def name(self) -> str:
        """The scenario's name; that of its directory where neither document says it."""
        if self.scenario is not None:
            return self.scenario.name
        return self.opened.scenario if self.opened is not None else self.directory.path.parent.name

    @property
    def deciding(self) -> tuple[Finding, ...]:
        """The findings that decided the outcome; none where there is no verdict."""
        return self.verdict.worst() if self.verdict is not None else ()


def read_record(directory: RunDirectory) -> Record:
    """Read a run; never fails for what a run directory holds or lacks."""
    reading = _Reading(directory)
    return Record(
        directory=directory,
        scenario=reading.scenario(),
        history=reading.history(),
        verdict=reading.verdict(),
        fidelity=reading.fidelity(),
        manifest=reading.manifest(),
        problems=tuple(reading.problems),
    )


@dataclass(slots=True)
class _Reading:
    """Reads the documents of a run and notes what is wrong with them."""

    directory: RunDirectory
    problems: list[str] = field(default_factory=list)

    def scenario(self) -> Scenario | None:
        try:
            return read_scenario(self.directory.scenario_path)
        except HarnessError as error:
            self.problems.append(f"the scenario cannot be read: {error}")
            return None

    def verdict(self) -> Verdict | None:
        if not self.directory.is_over():
            told = (
                "the run is still going on" if self.directory.is_running() else "the run was not judged: the harness ended before it could"
            )
            self.problems.append(told)
            return None
        try:
            return decode(self.directory.verdict_path.read_bytes(), Verdict, document=self.directory.verdict_path.name)
        except (OSError, HarnessError) as error:
            self.problems.append(f"the verdict cannot be read: {error}")
            return None

    def fidelity(self) -> tuple[Fidelity, ...] | None:
        path = self.directory.fidelity_path
        if not path.exists():
            return None
        try:
            return decode(path.read_bytes(), tuple[Fidelity, ...], document=path.name)
        except (OSError, HarnessError) as error:
            self.problems.append(f"what the target plays cannot be read: {error}")
            return None

    def manifest(self) -> tuple[ManifestEntry, ...] | None:
        if not self.directory.manifest_path.exists():
            return None
        try:
            return read_manifest(self.directory.manifest_path)
        except HarnessError as error:
            self.problems.append(f"the content ledger of the checkpoints cannot be read: {error}")
            return None

    def history(self) -> History:
        path = self.directory.history_path
        try:
            history = read_history(path)
        except HistoryCorruptError as error:
            history = _salvage(path)
            kept = len(history.events)
            self.problems.append(f"the history is damaged; what follows rests on the {kept} lines of it that are events: {error}")
        except HarnessError as error:
            self.problems.append(f"the history cannot be read: {error}")
            return History(events=())
        if history.is_torn:
            self.problems.append("the last line of the history is torn: the harness was killed while it wrote it")
        return self._without_impossible_times(history)

    def _without_impossible_times(self, history: History) -> History:
        kept = tuple(event for event in history.events if abs(event.t_s) <= T_S_MAX)
        if len(kept) == len(history.events):
            return history
        left_out = len(history.events) - len(kept)
        self.problems.append(f"{left_out} events of the history lie more than {T_S_MAX:g} s away and are left out")
        return History(events=kept, is_torn=history.is_torn)


def _salvage(path: Path) -> History:
    """The lines that are events."""
    decoder = msgspec.json.Decoder(AnyEvent)
    events: list[Event] = []
    for line in path.read_bytes().split(b"\n"):
        try:
            events.append(decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
    return History(events=tuple(events))
