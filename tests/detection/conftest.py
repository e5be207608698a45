"""Runs trials in a directory of the session, and draws the matrix of what came of them when all have run."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from harness.capabilities import Target
from harness.clock import Clock, SystemClock
from harness.runner import Options, Run, run_scenario
from harness.scenario import Scenario
from harness.store import RunStore
from harness.targets.local import LocalTarget
from tests.detection.matrix import Row, draw

PROPERTY = "detection"
"""How rows come from the tests, which xdist runs in other processes, to the summary."""

SEED = 7


class Play(Protocol):
    """Runs a scenario and judges it."""

    def __call__(self, scenario: Scenario, *, target: Callable[[Clock], Target] = LocalTarget) -> Run: ...


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """One for all workers, so that the uninterrupted runs of a job are made once."""
    base = tmp_path_factory.getbasetemp()
    return RunStore((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "detection", SystemClock())


@pytest.fixture
def play(store: RunStore, request: pytest.FixtureRequest) -> Play:
    """Runs on the local target, or another one that is made for the run."""
    clock = SystemClock()
    options = Options(root=Path(request.config.rootpath), seed=SEED)

    def play(scenario: Scenario, *, target: Callable[[Clock], Target] = LocalTarget) -> Run:
        return run_scenario(scenario, target=lambda: target(clock), clock=clock, store=store, options=options)

    return play


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[Row], None]:
    """Puts a row into the matrix."""

    def report(row: Row) -> None:
        record_property(PROPERTY, str(row))

    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Draw the matrix, where trials have run."""
    reports = [report for of_kind in terminalreporter.stats.values() for report in of_kind if isinstance(report, pytest.TestReport)]
    rows = [Row.read(text) for report in reports if report.when == "call" for name, text in report.user_properties if name == PROPERTY]
    if rows:
        terminalreporter.section("detection")
        for line in draw(rows):
            terminalreporter.write_line(line)
