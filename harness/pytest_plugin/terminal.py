"""What chaos tests say on the terminal: before the first what they run with, after the last where to look."""

from collections.abc import Iterator

import pytest

from harness.pytest_plugin.asked import is_asked_for, runs_dir_asked_for
from harness.pytest_plugin.catalogue import belonging, catalogue_of
from harness.pytest_plugin.coverage import COVERAGE
from harness.pytest_plugin.workers import is_worker

RUN_DIRECTORY = "run_directory"
"""The property of a test that has run a job; workers of xdist send it along."""

UNTRIED = "Hypothesis has been told to run no test cases"
"""How it says that it skips a test: in the profile ``pr`` that nothing is known of which the test has failed before."""


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what chaos tests would run with, where they are asked for."""
    if not is_asked_for(config):
        return None
    said = f"chaos: target {config.getoption('--target')}, seed {config.getoption('--seed')}, runs in {config.getoption('--runs-dir')}"
    profile = config.getoption("--chaos-profile")
    return f"{said}, profile {profile}, --hypothesis-seed={config.getoption('--hypothesis-seed')}" if profile else said


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say where to look; the workers of xdist have run, so the index is made of what lies on disk."""
    if is_worker(config) or not (is_asked_for(config) or _has_run(terminalreporter, config)):
        return
    runs_dir = runs_dir_asked_for(config)
    if not runs_dir.exists():
        return
    from harness.clock import SystemClock
    from harness.report import write_index
    from harness.store import RunStore

    index = write_index(RunStore(runs_dir, SystemClock()))
    terminalreporter.write_line(f"chaos: reports in {index}")
    for line in _told_of_drawing(terminalreporter, config):
        terminalreporter.write_line(f"chaos: {line}")
    for name, coverage in sorted(config.stash[COVERAGE].items()):
        terminalreporter.write_line(f"chaos: {name}: {coverage}")
    if is_asked_for(config) and config.hook.pytest_harness_scenarios(config=config) is not None:
        left_out = len(catalogue_of(config)) - len(belonging(config))
        if left_out:
            target = config.getoption("--target")
            terminalreporter.write_line(
                f"chaos: {left_out} scenarios of the catalogue do not run on target {target}; `harness run NAME --target {target}` says why"
            )


def _has_run(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> bool:
    """Whether a job was run: a test that is named by its id needs no ``-m``."""
    reports = (report for of_kind in terminalreporter.stats.values() for report in of_kind)
    properties = (found for report in reports for found in getattr(report, "user_properties", ()))
    return bool(config.stash[COVERAGE]) or any(name == RUN_DIRECTORY for name, _ in properties)


def _told_of_drawing(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[str]:
    """The seed, where the header has not said it; and that ``pr`` has tried nothing, which looks green."""
    profile, seed = config.getoption("--chaos-profile"), config.getoption("--hypothesis-seed", default=None)
    if not profile and seed is not None and config.stash[COVERAGE]:
        yield f"drawn by --hypothesis-seed={seed}"
    untried = sum(UNTRIED in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ()))
    if profile == "pr" and untried:
        runs_dir = config.getoption("--runs-dir")
        where = f"{runs_dir}/.hypothesis, --chaos-examples names those of another run"
        yield f"profile pr has tried nothing of {untried} drawn tests: no failing examples are in {where}; --chaos-profile ci draws"
