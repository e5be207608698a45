"""A budget: time from the first run, GPU-hours by what a run may hold."""

from harness.clock import ManualClock
from harness.gate.budget import Budget
from harness.gate.document import BudgetTable


def budget(clock: ManualClock, gpus: dict[str, int] | None = None, **allowed: float) -> Budget:
    return Budget(allowed=BudgetTable(**allowed), clock=clock, gpus=gpus or {}, began_s=clock.monotonic_s())


def test_time_is_used_up_when_it_is_over():
    clock = ManualClock()
    mine = budget(clock, duration_s=60.0)

    assert mine.exhausted({}) == ""
    clock.advance(60.0)
    assert mine.exhausted({}) == "the budget of 60 s is used up"


def test_gpu_hours_are_those_of_runs_that_are_over_and_of_runs_that_go_on():
    mine = budget(ManualClock(), {"a": 4, "b": 1}, gpu_hours=2.0)

    assert mine.exhausted({"a": 900.0, "b": 3599.0}) == ""
    assert mine.exhausted({"a": 900.0, "b": 3600.0}) == "the budget of 2 GPU-hours is used up"
    mine.charge({"a": 900.0})
    assert mine.gpu_hours == 1.0
    assert mine.exhausted({"b": 3600.0}) == "the budget of 2 GPU-hours is used up"


def test_where_no_gpu_is_held_none_is_used_up():
    assert budget(ManualClock(), gpu_hours=0.0).exhausted({"a": 1e9}) == ""
    assert budget(ManualClock(), {"a": 1}, gpu_hours=0.0).exhausted({}) != ""


def test_without_limits_it_goes_on():
    clock = ManualClock()
    mine = budget(clock, {"a": 8})
    clock.advance(1e6)
    assert mine.exhausted({"a": 1e9}) == ""
