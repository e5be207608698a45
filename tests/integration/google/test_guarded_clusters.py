"""What a run on a cluster of a project does under a plan that was applied, by the whole way from the command line to the target."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.cli.project_plan import AskedOfProject, held, plan_or_apply, project_asked_for, told
from harness.clock import SystemClock
from harness.history import FaultRequested, GoldenKnown, read_history
from harness.runner import Run
from harness.scenario import Scenario
from harness.scenario.cluster_faults import CordonNode
from harness.scenario.expectations import BitExactResume, Completes
from harness.store import RunStore
from harness.targets.gcp.oversight import Oversight, RunAbortedError
from tests.integration.google.gke_runs import run_on, scenario_of
from tests.integration.google.gke_world import CLUSTER, GkeWorld


@pytest.fixture
def world(tmp_path: Path, own_state: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[GkeWorld]:
    running = GkeWorld(tmp_path)
    running.install(monkeypatch)
    yield running
    running.close()


def run_planned(scenario: Scenario, directory: Path) -> Run:
    """Plan it, apply the plan, and run it."""
    limits = {"gpu_hours": 1000.0, "blast_radius": 4, "duration_s": 86400.0}
    path, clock = directory / "plan.json", SystemClock()
    for apply in (None, path):
        asked = AskedOfProject(options={}, limits=limits, config=None, plans=apply is None, apply=apply, plan_file=path)
        project = project_asked_for("gcp", asked)
        code = plan_or_apply(project, [scenario], seed=0, clock=clock, as_json=False, root=directory)
        assert code == (0 if apply is None else None)
    with told(project), held(project, clock, directory / "runs"):
        return run_on(directory, scenario)


def test_a_planned_scenario_is_compared_with_its_uninterrupted_runs(world: GkeWorld, tmp_path: Path):
    run = run_planned(replace(scenario_of(), expects=(Completes(), BitExactResume())), tmp_path)
    known = [event for event in run.history.events if isinstance(event, GoldenKnown)]
    assert [event.equal for event in known] == [True], known
    assert not [name for name in world.namespaces() if name.startswith("harness-")]


def test_a_label_that_is_taken_back_during_the_run_stops_the_next_fault(world: GkeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    begin = Oversight.begin

    def then_take_back(oversight: Oversight, run_id: str, digest: str = "") -> None:
        begin(oversight, run_id, digest)
        fingerprint = world.clients.clusters.get_cluster(name=CLUSTER).label_fingerprint
        world.finish(world.clients.clusters.set_labels({"name": CLUSTER, "resource_labels": {}, "label_fingerprint": fingerprint}))

    monkeypatch.setattr(Oversight, "begin", then_take_back)
    with pytest.raises(RunAbortedError, match="its owner wants no faults on it"):
        run_planned(scenario_of(CordonNode()), tmp_path)
    (run,) = RunStore(tmp_path / "runs", SystemClock()).runs()
    assert not any(isinstance(event, FaultRequested) for event in read_history(run.history_path).events)
    assert not [name for name in world.namespaces() if name.startswith("harness-")]
