"""Launches and scenarios of a small job."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.capabilities import Launch
from harness.scenario import Injection, Scenario, Workload
from harness.scenario.expectations import Completes
from harness.targets.gcp.place import Place

PLACE = Place(project="test-project", region="europe-west4", bucket="test-bucket", job="trainer", image="some/image")


def launch_of(home: Path, **fields: Any) -> Launch:
    base = Launch(
        run_id="20260101T000000.000Z-0-abc",
        job="counter",
        command=("python3", "-m", "train", "--out", "/checkpoints"),
        directory=home,
        environment={"STEPS": "40"},
        checkpoint_dir=home / "checkpoints",
        logs_dir=home / "logs",
        epoch_s=100.0,
    )
    return replace(base, **fields)


def scenario_of(*injections: Injection) -> Scenario:
    workload = Workload(name="counter", command=("python3", "-m", "train"))
    return Scenario(name="some-scenario", why="a test", workload=workload, injections=injections, expects=(Completes(),))
