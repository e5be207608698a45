"""Hypothesis strategies for when, how and whom to kill; the only room of the harness that imports Hypothesis.

``kill_schedules`` and ``schedules`` draw values for a test of one's own; ``load_profile`` sets how many, and what is done with a failure.
"""

from harness.explore.aims.choice import Known
from harness.strategies.profiles import PROFILES, Effort, load_profile
from harness.strategies.schedules import FAULTS, kill_schedules, schedules

__all__ = ["FAULTS", "PROFILES", "Effort", "Known", "kill_schedules", "load_profile", "schedules"]
