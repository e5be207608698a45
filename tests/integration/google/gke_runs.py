"""Runs on the cluster of a test: a job that counts, read by its log."""

from pathlib import Path

from harness.clock import SystemClock
from harness.runner import Options, Run, run_scenario
from harness.scenario import Fault, Injection, LogPatterns, Outside, Platform, Scenario, Workload
from harness.scenario.cluster import Cluster
from harness.scenario.expectations import Completes
from harness.scenario.triggers import AtStep
from harness.store import RunStore
from harness.targets import create, perform, remove_left_behind
from tests.integration.google.gke_world import STEPS

WORKLOAD = Workload(
    name="count",
    command=("count",),
    speaks_protocol=False,
    steps=STEPS,
    outside=Outside(logs=LogPatterns(step=r"^step (?P<step>\d+)", done="Training Complete!")),
)


def scenario_of(*faults: Fault, **fields: object) -> Scenario:
    injections = tuple(Injection(fault=fault, at=AtStep(step=10)) for fault in faults)
    return Scenario(
        name="on-a-project",
        why="a test",
        tags=("cluster",),
        workload=WORKLOAD,
        platform=Platform(max_retries=5),
        cluster=Cluster(chips=4),
        injections=injections,
        expects=(Completes(),),
        **fields,
    )


def run_on(directory: Path, scenario: Scenario) -> Run:
    """Run it on the place that the environment names."""
    clock = SystemClock()
    options = Options(root=directory, keep=True)
    store = RunStore(directory / "runs", clock)
    return run_scenario(scenario, target=lambda: create("gcp", clock), clock=clock, store=store, options=options)


def clean_up(directory: Path) -> None:
    """What ``harness clean`` does for each run whose process is gone."""
    clock = SystemClock()
    for run in RunStore(directory / "runs", clock).runs():
        for entry in reversed(run.undo.owed()):
            assert entry.undo is not None
            perform(entry.undo, clock)
            run.undo.settle(entry.injection)
        owner = run.owner()
        assert owner is not None
        remove_left_behind(owner.run_id, clock)
