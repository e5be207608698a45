"""What a run left behind, read so that a damaged run can still be shown: what cannot be read is named, not raised."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from harness.errors import HarnessError, HistoryCorruptError
from harness.history import AnyEvent, Event, History, RunClosed, RunOpened, read_history
from harness.ledger import Ledger, keep
from harness.lineage import Lineage, trace
from harness.scenario import Scenario, decode, read_scenario
from harness.store import RunDirectory
from harness.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run as read.

    Attributes:
        directory: Where it lies.
        scenario: What was promised; None when it cannot be read.
        history: What was seen; without the lines that are no events.
        verdict: The judgement; None when there is none.
        problems: What could not be read, a sentence each.
    """

    directory: RunDirectory
    scenario: Scenario | None
    history: History
    verdict: Verdict | None
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
    def opened(self) -> RunOpened | None:
        """The header."""
        return next((event for event in self.events if isinstance(event, RunOpened)), None)

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


def read_record(directory: RunDirectory) -> Record:
    """Read a run; never fails for what a run directory holds or lacks."""
    problems: list[str] = []
    scenario = _read_scenario(directory, problems)
    history = _read_history(directory.history_path, problems)
    verdict = _read_verdict(directory, problems)
    return Record(directory=directory, scenario=scenario, history=history, verdict=verdict, problems=tuple(problems))


def _read_scenario(directory: RunDirectory, problems: list[str]) -> Scenario | None:
    try:
        return read_scenario(directory.scenario_path)
    except HarnessError as error:
        problems.append(f"the scenario cannot be read: {error}")
        return None


def _read_verdict(directory: RunDirectory, problems: list[str]) -> Verdict | None:
    if not directory.is_over():
        problems.append("the run is still going on" if directory.is_running() else "the run was not judged: the harness ended before it could")
        return None
    try:
        return decode(directory.verdict_path.read_bytes(), Verdict, document=directory.verdict_path.name)
    except (OSError, HarnessError) as error:
        problems.append(f"the verdict cannot be read: {error}")
        return None


def _read_history(path: Path, problems: list[str]) -> History:
    try:
        history = read_history(path)
    except HistoryCorruptError as error:
        problems.append(f"the history is damaged, what follows rests on the lines that could be read: {error}")
        return _salvage(path)
    except HarnessError as error:
        problems.append(f"the history cannot be read: {error}")
        return History(events=())
    if history.is_torn:
        problems.append("the last line of the history is torn: the harness was killed while it wrote it")
    return history


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
