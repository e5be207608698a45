"""What a run on a project refuses when it begins, by the whole way from the command line's plan to the target; nothing is left of it."""

from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from google.cloud import run_v2
from msgspec.structs import replace

from harness.emulator.session import BUCKET, PROJECT
from harness.history import FaultRequested, StepDone, read_history
from harness.scenario import Outside
from harness.scenario.expectations import SameResult
from harness.targets.gcp.applied import NotPlannedError
from harness.targets.gcp.connection import connect
from harness.targets.gcp.footprint import footprints_directory
from harness.targets.gcp.job_volumes import AGENT_VOLUME
from harness.targets.gcp.oversight import Oversight, RunAbortedError, SharedProjectError
from harness.targets.gcp.secrets import Secrets
from harness.verdict import Outcome
from tests.integration.google.conftest import Emulate
from tests.integration.google.course import KILLED, PLACE, Course

RUN_JOB = "google.cloud.run.v2.Jobs/RunJob"
THEIRS = {"harness-chaos": "allowed", "harness-run": "0123456789ab", "harness-lock": "0123456789abcdef"}


@pytest.fixture
def course(emulate: Emulate, tmp_path: Path) -> Course:
    return Course(emulate(projects=(PROJECT,), buckets=("another-bucket",)), tmp_path)


def begun(course: Course) -> int:
    return sum(call.method == RUN_JOB for call in course.emulator.world.calls.all())


def test_while_somebody_with_another_bucket_has_the_project_nothing_is_run(course: Course):
    course.begin("run")
    volumes = [run_v2.Volume(name=AGENT_VOLUME, gcs=run_v2.GCSVolumeSource(bucket="another-bucket"))]
    task = run_v2.TaskTemplate(containers=[run_v2.Container(image="job")], volumes=volumes)
    job = run_v2.Job(labels=THEIRS, template=run_v2.ExecutionTemplate(template=task))
    with closing(connect(PROJECT, course.emulator.endpoints.environment(), Secrets())) as clients:
        clients.jobs.create_job(parent=PLACE.parent, job=job, job_id="theirs").result(timeout=30)

    with pytest.raises(SharedProjectError, match="theirs is the job of run 0123456789ab, with the bucket another-bucket"):
        course.play("run")

    assert begun(course) == 0
    assert course.leftovers() == ["job theirs"]


def test_a_plan_whose_runs_have_used_up_its_limits_runs_nothing_more(course: Course):
    course.begin("run")
    course.play("run")
    (path,) = (footprints_directory() / "plans").glob("*.jsonl")
    lines = [msgspec.json.decode(line) for line in path.read_bytes().split()]
    runs = [line["run_id"] for line in lines]
    assert runs == [runs[0], runs[0]]  # that it began, and that it was over
    assert [line.get("share", {}).get("gpu_hours") for line in lines] == [0.0, None]  # a job without GPUs
    before = begun(course)

    course.pass_time(3601.0)  # more than duration_s; a plan that was applied in time may last so long
    with pytest.raises(RunAbortedError, match=r"the runs of its plan have lasted for .* s, and duration_s is 3600"):
        course.run(KILLED)

    assert begun(course) == before == 1
    assert course.leftovers() == []


def test_a_planned_scenario_is_compared_with_its_uninterrupted_runs(course: Course):
    workload = replace(KILLED.workload, outside=Outside(result="{checkpoint_dir}/counter-task-0-checkpoint.txt"))
    compared = replace(KILLED, workload=workload, expects=(*KILLED.expects, SameResult()))
    assert course.plan(compared) == 0
    course.apply(compared)

    run = course.run(compared)

    assert run.verdict.outcome is Outcome.VALID, run.explain()
    assert any(finding.checker == "same-result" for finding in run.verdict.findings)
    assert begun(course) == 3  # the scenario, and its two uninterrupted runs
    assert course.leftovers() == []


def test_a_label_that_is_taken_back_during_the_run_stops_the_next_fault(course: Course, monkeypatch: pytest.MonkeyPatch):
    begin = Oversight.begin

    def then_take_back(oversight: Oversight, run_id: str, digest: str = "") -> None:
        begin(oversight, run_id, digest)
        with closing(connect(PROJECT, course.emulator.endpoints.environment(), Secrets())) as clients:
            bucket = clients.storage.get_bucket(BUCKET)
            bucket.labels = {}
            bucket.patch()

    monkeypatch.setattr(Oversight, "begin", then_take_back)  # the next look of its own is 30 s later, and the run shorter
    course.begin("run")
    with pytest.raises(RunAbortedError, match="its owner wants no faults on it"):
        course.play("run")

    (run,) = course.store.runs()
    events = read_history(run.history_path).events
    assert any(isinstance(event, StepDone) for event in events)
    assert not any(isinstance(event, FaultRequested) for event in events)
    assert course.leftovers() == []


@pytest.mark.parametrize(
    "other", [replace(KILLED, name="another-killed-job-is-tried-again"), replace(KILLED, deadline_s=61.0)], ids=["name", "deadline"]
)
def test_under_a_plan_nothing_else_is_run(course: Course, other):
    course.begin("run")

    with pytest.raises(NotPlannedError, match="with seed 0 is not of the plan that was applied to project"):
        course.run(other)

    assert begun(course) == 0
    assert course.leftovers() == []
