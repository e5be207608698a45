"""Which cells of the lives of jobs drawn schedules have hit, in this session."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.explore.schedules import Coverage, ScheduleRun
    from harness.scenario import Scenario, Schedule, Workload

COVERAGE: pytest.StashKey["dict[str, Coverage]"] = pytest.StashKey()
"""What drawn schedules have hit, by the job's name."""


def cover(config: pytest.Config, job: "Scenario | Workload", schedule: "Schedule", judged: "ScheduleRun") -> None:
    """Count which cells of the job's life a run has hit; one that proved nothing has hit none."""
    from harness.explore.schedules import Coverage

    coverage = config.stash[COVERAGE].setdefault(judged.scenario.workload.name, Coverage())
    events = () if judged.verdict.outcome == "unknown" else judged.history.events
    coverage.add(job, {injection.fault for injection in schedule.injections}, events)
