"""Schedules that are run, not enumerated: a verdict is remembered, a failure is made small, written down and run again.

*Run* (``running``) → *remember* (``memory``) → *shrink* (``shrinking``, ``passes``) → *write* (``failures``).
"""

from harness.explore.schedules.addresses import markers_of, operations_of, operations_since, read_recording
from harness.explore.schedules.coverage import Coverage
from harness.explore.schedules.failures import Failure, read_failure
from harness.explore.schedules.judged import ScheduleRun
from harness.explore.schedules.promises import scenario_of
from harness.explore.schedules.running import ScheduleRunner, run_schedule
from harness.explore.schedules.runs_made import coverage_in

__all__ = [
    "Coverage",
    "Failure",
    "ScheduleRun",
    "ScheduleRunner",
    "coverage_in",
    "markers_of",
    "operations_of",
    "operations_since",
    "read_failure",
    "read_recording",
    "run_schedule",
    "scenario_of",
]
