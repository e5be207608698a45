"""One run, from an open directory to a closed history: the tick loop.

In order: header; start; (poll, survey, inject, watch, release, record, wait) until the execution has finished, the deadline has passed,
a hang was called or we were interrupted; heal; stop; last look at storage; close. Nothing is judged here.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import msgspec

import harness
from harness.capabilities import Target
from harness.clock import Clock
from harness.errors import HarnessError
from harness.history import (
    SCHEMA_VERSION,
    BarrierReached,
    Event,
    GoldenKnown,
    HangCalled,
    HistoryWriter,
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
        golden: What is known of the uninterrupted run.
        progress: Told of every event, for live output.
    """

    directory: RunDirectory
    run_id: str
    target: Target
    clock: Clock
    root: Path
    seed: int
    golden: GoldenKnown | None = None
    progress: Progress | None = None


def play(scenario: Scenario, stage: Stage) -> None:
    """Run a scenario and leave its history behind.

    Raises:
        HarnessError: When the harness broke; the history says so, everything was stopped and healed as far as possible.
        KeyboardInterrupt: When we were interrupted; likewise.
    """
    stage.directory.write(stage.directory.scenario_path, encode(scenario))
    stage.directory.write(stage.directory.schedule_path, encode(scenario.schedule))
    stage.directory.write(stage.directory.fidelity_path, msgspec.json.encode(list(stage.target.fidelity())))
    writer = HistoryWriter(stage.directory.history_path)
    try:
        _Performance(scenario, stage, writer).run()
    finally:
        writer.close()


class _Performance:
    """The state of one run in progress."""

    def __init__(self, scenario: Scenario, stage: Stage, writer: HistoryWriter) -> None:
        self._scenario = scenario
        self._stage = stage
        self._writer = writer
        self._epoch_s = stage.clock.monotonic_s()
        self._observer = Observer(scenario=scenario, directory=stage.directory)
        self._injector = Injector(
            scenario=scenario, target=stage.target, journal=stage.directory.undo, kept_dir=stage.directory.kept, now_s=self._now_s
        )
        hang = next((expectation for expectation in scenario.expects if isinstance(expectation, NoHang)), None)
        self._watchdog = Watchdog(quiet_s=hang.quiet_s, ranks=scenario.workload.ranks) if hang else None

    def run(self) -> None:
        """See ``play``."""
        self._record([self._header(), *([self._stage.golden] if self._stage.golden else [])])
        first_error: BaseException | None = None
        reason: Reason = "error"
        try:
            reason = self._loop()
        except BaseException as error:  # noqa: BLE001  whatever broke: what was started is ended, then it is raised again
            first_error = error
            reason = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
        try:
            self._end(reason, detail=_told(first_error))
        except HarnessError as error:
            if first_error is None:
                raise
            first_error.add_note(f"and while ending the run: {error}")
        if first_error is not None:
            raise first_error

    def _loop(self) -> Reason:
        target = self._stage.target
        target.start(
            launch_of(
                self._scenario,
                self._stage.directory,
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
            if self._now_s() >= self._scenario.deadline_s:
                return "deadline"
            target.wait(TICK_S)

    def _tick(self) -> HangCalled | None:
        polled = self._stage.target.poll()
        surveyed = self._observer.after(polled, self._now_s())
        injected = self._injector.tick(polled)
        damaged = self._observer.after(injected, self._now_s())
        self._record([*polled, *surveyed, *injected, *damaged])
        for event in polled:
            if isinstance(event, BarrierReached):
                self._stage.target.release(event)
        return self._watch([*polled, *injected])

    def _watch(self, events: Sequence[Event]) -> HangCalled | None:
        if self._watchdog is None:
            return None
        self._watchdog.feed(events)
        hang = self._watchdog.overdue(self._now_s())
        if hang is not None:
            self._record([hang])
        return hang

    def _end(self, reason: Reason, *, detail: str) -> None:
        try:
            healed, failures = self._injector.heal_all()
        finally:
            last = self._stage.target.stop()  # before anything is written: a full disk must keep no process alive
        self._record([*healed, *last])
        self._record(self._observer.close(self._now_s()))
        if reason != "interrupted":
            self._record(inspect_copies(self._scenario, self._observer.copies, root=self._stage.root))
        self._record([RunClosed(t_s=self._now_s(), reason=reason, detail=detail)])
        if failures:
            for more in failures[1:]:
                failures[0].add_note(str(more))
            raise failures[0]

    def _record(self, events: Sequence[Event]) -> None:
        if not events:
            return
        self._writer.append(events)
        if self._stage.progress is not None:
            self._stage.progress.saw(self._scenario, events)

    def _now_s(self) -> float:
        return self._stage.clock.monotonic_s() - self._epoch_s

    def _header(self) -> RunOpened:
        return RunOpened(
            t_s=0.0,
            schema=SCHEMA_VERSION,
            run_id=self._stage.run_id,
            scenario=self._scenario.name,
            target=self._stage.target.name,
            seed=self._stage.seed,
            opened_at=self._stage.clock.utc().isoformat(timespec="milliseconds"),
            commit=commit_of(self._stage.root),
            argv=tuple(sys.argv),
            versions=_versions(),
        )


def _told(error: BaseException | None) -> str:
    return "" if error is None else f"{type(error).__name__}: {error}"


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
