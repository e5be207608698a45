"""Plans, the lock of a project, sweeps and undos, with Google's own clients against the emulator."""

import os
import random
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from google.cloud import run_v2

from harness.cli.commands import run_app
from harness.cli.project_plan import AskedOfProject, Project, plan_or_apply, project_asked_for
from harness.clock import SystemClock
from harness.emulator import ApiError, Emulator, InjectedFault
from harness.emulator.failures import permission_denied, unavailable
from harness.emulator.project import ProjectState
from harness.errors import HarnessError, UsageError
from harness.runner.golden import golden_scenario
from harness.scenario import Injection, Platform, Scenario, Workload, encode
from harness.scenario.expectations import Completes, SameResult
from harness.scenario.faults import Kill
from harness.scenario.triggers import AfterSeconds
from harness.targets.gcp.applied import NotAppliedError, NotPlannedError, require_applied
from harness.targets.gcp.applying import PlanDriftedError, PlanOfAnotherError, PlanProblemError
from harness.targets.gcp.calling import Caller, RetryPolicy
from harness.targets.gcp.connection import Clients, connect
from harness.targets.gcp.guard import OverLimitError
from harness.targets.gcp.job_volumes import AGENT_VOLUME
from harness.targets.gcp.lock_holders import LockedError, LockLostError
from harness.targets.gcp.lock_objects import BucketLockObject, lock_name
from harness.targets.gcp.oversight import LOOKED_EVERY_S, Oversight, RunAbortedError, SharedProjectError
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Limits, Plan, read_plan, write_plan
from harness.targets.gcp.project_holding import LOCK_VARIABLE, project_held
from harness.targets.gcp.project_lock import RENEW_EVERY_S, ProjectLock
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.undoing import restore
from harness.undo import CancelRunExecution, RestoreProject
from tests.integration.google.conftest import Emulate

PROJECT = "our-project"
PLACE = Place(project=PROJECT, region="europe-west4", bucket="our-bucket", job="train")
OPTIONS = {"project": PROJECT, "region": PLACE.region, "bucket": PLACE.bucket, "job": PLACE.job}
ALLOWED = {"harness-chaos": "allowed"}
SCENARIO = Scenario(
    name="killed-job-resumes",
    why="a host error",
    workload=Workload(name="train", command=("python", "train.py")),
    platform=Platform(max_retries=1, timeout_s=600.0),
    injections=(Injection(fault=Kill(), at=AfterSeconds(seconds=1.0)),),
    expects=(Completes(),),
)


@pytest.fixture
def state() -> ProjectState:
    return ProjectState(name=PROJECT, number=123456789012)


@pytest.fixture
def emulator(emulate: Emulate, state: ProjectState) -> Emulator:
    return emulate(projects=[state], buckets=[PLACE.bucket, "another-bucket"])


@pytest.fixture
def clients(emulator: Emulator):
    with closing(connect(PROJECT, emulator.endpoints.environment(), Secrets())) as found:
        yield found


def make_job(clients: Clients, name: str = PLACE.job, labels: dict[str, str] | None = None, gpus: int = 1) -> None:
    limits = {"nvidia.com/gpu": str(gpus), "cpu": "4", "memory": "16Gi"} if gpus else {}
    container = run_v2.Container(image="job", resources=run_v2.ResourceRequirements(limits=limits), command=["sleep", "60"])
    task = run_v2.TaskTemplate(containers=[container], max_retries=3)
    if gpus:
        task.node_selector = run_v2.NodeSelector(accelerator="nvidia-l4")
        task.gpu_zonal_redundancy_disabled = True
    job = run_v2.Job(labels=ALLOWED if labels is None else labels, template=run_v2.ExecutionTemplate(template=task))
    clients.jobs.create_job(parent=PLACE.parent, job=job, job_id=name).result(timeout=30)


def label_bucket(clients: Clients, labels: dict[str, str]) -> None:
    bucket = clients.storage.get_bucket(PLACE.bucket)
    bucket.labels = labels
    bucket.patch()


@pytest.fixture
def adopted(clients: Clients) -> None:
    make_job(clients)
    label_bucket(clients, ALLOWED)


def asked(tmp_path: Path, *, apply: bool = False, gpu_hours: float = 10.0, **options: str) -> AskedOfProject:
    path = tmp_path / "plan.json"
    limits = {"gpu_hours": gpu_hours, "blast_radius": None, "duration_s": None}
    named = {} if apply and not options else OPTIONS | options
    then = "harness run --target gcp --apply plan.json"
    return AskedOfProject(
        options=named, limits=limits, config=None, plans=not apply, apply=path if apply else None, plan_file=path, then=then
    )


def plan_once(tmp_path: Path, scenario: Scenario = SCENARIO, **options: str) -> tuple[int, Plan]:
    project = project_asked_for("gcp", asked(tmp_path, **options))
    assert project is not None
    code = plan_or_apply(project, [scenario], seed=0, clock=SystemClock(), as_json=False)
    assert code is not None
    return code, read_plan(tmp_path / "plan.json")


def apply_once(tmp_path: Path, scenario: Scenario = SCENARIO, *, seed: int = 0, gpu_hours: float = 10.0, **options: str) -> Project:
    project = project_asked_for("gcp", asked(tmp_path, apply=True, gpu_hours=gpu_hours, **options))
    assert project is not None
    assert plan_or_apply(project, [scenario], seed=seed, clock=SystemClock(), as_json=False) is None
    return project


@pytest.mark.usefixtures("adopted")
def test_a_plan_reads_the_real_things_and_writes_none(emulator, tmp_path: Path, capsys):
    before = emulator.world.calls.writes()
    code, plan = plan_once(tmp_path)
    assert (code, plan.problems) == (0, ())
    assert emulator.world.calls.writes() == before
    assert len(emulator.world.calls.all()) > len(before)
    job = next(resource for resource in plan.resources if resource.kind == "job")
    assert job.action == "adopt"
    assert job.facts["labels.harness-chaos"] == "allowed"
    assert job.facts["uid"]
    assert job.facts["etag"]
    assert plan.gpu_hours == pytest.approx(600.0 / 3600.0 * 2)
    assert {permission.is_held for permission in plan.permissions} == {True, None}
    shown = capsys.readouterr().out
    for told in ("nothing was changed", PLACE.job_name, "killed-job-resumes", "0.33", "1 task ", "--apply"):
        assert told in shown
    assert f"task 0 of the run's execution of {PLACE.job_name}" in shown


@pytest.mark.usefixtures("adopted")
@pytest.mark.parametrize("said", [[], ["--plan"]])
def test_whoever_says_nothing_gets_a_plan_and_nothing_is_written(emulator, tmp_path: Path, capsys, monkeypatch, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.json").write_bytes(encode(SCENARIO))
    place = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
    before = emulator.world.calls.writes()
    assert run_app(["run", "scenario.json", "--target", "gcp", *place, *said]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert emulator.world.calls.writes() == before
    assert (tmp_path / "plan.json").is_file()
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("adopted")
def test_a_plan_that_holds_is_applied_and_names_its_own_place(tmp_path: Path, monkeypatch):
    plan_once(tmp_path)
    for name in PLACE.environment():
        monkeypatch.setenv(name, "")
    project = apply_once(tmp_path)
    assert project.place == PLACE
    assert require_applied(PLACE, SystemClock(), project.environment(), scenario=SCENARIO) == read_plan(tmp_path / "plan.json")


def test_nothing_begins_on_a_project_without_a_plan():
    with pytest.raises(NotAppliedError, match="nothing begins on project our-project"):
        require_applied(PLACE, SystemClock(), {}, scenario=SCENARIO)


@pytest.mark.usefixtures("adopted")
def test_an_applied_plan_begins_its_own_scenarios_and_seeds_only(tmp_path: Path):
    compared = msgspec.structs.replace(SCENARIO, expects=(Completes(), SameResult()))
    plan_once(tmp_path, compared)
    told = apply_once(tmp_path, compared).environment()
    for known in (compared, golden_scenario(compared)):
        assert require_applied(PLACE, SystemClock(), told, scenario=known) is not None
    for other in (SCENARIO, golden_scenario(msgspec.structs.replace(compared, deadline_s=61.0)), None):
        with pytest.raises(NotPlannedError, match="is not of the plan that was applied to project our-project"):
            require_applied(PLACE, SystemClock(), told, scenario=other)
    with pytest.raises(NotPlannedError, match="seed 1"):
        require_applied(PLACE, SystemClock(), told, scenario=compared, seed=1)
    with pytest.raises(PlanOfAnotherError, match="project: planned our-project, found their-project"):
        require_applied(msgspec.structs.replace(PLACE, project="their-project"), SystemClock(), told, scenario=compared)


@pytest.mark.usefixtures("adopted")
def test_scenarios_that_run_at_once_count_together(tmp_path: Path):
    two = [SCENARIO, msgspec.structs.replace(SCENARIO, name="another-killed-job-resumes")]
    project = project_asked_for("gcp", asked(tmp_path))
    assert plan_or_apply(project, two, seed=0, clock=SystemClock(), as_json=False, jobs=1) == 0
    applied = project_asked_for("gcp", asked(tmp_path, apply=True))
    with pytest.raises(PlanOfAnotherError, match="scenarios at once: planned 1, found 3"):
        plan_or_apply(applied, two, seed=0, clock=SystemClock(), as_json=False, jobs=3)
    assert plan_or_apply(project, two, seed=0, clock=SystemClock(), as_json=False, jobs=2) == 64
    plan = read_plan(tmp_path / "plan.json")
    assert (plan.jobs, plan.gpus, plan.blast_radius) == (2, 2, 2)
    assert plan.problems == ("2 scenarios at once (--jobs) hit 2 tasks or nodes, and blast_radius is 1",)
    assert {quota.needed for quota in plan.quotas} == {2.0}


@pytest.mark.usefixtures("adopted")
def test_limits_that_were_widened_in_the_plan_are_refused(tmp_path: Path):
    plan_once(tmp_path)
    path = tmp_path / "plan.json"
    write_plan(msgspec.structs.replace(read_plan(path), limits=Limits(gpu_hours=500.0, duration_s=9e9)), path)
    with pytest.raises(OverLimitError, match=r"the plan has gpu_hours 500, and it is 10; the plan has duration_s 9e\+09, and it is 3600"):
        apply_once(tmp_path)


def test_what_else_a_job_mounts_is_in_the_plan_and_its_change_is_drift(clients, tmp_path: Path):
    label_bucket(clients, ALLOWED)
    mount_production(clients)
    code, plan = plan_once(tmp_path)
    assert (code, plan.problems) == (0, ())
    job = next(resource for resource in plan.resources if resource.kind == "job")
    assert job.facts["volumes.prod"] == "gs://our-bucket read-only"
    assert "what else the job mounts, its copies mount so: gs://our-bucket read-only" in plan.notes
    found = clients.jobs.get_job(name=PLACE.job_name)
    found.template.template.containers[0].volume_mounts = []
    found.template.template.volumes = []
    clients.jobs.update_job(job=found).result(timeout=30)
    with pytest.raises(PlanDriftedError, match=r"volumes\.prod: planned gs://our-bucket read-only, found nothing"):
        apply_once(tmp_path)


def mount_production(clients: Clients) -> None:
    """A job that writes elsewhere than to its checkpoints."""
    container = run_v2.Container(image="job", volume_mounts=[run_v2.VolumeMount(name="prod", mount_path="/mnt/prod")])
    volumes = [run_v2.Volume(name="prod", gcs=run_v2.GCSVolumeSource(bucket=PLACE.bucket))]
    template = run_v2.ExecutionTemplate(template=run_v2.TaskTemplate(containers=[container], volumes=volumes, max_retries=3))
    job = run_v2.Job(labels=ALLOWED, template=template)
    clients.jobs.create_job(parent=PLACE.parent, job=job, job_id=PLACE.job).result(timeout=30)


@pytest.mark.usefixtures("adopted")
def test_a_job_that_was_changed_since_is_named_with_both_values(clients, tmp_path: Path):
    plan_once(tmp_path)
    job = clients.jobs.get_job(name=PLACE.job_name)
    job.template.template.max_retries = 0
    clients.jobs.update_job(job=job).result(timeout=30)
    with pytest.raises(PlanDriftedError) as caught:
        apply_once(tmp_path)
    fields = {drift.field.rpartition(": ")[2]: (drift.planned, drift.found) for drift in caught.value.drifts}
    assert fields["max_retries"] == ("3", "0")
    assert fields["generation"] == ("1", "2")
    assert fields["etag"][0] != fields["etag"][1]
    assert "images" not in fields


@pytest.mark.usefixtures("adopted")
def test_a_label_that_was_taken_back_ends_it(clients, tmp_path: Path):
    plan_once(tmp_path)
    label_bucket(clients, {})
    with pytest.raises(PlanDriftedError, match=r"labels\.harness-chaos: planned allowed, found nothing"):
        apply_once(tmp_path)


@pytest.mark.usefixtures("adopted")
def test_a_job_of_the_same_name_made_since_is_another(clients, tmp_path: Path):
    plan_once(tmp_path)
    clients.jobs.delete_job(name=PLACE.job_name).result(timeout=30)
    make_job(clients)
    with pytest.raises(PlanDriftedError, match="uid: planned"):
        apply_once(tmp_path)


@pytest.mark.usefixtures("adopted")
def test_a_permission_that_was_lost_since_is_named(state, tmp_path: Path):
    plan_once(tmp_path)
    state.granted = frozenset({"run.jobs.get", "storage.buckets.get", "storage.objects.get", "storage.objects.list"})
    with pytest.raises(PlanDriftedError, match=r"storage\.objects\.delete on b/our-bucket: planned held, found missing"):
        apply_once(tmp_path)


@pytest.mark.usefixtures("adopted")
def test_a_plan_of_other_things_is_refused_without_asking_the_project(emulator, tmp_path: Path):
    plan_once(tmp_path)
    before = len(emulator.world.calls.all())
    with pytest.raises(PlanOfAnotherError, match="bucket: planned our-bucket, found another-bucket"):
        apply_once(tmp_path, bucket="another-bucket")
    with pytest.raises(PlanOfAnotherError, match="scenario killed-job-resumes"):
        apply_once(tmp_path, msgspec.structs.replace(SCENARIO, deadline_s=61.0))
    with pytest.raises(PlanOfAnotherError, match="scenario killed-job-resumes"):
        apply_once(tmp_path, seed=1)
    assert len(emulator.world.calls.all()) == before


@pytest.mark.usefixtures("adopted")
def test_limits_hold_when_planned_and_when_applied(tmp_path: Path):
    plan_once(tmp_path)
    with pytest.raises(OverLimitError, match=r"0\.33 GPU-hours at worst, and gpu_hours is 0\.1"):
        apply_once(tmp_path, gpu_hours=0.1)
    code, plan = plan_once(tmp_path, gpu_hours=0.1)
    assert code == 64
    assert "GPU-hours at worst" in plan.problems[0]
    with pytest.raises(PlanProblemError):
        apply_once(tmp_path)


def test_all_that_stands_in_the_way_is_told_at_once(clients, state, tmp_path: Path, capsys):
    make_job(clients, labels={})
    state.granted = frozenset({"run.jobs.get", "storage.buckets.get"})
    code, plan = plan_once(tmp_path)
    assert code == 64
    told = "\n".join(plan.problems)
    for problem in ("train is not labelled", "bucket our-bucket is not labelled", "run.jobs.run", "storage.objects.create"):
        assert problem in told
    assert "mend the problems" in capsys.readouterr().out


def test_what_is_not_there_is_told_and_a_job_with_an_image_is_made(clients, tmp_path: Path):
    label_bucket(clients, ALLOWED)
    code, plan = plan_once(tmp_path)
    assert (code, plan.problems) == (64, (f"job {PLACE.job_name} is not there; name an image, and it is made",))
    code, plan = plan_once(tmp_path, image="ours", gpus="1")
    assert (code, plan.problems) == (0, ())
    assert plan.gpu_hours == pytest.approx(600.0 / 3600.0 * 2)


FAILURES = {
    "permission": (permission_denied("run.jobs.get", PLACE.job_name), "run.jobs.get"),
    "internal": (ApiError(code="INTERNAL", message="broken"), "INTERNAL"),
    "invalid": (ApiError(code="INVALID_ARGUMENT", message="bad"), "INVALID_ARGUMENT"),
}


@pytest.mark.usefixtures("adopted")
@pytest.mark.parametrize("method", ["google.cloud.run.v2.Jobs/GetJob", "storage.buckets.get"])
@pytest.mark.parametrize("kind", FAILURES)
def test_what_cannot_be_read_is_a_problem_and_never_a_plan(emulator, tmp_path: Path, method, kind, monkeypatch):
    monkeypatch.setattr(RetryPolicy, "__init__", quick(RetryPolicy.__init__))
    error, told = FAILURES[kind]
    emulator.world.injections.add(InjectedFault(method=method, error=error, times=0))
    code, plan = plan_once(tmp_path)
    assert code == 64
    assert any(told in problem for problem in plan.problems)


def quick(init):
    def made(self, **fields: float) -> None:
        init(self, **{"first_s": 0.01, "longest_s": 0.02, "attempts_max": 2} | fields)

    return made


@pytest.mark.usefixtures("adopted")
def test_a_service_that_stumbles_is_asked_again(emulator, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(RetryPolicy, "__init__", quick(RetryPolicy.__init__))
    for method in ("google.cloud.run.v2.Jobs/GetJob", "storage.buckets.get"):
        emulator.world.injections.add(InjectedFault(method=method, error=unavailable(), nth=1))
    assert plan_once(tmp_path)[0] == 0


def test_no_project_is_assumed_on_the_command_line(emulator, tmp_path: Path, monkeypatch, capsys):
    gcloud = tmp_path / "gcloud"
    (gcloud / "configurations").mkdir(parents=True)
    (gcloud / "active_config").write_text("default")
    (gcloud / "configurations" / "config_default").write_text("[core]\nproject = gcloud-project\n")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(gcloud))
    for name in ("GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "GCLOUD_PROJECT"):
        monkeypatch.setenv(name, PROJECT)
    monkeypatch.chdir(tmp_path)
    before = len(emulator.world.calls.all())
    for command in (["run", "x", "--target", "gcp"], ["run", "x", "--target", "gcp", "--plan"], ["clean", "--target", "gcp"]):
        assert run_app(command) == 64
        told = capsys.readouterr().err
        assert "no project" in told
        assert "There is no default" in told
    assert len(emulator.world.calls.all()) == before
    assert not (tmp_path / "plan.json").exists()


@pytest.mark.parametrize("arguments", [["--project", "p"], ["--plan"], ["--apply", "plan.json"], ["--gpu-hours", "1"]])
def test_what_is_said_of_a_project_is_refused_elsewhere(arguments, capsys):
    assert run_app(["run", "x", "--target", "local", *arguments]) == 64
    assert "add --target gcp" in capsys.readouterr().err


def test_to_plan_and_to_apply_at_once_is_refused(capsys):
    assert run_app(["run", "x", "--target", "gcp", "--plan", "--apply", "plan.json"]) == 64
    assert "give one of them" in capsys.readouterr().err


def test_to_apply_as_one_that_only_reads_is_refused(tmp_path: Path):
    reader = replace(asked(tmp_path, apply=True), read_only_planner=True)
    with pytest.raises(UsageError, match="leave it away"):
        project_asked_for("gcp", reader)


# ---- the lock --------------------------------------------------------------------------------------------------------


def lock_of(clients: Clients, caller: Caller, owner: str) -> ProjectLock:
    return ProjectLock(
        BucketLockObject(clients, caller, PLACE.bucket, lock_name(PROJECT)), project=PROJECT, owner=owner, clock=caller.clock
    )


def test_of_harnesses_that_race_exactly_one_has_the_project(emulator, clients):
    locks = [lock_of(clients, Caller(clock=SystemClock(), chance=random.Random(index)), f"owner-{index}") for index in range(6)]
    together, refused = threading.Barrier(len(locks)), []

    def take(lock: ProjectLock) -> None:
        together.wait(timeout=30)
        try:
            lock.take("run")
        except LockedError as error:
            refused.append(error)

    threads = [threading.Thread(target=take, args=(lock,)) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    holders = [lock for lock in locks if lock.is_held]
    assert len(holders) == 1
    assert len(refused) == len(locks) - 1
    holders[0].free()
    lock_of(clients, Caller(clock=SystemClock()), "next").take("run")


@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_lock_whose_answer_was_lost_is_ours_once(emulator, clients, caller, drop):
    emulator.world.injections.add(InjectedFault(method="storage.objects.insert", drop=drop, nth=1))
    lock = lock_of(clients, caller, "ann")
    lock.take("run-1")
    assert lock.is_held
    with pytest.raises(LockedError, match="ann"):
        lock_of(clients, caller, "bob").take("run-2")
    lock.free()
    assert clients.storage.bucket(PLACE.bucket).get_blob(lock_name(PROJECT)) is None


# ---- oversight -------------------------------------------------------------------------------------------------------


class Hurried:
    """The system's clock, that a test moves ahead."""

    def __init__(self) -> None:
        self.clock, self.ahead_s = SystemClock(), 0.0

    def monotonic_s(self) -> float:
        return self.clock.monotonic_s() + self.ahead_s

    def utc(self) -> datetime:
        return self.clock.utc() + timedelta(seconds=self.ahead_s)

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(min(seconds, 0.01))
        self.ahead_s += seconds


@pytest.fixture
def overseen(adopted, clients, tmp_path: Path):
    """A run of an applied plan, that goes on."""
    plan_once(tmp_path)
    clock = Hurried()
    caller = Caller(clock=clock, chance=random.Random(1), policy=RetryPolicy(first_s=0.01, longest_s=0.05))
    oversight = Oversight(clients, caller, PLACE, plan=read_plan(tmp_path / "plan.json"), environment={})
    oversight.begin("ab12")
    yield oversight, clock
    oversight.end()


def test_a_run_that_may_go_on_goes_on_and_keeps_the_project(overseen, clients, caller):
    oversight, clock = overseen
    for _ in range(5):
        clock.ahead_s += LOOKED_EVERY_S
        oversight.look()
    with pytest.raises(LockedError):
        lock_of(clients, caller, "bob").take("run-2")
    oversight.end()
    lock_of(clients, caller, "bob").take("run-2")


def test_an_owner_who_takes_the_label_back_ends_the_run(overseen, clients):
    oversight, clock = overseen
    label_bucket(clients, {})
    oversight.look()  # it does not look at every turn
    clock.ahead_s += LOOKED_EVERY_S
    with pytest.raises(RunAbortedError, match="its owner wants no faults on it"):
        oversight.look()


def test_a_job_that_somebody_deletes_ends_the_run(overseen, clients):
    oversight, clock = overseen
    clients.jobs.delete_job(name=PLACE.job_name).result(timeout=30)
    clock.ahead_s += LOOKED_EVERY_S
    with pytest.raises(RunAbortedError, match="somebody deleted it"):
        oversight.look()


def test_a_lock_that_another_has_taken_ends_the_run(overseen, clients, caller):
    oversight, clock = overseen
    clients.storage.bucket(PLACE.bucket).blob(lock_name(PROJECT)).delete()
    lock_of(clients, caller, "bob").take("run-2")
    clock.ahead_s += RENEW_EVERY_S
    with pytest.raises(RunAbortedError, match="not ours any more"):
        oversight.look()


def test_somebody_who_runs_the_adopted_job_itself_ends_the_run(overseen, clients):
    oversight, clock = overseen
    clients.jobs.run_job(name=PLACE.job_name)
    clock.ahead_s += LOOKED_EVERY_S
    with pytest.raises(RunAbortedError, match=r"somebody else runs the job: .*/executions/"):
        oversight.look()


def test_who_works_with_another_bucket_is_seen_by_his_job(overseen, clients):
    oversight, _ = overseen
    make_run_job(clients, "ours", oversight.lock, PLACE.bucket)
    make_run_job(clients, "our-other-one", oversight.lock, "another-bucket")
    oversight.require_alone()
    make_run_job(clients, "theirs", "0123456789abcdef", "another-bucket")
    with pytest.raises(SharedProjectError, match=r"project our-project is in use: .*/jobs/theirs is the job of run .*another-bucket"):
        oversight.require_alone()


def make_run_job(clients: Clients, name: str, lock: str, bucket: str) -> None:
    """As a run makes one."""
    volumes = [run_v2.Volume(name=AGENT_VOLUME, gcs=run_v2.GCSVolumeSource(bucket=bucket))]
    task = run_v2.TaskTemplate(containers=[run_v2.Container(image="job")], volumes=volumes)
    labels = ALLOWED | {"harness-run": "0123456789ab", "harness-lock": lock}
    job = run_v2.Job(labels=labels, template=run_v2.ExecutionTemplate(template=task))
    clients.jobs.create_job(parent=PLACE.parent, job=job, job_id=name).result(timeout=30)


def test_a_run_that_lasts_longer_than_it_may_ends_itself(overseen):
    oversight, clock = overseen
    clock.ahead_s += 3601.0
    with pytest.raises(RunAbortedError, match="duration_s is 3600"):
        oversight.look()


def test_limits_count_over_all_runs_of_a_plan_and_all_its_applications(overseen, adopted, clients, tmp_path: Path):
    oversight, clock = overseen
    plan = read_plan(tmp_path / "plan.json")
    clock.ahead_s += 1800.0
    oversight.look()
    oversight.end()
    clock.ahead_s += 1200.0
    again = another_oversight(clients, clock, plan)
    again.begin("cd34", plan.scenarios[0].digest)
    clock.ahead_s += 580.0
    again.look()
    clock.ahead_s += LOOKED_EVERY_S
    with pytest.raises(RunAbortedError, match=r"the runs of its plan have lasted for 36.. s, and duration_s is 3600"):
        again.look()
    again.end()
    with pytest.raises(RunAbortedError, match="duration_s is 3600"):
        another_oversight(clients, clock, plan).begin("ef56", plan.scenarios[0].digest)


def test_gpu_hours_of_runs_that_were_killed_count(adopted, clients, tmp_path: Path):
    plan_once(tmp_path, gpu_hours=0.4)
    plan, clock = read_plan(tmp_path / "plan.json"), Hurried()
    digest = plan.scenarios[0].digest
    assert plan.gpu_hours == pytest.approx(1 / 3)  # two attempts of ten minutes, one GPU
    killed = another_oversight(clients, clock, plan)
    killed.begin("ab12", digest)
    killed.end(is_over=False)  # its lock is over, it was not seen to end
    clock.ahead_s += 1500.0
    again = another_oversight(clients, clock, plan)
    again.begin("cd34", digest)
    clock.ahead_s += 200.0
    again.look()
    clock.ahead_s += 200.0
    with pytest.raises(RunAbortedError, match=r"the runs of its plan have used 0\.44 GPU-hours, and gpu_hours is 0\.4"):
        again.look()
    again.end()


def another_oversight(clients: Clients, clock: Hurried, plan: Plan) -> Oversight:
    caller = Caller(clock=clock, chance=random.Random(1), policy=RetryPolicy(first_s=0.01, longest_s=0.05))
    return Oversight(clients, caller, PLACE, plan=plan, environment={})


def test_the_runs_of_a_harness_share_its_lock(adopted, clients, caller, tmp_path: Path):
    plan_once(tmp_path)
    plan = read_plan(tmp_path / "plan.json")
    with project_held(PLACE, SystemClock()):
        for run_id in ("ab12", "cd34"):
            oversight = Oversight(clients, caller, PLACE, plan=plan)
            oversight.begin(run_id)
            oversight.end()
        with pytest.raises(LockedError):
            lock_of(clients, caller, "bob").take("run-2")
        with pytest.raises(LockedError), project_held(PLACE, SystemClock()):
            pytest.fail("two have the project")
        nonce = os.environ[LOCK_VARIABLE]
    assert LOCK_VARIABLE not in os.environ
    with pytest.raises(LockLostError):
        Oversight(clients, caller, PLACE, plan=plan, environment={LOCK_VARIABLE: nonce}).begin("ef56")
    lock_of(clients, caller, "bob").take("run-2")


# ---- sweeps and undos ------------------------------------------------------------------------------------------------


def test_an_execution_that_was_begun_is_cancelled_and_that_twice_is_harmless(emulator, clients):
    make_job(clients, gpus=0)
    execution = clients.jobs.run_job(name=PLACE.job_name).metadata
    name = f"{PLACE.job_name}/executions/{execution.name.rpartition('/')[2]}"
    undo = RestoreProject(
        project=PROJECT, actions=(CancelRunExecution(name=name),), emulator=emulator.endpoints.environment()["HARNESS_GCP_EMULATOR"]
    )
    assert "was cancelled, and has ended" in restore(undo, SystemClock(), environment={})
    assert clients.executions.get_execution(name=name).cancelled_count == 1
    assert "has ended" in restore(undo, SystemClock(), environment={})
    clients.jobs.delete_job(name=PLACE.job_name).result(timeout=30)
    assert "is gone" in restore(undo, SystemClock(), environment={})


def test_an_undo_does_not_reach_into_another_project(emulator):
    undo = RestoreProject(
        project=PROJECT,
        actions=(CancelRunExecution(name="projects/another-project/locations/r/jobs/j/executions/e"),),
        emulator=emulator.endpoints.environment()["HARNESS_GCP_EMULATOR"],
    )
    before = emulator.world.calls.writes()
    with pytest.raises(HarnessError, match="not in the project our-project"):
        restore(undo, SystemClock(), environment={})
    assert emulator.world.calls.writes() == before


def test_an_undo_of_an_emulator_that_is_gone_never_meets_a_real_project(monkeypatch):
    monkeypatch.setattr("google.auth.default", lambda **_: pytest.fail("a real project was asked"))
    undo = RestoreProject(
        project=PROJECT, actions=(CancelRunExecution(name=f"projects/{PROJECT}/x"),), emulator="grpc=127.0.0.1:9,http=127.0.0.1:9"
    )
    assert "is gone, and with it" in restore(undo, SystemClock(), environment={})


def test_only_what_the_emulator_says_is_loopback(monkeypatch):
    undo = RestoreProject(project=PROJECT, actions=(), emulator="grpc=10.0.0.1:9,http=127.0.0.1:9")
    with pytest.raises(UsageError):
        restore(undo, SystemClock(), environment={})


# ---- credentials -----------------------------------------------------------------------------------------------------

PLANTED = "ya29.a0AfB_planted-token"
PLANTED_KEY = "planted-without-a-known-form"


def test_a_credential_is_in_no_file_and_no_word_of_a_run(emulator, clients, tmp_path: Path):
    label_bucket(clients, ALLOWED)
    told = f"Permission 'run.jobs.create' denied to Bearer {PLANTED} ({PLANTED_KEY}), see https://host/o?access_token={PLANTED}"
    error = ApiError(code="PERMISSION_DENIED", message=told, reason=f"Bearer {PLANTED}", metadata={"token": PLANTED, PLANTED: PLANTED})
    emulator.world.injections.add(InjectedFault(method="google.cloud.run.v2.Jobs/CreateJob", error=error, times=0))
    place = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
    common = ["--plan-file", "plan.json", "--runs-dir", "runs", "--root", str(Path.cwd()), "--image", f"host/i?access_token={PLANTED}"]
    outputs = []
    scenario = tmp_path / "scenario.json"
    scenario.write_bytes(encode(SCENARIO))
    environment = {
        **os.environ,
        "WANDB_API_KEY": PLANTED_KEY,
        "GOOGLE_OAUTH_ACCESS_TOKEN": PLANTED,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "HARNESS_TRACEBACK": "1",
    }
    for arguments in (place, ["--apply", "plan.json"]):
        command = [sys.executable, "-m", "harness", "run", "scenario.json", "--target", "gcp", *common, *arguments]
        if "--apply" in arguments:
            command = [part for part in command if part not in ("--image", f"host/i?access_token={PLANTED}")]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        outputs.append(done.stdout + done.stderr)
    assert "nothing was changed" in outputs[0]
    assert "is missing" in outputs[1] or "PERMISSION_DENIED" in outputs[1] or "planned" in outputs[1]
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "emulator" not in path.relative_to(tmp_path).parts[:1]]
    assert {"plan.json"} <= {path.name for path in files}
    for text in [*outputs, *(path.read_bytes().decode(errors="replace") for path in files)]:
        assert PLANTED not in text
        assert PLANTED_KEY not in text
