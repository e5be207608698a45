"""How long the ending of runs may take, and what is said of what they still owe."""

import os
from pathlib import Path

import msgspec
import pytest

from harness.cli import worker
from harness.cli.owed import owed_on, owing
from harness.cli.worker import Job, Message, Refused
from harness.clock import ManualClock, SystemClock
from harness.pytest_plugin.time_limits import _longest_s
from harness.scenario import Scenario, Workload
from harness.scenario.expectations import Completes
from harness.store import RunDirectory, RunStore
from harness.targets import ending_s_max
from harness.targets.gcp.footprint import remove_footprint, write_footprint
from harness.targets.gcp.place import Place
from harness.undo import (
    KeptOriginal,
    KillProcesses,
    NothingToUndo,
    ResizeNodePool,
    RestoreCluster,
    RestoreProject,
)

PLACE = Place(project="our-project", region="europe-west4", bucket="our-bucket", job="train")
POOL = "projects/our-project/locations/europe-west4/clusters/ours/nodePools/gpus"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in [name for name in os.environ if name.startswith("HARNESS_GCP_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("target", "cluster", "seconds"),
    [
        ("local", "", 30.0),
        ("docker", "", 30.0),
        ("kind", "", 840.0),
        ("gcp", "", 15.0 + 120.0 + 3 * 120.0),
        ("gcp", "ours", 2 * 1800.0 + 180.0 + 3 * 120.0),
    ],
)
def test_ending_takes_as_long_as_the_target_says(monkeypatch, target, cluster, seconds):
    place = {**PLACE.environment(), "HARNESS_GCP_CLUSTER": cluster}
    for name, value in (place | {"HARNESS_GCP_JOB": ""} if cluster else place).items():
        monkeypatch.setenv(name, value)

    assert ending_s_max(target, ManualClock()) == seconds


class Unheard:
    """Says it to nobody."""

    def say(self, message: Message) -> None:
        pass


def job(tmp_path: Path) -> Job:
    workload = Workload(name="job", command=("no-such-program",), steps=20)
    scenario = Scenario(name="a-job-one", why="a test", workload=workload, expects=(Completes(),))
    return Job(scenario=scenario, target="local", seed=0, keep=False, root=str(tmp_path), runs_dir=str(tmp_path / "runs"))


def test_a_run_says_how_long_its_end_may_take_when_whoever_sent_it_is_gone(tmp_path):
    worker.work(msgspec.structs.replace(job(tmp_path), ending_s_max=77.0), Unheard())

    (run,) = RunStore(tmp_path / "runs", SystemClock()).runs()
    owner = run.owner()
    assert owner is not None
    assert owner.ending_s_max == 77.0


def test_what_an_interrupted_run_could_not_do_is_told_with_the_command_that_does_it(tmp_path, monkeypatch):
    def interrupted(*_: object, options, store, **__: object) -> None:
        run, _ = store.create("a-job-one", 0)
        options.opened(run)
        run.undo.owe("1-kill@0", KillProcesses(processes=()))
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "run_scenario", interrupted)

    said = worker.work(job(tmp_path), Unheard())

    assert isinstance(said, Refused)
    assert said.message == "interrupted; owed: the undo of 1-kill@0; `harness clean` does it"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    found, _ = RunStore(tmp_path, SystemClock()).create("a-job-is-hit", 0)
    return found


def test_what_needs_nobody_is_not_owed(run):
    run.undo.owe("1", NothingToUndo(why="it is the run's own"))
    run.undo.owe("2", KeptOriginal(path="a", copy="b"))
    run.undo.owe("3", RestoreCluster(cluster="c", actions=()))
    run.undo.settle("3")

    assert owing(run) is None


def test_who_owes_something_to_a_project_is_known_by_its_undos_and_by_what_is_written_down_of_it(tmp_path, run):
    def owed(project: str = "our-project", emulator: str = "") -> list[str]:
        return owed_on(project, emulator, tmp_path, SystemClock(), is_asked=lambda _owner: True)

    assert owed() == []
    owner = run.owner()
    assert owner is not None
    write_footprint(owner.run_id, PLACE, {})
    (line,) = owed()
    assert line.startswith(
        f"run {owner.run_id}: owed: the end of what it has in projects/our-project/locations/europe-west4, gs://our-bucket;"
    )
    assert owed(emulator="grpc=127.0.0.1:1,http=127.0.0.1:2") == owed("another") == []
    remove_footprint(owner.run_id)
    run.undo.owe("1-lose-pool@0", RestoreProject(project="our-project", actions=(ResizeNodePool(name=POOL, node_count=3),)))
    (line,) = owed()
    assert "the undo of 1-lose-pool@0 on the project our-project" in line
    assert owed_on("our-project", "", tmp_path, SystemClock(), is_asked=lambda _owner: False) == []
    run.undo.settle("1-lose-pool@0")
    assert owed() == []


@pytest.mark.parametrize(("target", "more_s"), [("local", 60.0), ("gcp", 30.0 + 495.0)])
def test_the_timeout_of_a_test_leaves_a_run_the_time_to_end(tmp_path, target, more_s):
    scenario = job(tmp_path).scenario
    assert _longest_s(scenario, target) == scenario.deadline_s + more_s
