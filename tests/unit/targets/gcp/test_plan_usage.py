"""What a plan has used: over all its runs, however they end, and never less than it was."""

import os
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from harness.clock import ManualClock
from harness.errors import StoreError
from harness.targets.gcp.footprint import footprints, footprints_directory
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Exposure, Limits, Plan, PlannedScenario
from harness.targets.gcp.plan_usage import KEPT_S, PlanUsage, Share, Used

COST = Exposure(executions=3, tasks=2, attempts=2, timeout_s=3600.0, gpus=4)
"""16 GPU-hours an execution: 2 tasks × 2 attempts × 1 h × 4 GPUs."""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def plan(clock) -> Plan:
    now = clock.utc()
    place = Place(project="our-project", region="europe-west4", bucket="our-bucket", job="train")
    scenario = PlannedScenario(name="one", digest="d1", seed=0, exposure=COST, duration_s=60.0, uninterrupted="u1")
    return Plan(
        made_at=now, expires_at=now + timedelta(hours=1), place=place, limits=Limits(), scenarios=(scenario,), resources=(), permissions=()
    )


def file_of(plan: Plan, clock: ManualClock) -> Path:
    PlanUsage(plan, clock).begin("first", Share(gpus=0, gpu_hours=0.0))
    (found,) = (footprints_directory() / "plans").glob("*.jsonl")
    return found


def test_a_run_has_the_gpus_of_its_scenario_and_one_that_is_not_named_all_of_them(plan, clock):
    usage = PlanUsage(plan, clock)
    assert usage.share_of("d1") == usage.share_of("u1") == Share(gpus=8, gpu_hours=16.0)
    assert usage.share_of("") == usage.share_of("other") == Share(gpus=8, gpu_hours=48.0)


def test_runs_add_up_whoever_makes_them_and_however_often_it_is_applied(plan, clock):
    assert PlanUsage(plan, clock).used() == Used(gpu_hours=0.0, elapsed_s=0.0)
    PlanUsage(plan, clock).begin("run-1", Share(gpus=8, gpu_hours=16.0))
    clock.sleep(1800.0)
    PlanUsage(plan, clock).begin("run-2", Share(gpus=2, gpu_hours=16.0))
    clock.sleep(1800.0)
    assert PlanUsage(plan, clock).used() == Used(gpu_hours=8.0 + 1.0, elapsed_s=3600.0)
    PlanUsage(plan, clock).end("run-1")
    clock.sleep(1800.0)
    assert PlanUsage(plan, clock).used() == Used(gpu_hours=8.0 + 2.0, elapsed_s=5400.0)


def test_a_run_whose_end_nobody_wrote_counts_on_up_to_all_that_it_may_cost(plan, clock):
    PlanUsage(plan, clock).begin("killed", Share(gpus=8, gpu_hours=16.0))
    clock.sleep(7200.0)
    assert PlanUsage(plan, clock).used().gpu_hours == 16.0
    clock.sleep(7200.0)
    assert PlanUsage(plan, clock).used().gpu_hours == 16.0


def test_a_run_that_was_seen_to_end_late_has_used_what_it_has_used(plan, clock):
    PlanUsage(plan, clock).begin("late", Share(gpus=8, gpu_hours=16.0))
    clock.sleep(4 * 3600.0)
    PlanUsage(plan, clock).end("late")
    assert PlanUsage(plan, clock).used().gpu_hours == 32.0


def test_a_run_that_is_begun_twice_counts_from_its_first_begin(plan, clock):
    PlanUsage(plan, clock).begin("run-1", Share(gpus=1, gpu_hours=9.0))
    clock.sleep(3600.0)
    PlanUsage(plan, clock).begin("run-1", Share(gpus=1, gpu_hours=9.0))
    assert PlanUsage(plan, clock).used().gpu_hours == 1.0


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_what_a_crash_has_cut_off_costs_no_other_line(plan, clock, cut: int):
    path = file_of(plan, clock)
    PlanUsage(plan, clock).begin("cut", Share(gpus=1, gpu_hours=9.0))
    path.write_bytes(path.read_bytes()[:-cut])
    PlanUsage(plan, clock).begin("whole", Share(gpus=1, gpu_hours=9.0))
    clock.sleep(3600.0)
    assert PlanUsage(plan, clock).used().gpu_hours == (2.0 if cut == 1 else 1.0)


def test_plans_do_not_share(plan, clock):
    PlanUsage(plan, clock).begin("run-1", Share(gpus=1, gpu_hours=9.0))
    clock.sleep(3600.0)
    another = msgspec.structs.replace(plan, made_at=plan.made_at + timedelta(seconds=1))
    assert PlanUsage(another, clock).used() == Used(gpu_hours=0.0, elapsed_s=0.0)


def test_where_it_cannot_be_written_nothing_begins(plan, clock):
    footprints_directory().mkdir(parents=True)
    (footprints_directory() / "plans").write_text("a file")
    with pytest.raises(StoreError, match="write what the plan uses to"):
        PlanUsage(plan, clock).begin("run-1", Share(gpus=1, gpu_hours=9.0))


def test_what_cannot_be_read_is_not_nothing(plan, clock):
    path = file_of(plan, clock)
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="read what the plan has used from"):
        PlanUsage(plan, clock).used()


def test_it_is_no_footprint_and_old_ones_go(plan, clock):
    old = file_of(plan, clock)
    assert footprints() == []
    clock.sleep(KEPT_S + old.stat().st_mtime - clock.utc().timestamp() + 1.0)
    PlanUsage(msgspec.structs.replace(plan, jobs=2), clock).begin("run-1", Share(gpus=1, gpu_hours=9.0))
    assert not old.exists()


def test_a_line_that_a_full_disk_cuts_off_is_written_again(plan, clock, monkeypatch):
    whole, cut = os.write, [7]
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, data[: cut.pop()] if cut else data))

    PlanUsage(plan, clock).begin("run-1", Share(gpus=8, gpu_hours=16.0))

    clock.sleep(1800.0)
    assert PlanUsage(plan, clock).used() == Used(gpu_hours=4.0, elapsed_s=1800.0)


def test_a_run_whose_line_is_never_whole_does_not_begin(plan, clock, monkeypatch):
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, data[:7]))

    with pytest.raises(StoreError, match="only part of a line could be written"):
        PlanUsage(plan, clock).begin("run-1", Share(gpus=8, gpu_hours=16.0))
