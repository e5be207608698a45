"""What earlier runs have hit."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.clock import ManualClock
from harness.explore.schedules.cases import Case, Trial
from harness.explore.schedules.memory import VerdictMemory
from harness.explore.schedules.running import VERDICTS_NAME
from harness.explore.schedules.runs_made import coverage_in
from harness.history import Booted, FaultObserved, FaultRequested, HistoryWriter, RunClosed, RunOpened, StepDone
from harness.runner.golden import golden_key, golden_scenario
from harness.scenario import Scenario, Workload, encode
from harness.scenario.cells import Cell
from harness.scenario.expectations import Completes
from harness.scenario.faults import Kill
from harness.store import RunStore
from harness.verdict import Outcome

JOB = Workload(name="job", command=("job",), steps=20, save_every=5, sources=("job.py",))
IN_STEP = Cell("step", "process", "all", "first")
OPENED = RunOpened(t_s=0.0, schema=1, run_id="1", scenario="job-is-hit", target="local", seed=3, opened_at="now")
HIT = (
    Booted(t_s=0.1),
    StepDone(t_s=0.3, step=1),
    FaultRequested(t_s=1.0, injection="1-kill", fault="kill"),
    FaultObserved(t_s=1.1, injection="1-kill", evidence="gone"),
    RunClosed(t_s=2.0, reason="finished", ended_s=2.0),
)


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "job.py").write_text("as it was")
    return tmp_path


@pytest.fixture
def store(root) -> RunStore:
    return RunStore(root / "runs", ManualClock())


def leave(store: RunStore, workload: Workload = JOB, *, target: str = "local", outcome: Outcome = Outcome.VALID, after=HIT[:2]) -> Path:
    directory, _ = store.create(f"{workload.name}-is-hit", OPENED.seed)
    scenario = Scenario(name=f"{workload.name}-is-hit", why="x", workload=workload, expects=(Completes(),))
    directory.write(directory.scenario_path, encode(scenario))
    writer = HistoryWriter(directory.history_path)
    writer.append((replace(OPENED, target=target), *after, *HIT[2:]))
    writer.close()
    directory.write(directory.verdict_path, b"{}")
    job = golden_key(golden_scenario(scenario), root=store.root.parent, seed=OPENED.seed, target=target)
    key = Case(scenario=scenario, target=target, seed=OPENED.seed).key(job)
    VerdictMemory(store.root / VERDICTS_NAME).keep(key, Trial(outcome=outcome, run=str(directory.path)))
    return directory.path


def covered(store: RunStore, **asked: str) -> set[Cell]:
    return coverage_in(store.root, JOB, (Kill(),), root=store.root.parent, **asked).covered


def test_what_runs_of_the_job_have_hit_is_not_left(store, root):
    leave(store)

    found = coverage_in(store.root, JOB, (Kill(),), root=root)

    assert found.covered == {IN_STEP}
    assert IN_STEP not in found.left
    assert Cell("save", "process", "all", "first") in found.left


def test_another_job_has_hit_nothing_of_it(store):
    leave(store, replace(JOB, name="other"))
    leave(store, replace(JOB, steps=10))
    assert covered(store) == set()


def test_what_the_job_was_before_it_was_changed_counts_no_more(store, root):
    leave(store)
    assert covered(store) == {IN_STEP}

    (root / "job.py").write_text("as it is now")

    assert covered(store) == set()


def test_runs_of_another_target_and_runs_that_proved_nothing_do_not_count(store):
    leave(store, target="docker")
    assert covered(store) == set()
    leave(store, after=())
    leave(store, replace(JOB, environment={"A": "1"}), outcome=Outcome.UNKNOWN)
    assert covered(store) == {Cell("init", "process", "all", "first")}
    assert covered(store, target="docker") == {IN_STEP}
    assert coverage_in(store.root, replace(JOB, environment={"A": "1"}), (Kill(),), root=store.root.parent).covered == set()


def test_where_nothing_was_made_or_nothing_can_be_read_all_is_left(store):
    assert covered(store) == set()
    (leave(store) / "history.jsonl").write_bytes(b"no event\nat all\n")
    assert covered(store) == set()


def test_so_many_faults_as_a_schedule_may_have_can_hit_what_is_left(store, root):
    fewer, more = (coverage_in(store.root, JOB, (Kill(),), root=root, faults_max=faults).left for faults in (1, 3))
    assert {cell.attempt for cell in fewer} == {"first"}
    assert {cell.attempt for cell in more} == {"first", "second", "later"}
