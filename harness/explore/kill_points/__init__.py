"""The kill points of a recorded job as tests: each has a name that it keeps from run to run, and can be judged by itself."""

from harness.explore.kill_points.bench import Bench, KillPointRun
from harness.explore.kill_points.choice import MODES, Mode, Moments, choose, find_named
from harness.explore.kill_points.plans import Plan, Planner
from harness.explore.kill_points.reckoning import Reckoned, forget_states, reckon

__all__ = [
    "MODES",
    "Bench",
    "KillPointRun",
    "Mode",
    "Moments",
    "Plan",
    "Planner",
    "Reckoned",
    "choose",
    "find_named",
    "forget_states",
    "reckon",
]
