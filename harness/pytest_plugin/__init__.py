"""``pytest -m chaos``: one test id per scenario.

A scenario runs inside the fixture ``chaos_run`` and the test only asserts, so pytest's own words fit: PASSED is a valid run, FAILED a
broken promise of the job, ERROR a broken harness or a run that proved nothing, SKIPPED a target that is not here. A test that runs jobs
itself, by ``chaos_runner`` or ``chaos_schedule``, is FAILED by a run that proved nothing too: ``NothingProvedError`` tells it apart.

Loading it costs nothing: pytest does it at every start, so whatever is heavy is imported where it is used. The rooms that are named here
have hooks and fixtures, and do not know one another.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from harness.explore.schedules import ScheduleRun
    from harness.runner import Run
    from harness.scenario import Scenario, Schedule, Workload

ROOMS = (
    "harness.pytest_plugin.declarations",
    "harness.pytest_plugin.selection",
    "harness.pytest_plugin.profiles",
    "harness.pytest_plugin.bring_up",
    "harness.pytest_plugin.project",
    "harness.pytest_plugin.scenarios",
    "harness.pytest_plugin.schedules",
    "harness.pytest_plugin.terminal",
    "harness.pytest_plugin.kill_points.collection",
    "harness.pytest_plugin.kill_points.judging",
    "harness.pytest_plugin.kill_points.terminal",
)

ChaosRunner = Callable[["Scenario"], "Run"]
"""What the fixture ``chaos_runner`` gives: a scenario in, a judged run out."""

ScheduleTester = Callable[["Scenario | Workload", "Schedule"], "ScheduleRun"]
"""What the fixture ``chaos_schedule`` gives: a job and a schedule in, a judged run out."""

RecordProperty = Callable[[str, object], None]
"""pytest's ``record_property``."""


class NothingProvedError(Exception):
    """The verdict is unknown: not the job's fault, and no pass either."""


def pytest_addhooks(pluginmanager: "pytest.PytestPluginManager") -> None:
    """Register the rooms; for each name in ``pytest_plugins`` pytest would look through all that is installed, 2 ms each."""
    for name in ROOMS:
        pluginmanager.register(import_module(name), name)
