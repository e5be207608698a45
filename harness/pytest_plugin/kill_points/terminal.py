"""What tests of kill points say on the terminal: which are tried, and what each job came to, which is written as an exploration."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin.asked import is_asked_for, is_to_be_kept, runs_dir_asked_for, seed_asked_for
from harness.pytest_plugin.kill_points.asked import choice_asked_for
from harness.pytest_plugin.kill_points.session import GONE, SESSION, planner_of, shown
from harness.pytest_plugin.workers import is_worker

if TYPE_CHECKING:
    from harness.explore.kill_points import Plan

VULNERABILITIES_MAX = 10
"""Of a job, told at the end; all are in its report."""


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which kill points are tried, where that is asked for."""
    if not is_asked_for(config) or not config.getoption("--kill-points"):
        return None
    return f"chaos: kill points: {choice_asked_for(config)}"


@pytest.hookimpl(tryfirst=True)  # before the index over all runs is written
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Write what all workers have judged as an exploration, and list its vulnerabilities."""
    for name in config.stash[GONE]:
        job = name.partition(":")[0]
        terminalreporter.write_line(
            f"chaos: {name}: the job {job} has no such kill point now; --collect-only -q --kill-points each lists its ids"
        )
    place = runs_dir_asked_for(config) / ".kill-points" / config.stash[SESSION]
    if is_worker(config) or not place.exists():
        return
    from harness.errors import HarnessError

    planner = planner_of(config)
    ran = exitstatus not in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED) and not config.getoption("--collect-only")
    for plan in planner.plans():
        if plan.directory and not (ran and planner.is_chosen(plan)):
            shutil.rmtree(plan.directory, ignore_errors=True)  # nothing was judged, and nothing should be
            continue
        try:
            for line in _reckoned(plan, config) if plan.directory else ():
                terminalreporter.write_line(f"chaos: {line}")
        except HarnessError as error:
            terminalreporter.write_line(f"chaos: {plan.job}: what was judged could not be written: {error}", red=True)
    planner.forget()


def _reckoned(plan: "Plan", config: pytest.Config) -> Iterator[str]:
    """Write down what a job comes to; yields what is told of it."""
    import msgspec

    from harness.cli.explore import summary_of
    from harness.clock import SystemClock
    from harness.explore.kill_points import forget_states, reckon
    from harness.store import RunDirectory

    directory = RunDirectory(Path(plan.directory))
    seed = seed_asked_for(config)
    found = reckon(plan, clock=SystemClock(), name=shown(directory.path), budget=f"pytest --kill-points: {choice_asked_for(config)}")
    summary = summary_of(found.exploration, directory, opened_at=plan.opened_at, seed=seed)
    directory.write(directory.summary_path, msgspec.json.encode(summary))
    if found.exploration.outcome == "valid" and not is_to_be_kept(config):
        forget_states(plan)
    yield f"{plan.job}: {found.exploration.outcome}: {found.told} ({choice_asked_for(config)}), report {shown(directory.report_path)}"
    for surface, vulnerability in found.vulnerabilities[:VULNERABILITIES_MAX]:
        yield f"  {surface}: {vulnerability.says}"
        yield f"    {vulnerability.example}"
        yield f"    {vulnerability.replay}"
    left = len(found.vulnerabilities) - VULNERABILITIES_MAX
    if left > 0:
        yield f"  and {left} more in the report"
