"""One run, from an open directory to a closed history: the tick loop.

In order: header; start; (poll, record, survey, inject, release, watch, wait) until the execution has finished, the deadline has passed,
a hang was called or we were interrupted; heal; stop; last look at storage; close. Nothing is judged here.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import msgspec

import harness
from harness.capabilities import Interruptible, OperationStops, Settling, StartupCounting, Target, TurnTaking
from harness.clock import Clock
from harness.errors import BrokenHarnessError, HarnessError
from harness.history import (
    SCHEMA_VERSION,
    BarrierReached,
    Event,
    ExecutionStarted,
    GoldenKnown,
    HangCalled,
    HistoryWriter,
    ObservationLost,
    OperationReached,
    RunClosed,
    RunOpened,
)
from harness.runner.binding import launch_of
from harness.runner.injector import Injector
from harness.runner.inspection import inspect_copies
from harness.runner.observer import Observer
from harness.runner.progress import Progress
from harness.scenario import Scenario, encode
from harness.scenario.expectations import NoHang
from harness.store import RunDirectory
from harness.watchdog import Watchdog

TICK_S = 0.05
"""The longest nap of the loop. Barriers, output and exits wake it at once; only event files and timers wait for it."""

STALL_S = 1.0
"""Faults that act for longer than this, as a node that is slow to take a command does, make what ended meanwhile be seen late."""

SETTING_UP_S_MAX = 600.0
"""Until the execution begins no deadline counts: what is set up before is no part of the job. Targets have limits of their own for that,
which say more; the longest is that of node pools which come to their sizes one after another, 360 s."""

RECORDED_PACKAGES = ("jax", "jaxlib", "orbax-checkpoint", "optax", "ray", "msgspec")
"""Versions written into the header: a changed trajectory is often a changed one of these."""

Reason = Literal["finished", "deadline", "hang", "interrupted", "error"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where a run plays.

    Attributes:
        directory: Of the run, open and empty.
        run_id: Carried by every process of it.
        target: One, for this run alone.
        clock: The time.
        root: What the workload's ``directory`` is relative to.
        seed: Replaces ``{seed}`` in the workload.
        argv: What was typed to make the run.
        golden: What is known of the uninterrupted run.
        progress: Told of every event, for live output.
    """

    directory: RunDirectory
    run_id: str
    target: Target
    clock: Clock
    root: Path
    seed: int
    argv: tuple[str, ...] = ()
    golden: GoldenKnown | None = None
    progress: Progress | None = None


def play(scenario: Scenario, stage: Stage) -> None:
    """Run a scenario and leave its history behind.

    Raises:
        HarnessError: When the harness broke; the history says so, everything was stopped and healed as far as possible.
        KeyboardInterrupt: When we were interrupted; likewise.
    """
    try:
        if isinstance(stage.target, TurnTaking):
            stage.target.take_turn(lambda why: stage.progress.waits(scenario, why) if stage.progress is not None else None)
        _write_documents(scenario, stage)
        performance = _Performance(scenario, stage, HistoryWriter(stage.directory.history_path))
    except BaseException as error:
        _stop_unplayed(stage.target, error)
        raise
    performance.run()


def leave_unplayed(scenario: Scenario, stage: Stage, why: str) -> None:
    """Leave the history of a run that was not made: it says why, and nothing is started or waited for.

    Raises:
        StoreError: When it cannot be written.
    """
    _write_documents(scenario, stage)
    writer = HistoryWriter(stage.directory.history_path)
    events: list[Event] = [_header(scenario, stage), *([stage.golden] if stage.golden else [])]
    events.append(RunClosed(t_s=0.0, reason="error", detail=why, ended_s=0.0))
    writer.append(events)
    writer.close()
    if stage.progress is not None:
        stage.progress.saw(scenario, events)


def _write_documents(scenario: Scenario, stage: Stage) -> None:
    """Write what is promised, what shall be done, and what the target plays."""
    stage.directory.write(stage.directory.scenario_path, encode(scenario))
    stage.directory.write(stage.directory.schedule_path, encode(scenario.schedule))
    stage.directory.write(stage.directory.fidelity_path, msgspec.json.encode(list(stage.target.fidelity())))


def _stop_unplayed(target: Target, error: BaseException) -> None:
    """Give back what was taken before the run could begin, as its turn: the next run may be one of this process."""
    try:
        target.stop()
    except HarnessError as other:
        error.add_note(f"and while giving back the target: {_told([other])}")


class _Performance:
    """The state of one run in progress."""

    def __init__(self, scenario: Scenario, stage: Stage, writer: HistoryWriter) -> None:
        self._scenario = scenario
        self._stage = stage
        self._writer = writer
        self._epoch_s = stage.clock.monotonic_s()
        self._observer = Observer(scenario=scenario, directory=stage.directory)
        self._injector = Injector(
            scenario=scenario,
            target=stage.target,
            journal=stage.directory.undo,
            kept_dir=stage.directory.kept,
            clock=stage.clock,
            now_s=self._now_s,
            record=self._take_in,
        )
        self._watchdog = _watchdog_of(scenario)
        self._errors: list[BaseException] = []
        self._started_s: float | None = None

    def run(self) -> None:
        """See ``play``."""
        reason: Reason = "error"
        try:
            self._record([_header(self._scenario, self._stage), *([self._stage.golden] if self._stage.golden else [])])
            reason = self._loop()
        except BaseException as error:  # noqa: BLE001  whatever broke: what was started is ended, then it is raised again
            self._errors.append(error)
            reason = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
        ended_s = self._now_s()
        self._heal_and_stop()
        self._try(lambda: self._record(self._observer.close(self._now_s())))
        if reason != "interrupted":
            self._try(self._inspect)
        self._try(lambda: self._record([self._closing(reason, ended_s)]))
        self._try(self._writer.close)
        self._raise_first()

    def _loop(self) -> Reason:
        target = self._stage.target
        target.start(
            launch_of(
                self._scenario,
                self._stage.directory,
                target=target,
                run_id=self._stage.run_id,
                root=self._stage.root,
                seed=self._stage.seed,
                epoch_s=self._epoch_s,
            )
        )
        while True:
            hang = self._tick()
            if hang is not None:
                return "hang"
            if target.is_finished():
                self._tick()  # what the last events let us observe
                return "finished"
            if self._is_due():
                return "deadline"
            target.wait(TICK_S)

    def _is_due(self) -> bool:
        """Whether the deadline has passed, which counts from the start of the execution, on every target, without what it takes to start.

        It is the job's: once the execution was seen to have ended, nothing more is charged to it.

        Raises:
            BrokenHarnessError: When no execution has begun for long.
        """
        if self._has_ended():
            return False
        if self._started_s is not None:
            target = self._stage.target
            startup_s = target.startup_s() if isinstance(target, StartupCounting) else 0.0
            return self._now_s() >= self._started_s + startup_s + self._scenario.deadline_s
        if self._now_s() >= SETTING_UP_S_MAX:
            raise BrokenHarnessError(f"target {self._stage.target.name} has begun no execution for {SETTING_UP_S_MAX:g} s")
        return False

    def _has_ended(self) -> bool:
        return isinstance(self._stage.target, Settling) and self._stage.target.has_ended()

    def _tick(self) -> HangCalled | None:
        """What was seen is recorded before we act on it; who waits at the barrier goes on only when we have acted."""
        polled = self._stage.target.poll()
        self._take_in(polled)
        self._let_faults_act(polled)
        for event in polled:
            if isinstance(event, BarrierReached):
                self._stage.target.release(event)
            elif isinstance(event, OperationReached) and isinstance(self._stage.target, OperationStops):
                self._stage.target.resume(event)
        return self._call_hang()

    def _let_faults_act(self, polled: Sequence[Event]) -> None:
        began_s = self._now_s()
        self._injector.tick(polled)
        stalled_s = self._now_s() - began_s
        if stalled_s > STALL_S:
            detail = f"nobody looked for {stalled_s:.1f} s while faults acted: what ended meanwhile was seen after it"
            self._record([ObservationLost(t_s=self._now_s(), what="moments", count=1, detail=detail)])

    def _take_in(self, events: Sequence[Event]) -> None:
        """Record what was seen or done, and what storage shows after it."""
        if self._started_s is None:
            self._started_s = next((event.t_s for event in events if isinstance(event, ExecutionStarted)), None)
        self._record([*events, *self._observer.after(events, self._now_s())])
        if self._watchdog is not None:
            self._watchdog.feed(events)

    def _call_hang(self) -> HangCalled | None:
        if self._watchdog is None or self._has_ended():  # what has ended is silent with reason
            return None
        hang = self._watchdog.overdue(self._now_s())
        if hang is not None:
            self._record([hang])
        return hang

    def _inspect(self) -> None:
        stage = self._stage
        self._record(inspect_copies(self._scenario, self._observer.copies, root=stage.root, seed=stage.seed, run_id=stage.run_id))

    def _heal_and_stop(self) -> None:
        """Undo what still acts and end what still runs; nothing is written before: a full disk must keep no process alive."""
        healed: list[Event] = []
        last: list[Event] = []

        def heal() -> None:
            events, failures = self._injector.heal_all()
            healed.extend(events)
            self._errors.extend(failures)

        def stop() -> None:
            target = self._stage.target
            if isinstance(target, Interruptible) and any(isinstance(error, KeyboardInterrupt) for error in self._errors):
                target.interrupt()
            last.extend(target.stop())

        self._try(heal)
        if not self._try(stop):
            self._try(stop)  # what it saw before it failed
        self._try(lambda: self._record([*healed, *last]))

    def _closing(self, reason: Reason, ended_s: float) -> RunClosed:
        """Why the run ended. One whose end failed has not just finished: what was seen at its end may not be all."""
        if self._errors and reason != "interrupted":
            reason = "error"
        detail = "; and while ending the run: ".join(dict.fromkeys(_told([error]) for error in self._errors))
        return RunClosed(t_s=self._now_s(), reason=reason, detail=detail, ended_s=ended_s)

    def _try(self, step: Callable[[], None]) -> bool:
        """Do one step of ending the run, and say whether it was done; a failure keeps no other step from being done."""
        try:
            step()
        except BaseException as error:  # noqa: BLE001  it is raised when everything has been ended
            self._errors.append(error)
            return False
        return True

    def _raise_first(self) -> None:
        """Raise what broke first; what broke after it is noted on it, each thing once."""
        if not self._errors:
            return
        first = self._errors[0]
        for more in dict.fromkeys(_told([error]) for error in self._errors[1:]):
            if more != _told([first]):
                first.add_note(f"and while ending the run: {more}")
        raise first

    def _record(self, events: Sequence[Event]) -> None:
        if not events:
            return
        self._writer.append(events)
        if self._stage.progress is not None:
            self._stage.progress.saw(self._scenario, events)

    def _now_s(self) -> float:
        return self._stage.clock.monotonic_s() - self._epoch_s


def _header(scenario: Scenario, stage: Stage) -> RunOpened:
    return RunOpened(
        t_s=0.0,
        schema=SCHEMA_VERSION,
        run_id=stage.run_id,
        scenario=scenario.name,
        target=stage.target.name,
        seed=stage.seed,
        opened_at=stage.clock.utc().isoformat(timespec="milliseconds"),
        commit=commit_of(stage.root),
        argv=stage.argv,
        versions=_versions(),
    )


def _watchdog_of(scenario: Scenario) -> Watchdog | None:
    """Watches where silence was promised not to last."""
    hang = next((expectation for expectation in scenario.expects if isinstance(expectation, NoHang)), None)
    return Watchdog(quiet_s=hang.quiet_s, ranks=scenario.workload.ranks_heard) if hang else None


def _told(errors: Sequence[BaseException]) -> str:
    return f"{type(errors[0]).__name__}: {errors[0]}" if errors else ""


def commit_of(root: Path) -> str:
    """The commit of the workloads' repository, with ``+`` when files differ from it; empty outside a repository."""
    try:
        head = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12"],
            capture_output=True,
            check=False,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return head.stdout.strip() if head.returncode == 0 else ""


def _versions() -> dict[str, str]:
    versions = {"harness": harness.__version__, "python": sys.version.split()[0]}
    for package in RECORDED_PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
