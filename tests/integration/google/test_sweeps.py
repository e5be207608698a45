"""``harness clean --target gcp`` with Google's own clients against the emulator: what it takes, and what it never does."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from google.cloud import run_v2

from harness.cli.commands import run_app
from harness.cli.project_plan import AskedOfProject, Project, held
from harness.clock import SystemClock
from harness.emulator import ApiError, Emulator, InjectedFault
from harness.store import RunDirectory, RunStore
from harness.targets.gcp import undoing
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import EMULATOR_VARIABLE, Clients, connect
from harness.targets.gcp.footprint import read_footprint, write_footprint
from harness.targets.gcp.job_volumes import AGENT_VOLUME
from harness.targets.gcp.leftovers import remove_left_behind
from harness.targets.gcp.lock_objects import BucketLockObject, lock_name
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Limits
from harness.targets.gcp.project_lock import ProjectLock
from harness.targets.gcp.run_names import run_job_name
from harness.targets.gcp.secrets import Secrets
from harness.undo import RestoreProject, identify
from tests.integration.google.conftest import Emulate

PROJECT = "our-project"
PLACE = Place(project=PROJECT, region="europe-west4", bucket="our-bucket", job="train")
ALLOWED = {"harness-chaos": "allowed"}
DEAD, OTHER = "0123456789ab", "ba9876543210"
REFUSAL = ApiError(code="PERMISSION_DENIED", message="no")
NOTHING_ASKED = AskedOfProject(options={}, limits={}, config=None, plans=False, apply=None, plan_file=Path("plan.json"))


@pytest.fixture
def emulator(emulate: Emulate, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    monkeypatch.setattr(undoing, "ASKED_EVERY_S", 0.1)
    return emulate(projects=[PROJECT], buckets=[PLACE.bucket, "another-bucket"])


@pytest.fixture
def clients(emulator: Emulator) -> Iterator[Clients]:
    with closing(connect(PROJECT, emulator.endpoints.environment(), Secrets())) as found:
        yield found


def allow(clients: Clients, bucket: str = PLACE.bucket) -> None:
    found = clients.storage.get_bucket(bucket)
    found.labels = ALLOWED
    found.patch()


def put(clients: Clients, *names: str) -> None:
    for name in names:
        clients.storage.bucket(PLACE.bucket).blob(name).upload_from_string(b"x")


def objects(clients: Clients) -> set[str]:
    return {blob.name for blob in clients.storage.list_blobs(PLACE.bucket)}


def jobs(clients: Clients) -> set[str]:
    return {job.name.rpartition("/")[2] for job in clients.jobs.list_jobs(parent=PLACE.parent)}


def make_job(clients: Clients, name: str, labels: dict[str, str], bucket: str = PLACE.bucket) -> str:
    container = run_v2.Container(image="job", command=["sleep", "600"])
    volumes = [run_v2.Volume(name=AGENT_VOLUME, gcs=run_v2.GCSVolumeSource(bucket=bucket))]
    task = run_v2.TaskTemplate(containers=[container], volumes=volumes)
    job = run_v2.Job(labels=labels, template=run_v2.ExecutionTemplate(template=task))
    clients.jobs.create_job(parent=PLACE.parent, job=job, job_id=name).result(timeout=30)
    return f"{PLACE.parent}/jobs/{name}"


def clean(tmp_path: Path, *more: str) -> int:
    place = ["--project", PROJECT, "--region", PLACE.region, "--bucket", PLACE.bucket]
    return run_app(["clean", "--target", "gcp", "--runs-dir", str(tmp_path / "runs"), *place, *more])


def lock_of(clients: Clients, caller: Caller, owner: str) -> ProjectLock:
    place = BucketLockObject(clients, caller, PLACE.bucket, lock_name(PROJECT))
    return ProjectLock(place, project=PROJECT, owner=owner, clock=caller.clock)


def test_in_a_bucket_whose_owner_allows_nothing_nothing_is_touched(emulator, clients, tmp_path: Path, capsys):
    put(clients, f"harness/{DEAD}/checkpoints/a", "harness/models/weights.bin")
    before = emulator.world.calls.writes()
    assert clean(tmp_path, "--run", DEAD) == 0
    assert "bucket our-bucket is not labelled harness-chaos=allowed" in capsys.readouterr().out
    assert emulator.world.calls.writes() == before


def test_folders_of_others_stay_and_a_run_that_nobody_knows_is_told(clients, tmp_path: Path, capsys):
    allow(clients)
    mine = {"harness/models/weights.bin", "harness/datasets/a/b.parquet", f"harness/{OTHER}/checkpoints/a", "data/mine", "harnessed"}
    put(clients, *mine, f"harness/{DEAD}/checkpoints/a", f"harness/{DEAD}/agent/x/y")
    assert clean(tmp_path, "--run", DEAD) == 0
    told = capsys.readouterr().out
    assert f"removed objects gs://our-bucket/harness/{DEAD}/" in told
    assert f"run {OTHER} is not known here; if it is yours and over, remove what it has left with --run {OTHER}" in told
    assert "models" not in told
    assert objects(clients) == mine


def keep_versions(clients: Clients) -> None:
    bucket = clients.storage.get_bucket(PLACE.bucket)
    bucket.versioning_enabled = True
    bucket.patch()


def versions(clients: Clients) -> list[str]:
    return [blob.name for blob in clients.storage.list_blobs(PLACE.bucket, versions=True)]


@pytest.mark.parametrize("is_written_down", [True, False])
def test_versions_that_are_not_live_go_too_and_those_of_others_stay(clients, tmp_path: Path, is_written_down):
    allow(clients)
    keep_versions(clients)
    mine = [f"harness/{OTHER}/checkpoints/a", "harness/models/w"]
    for _ in range(2):
        put(clients, f"harness/{DEAD}/checkpoints/a", f"harness/{DEAD}/agent/said/1", *mine)
    clients.storage.bucket(PLACE.bucket).blob(f"harness/{DEAD}/checkpoints/a").delete()
    assert len(versions(clients)) == 8
    if is_written_down:
        write_footprint(DEAD, PLACE, os.environ)
        assert remove_left_behind(DEAD, SystemClock()) == [f"deleted 4 objects below gs://our-bucket/harness/{DEAD}/"]
    else:
        assert clean(tmp_path, "--run", DEAD) == 0
    left = [name for name in versions(clients) if "locks" not in name]
    assert left == sorted(mine * 2)


def test_a_run_of_which_only_old_versions_are_left_is_found(clients, tmp_path: Path, capsys):
    allow(clients)
    keep_versions(clients)
    put(clients, f"harness/{DEAD}/checkpoints/a")
    clients.storage.bucket(PLACE.bucket).blob(f"harness/{DEAD}/checkpoints/a").delete()
    assert clean(tmp_path, "--run", DEAD) == 0
    assert f"removed objects gs://our-bucket/harness/{DEAD}/" in capsys.readouterr().out
    assert not any(DEAD in name for name in versions(clients))


def test_only_an_exact_id_names_a_run(emulator, tmp_path: Path, capsys):
    before = len(emulator.world.calls.all())
    for wrong in ("models", "*", "0123456789a", f"{DEAD}/../x"):
        assert clean(tmp_path, "--run", wrong) == 64
        assert "is no run's id" in capsys.readouterr().err
    assert len(emulator.world.calls.all()) == before


def test_what_is_written_down_here_needs_not_be_named(clients, tmp_path: Path):
    allow(clients)
    write_footprint(DEAD, PLACE, os.environ)
    put(clients, f"harness/{DEAD}/checkpoints/a")
    make_job(clients, "train-h1", ALLOWED | {"harness-run": DEAD})
    assert clean(tmp_path) == 0
    assert (objects(clients), jobs(clients), read_footprint(DEAD)) == (set(), set(), None)


def test_a_job_goes_only_with_both_labels_and_the_bucket_that_is_named(clients, tmp_path: Path, capsys):
    allow(clients)
    make_job(clients, "ours", ALLOWED | {"harness-run": DEAD})
    make_job(clients, "unlabelled", {"harness-run": DEAD})
    make_job(clients, "elsewhere", ALLOWED | {"harness-run": DEAD}, bucket="another-bucket")
    make_job(clients, "of-another-run", ALLOWED | {"harness-run": OTHER})
    put(clients, f"harness/{DEAD}/checkpoints/a")
    assert clean(tmp_path, "--run", DEAD) == 0
    assert jobs(clients) == {"unlabelled", "elsewhere", "of-another-run"}
    assert objects(clients) == {f"harness/{DEAD}/checkpoints/a"}  # a job of that run is there still
    told = capsys.readouterr().out
    assert "no run of ours has made it" in told
    assert "clean it with --bucket another-bucket" in told


def test_a_running_execution_is_cancelled_before_anything_is_deleted(emulator, clients, tmp_path: Path):
    allow(clients)
    name = make_job(clients, "train-h1", ALLOWED | {"harness-run": DEAD})
    put(clients, f"harness/{DEAD}/checkpoints/a")
    clients.jobs.run_job(name=name)
    before = len(emulator.world.calls.all())
    assert clean(tmp_path, "--run", DEAD) == 0
    assert (jobs(clients), objects(clients)) == (set(), set())
    writes = [call.method.rpartition("/")[2] for call in emulator.world.calls.all()[before:] if call.is_write]
    assert writes[:3] == ["storage.objects.insert", "CancelExecution", "DeleteJob"]


def test_a_killed_run_that_is_written_down_is_ended_and_removed(clients):
    allow(clients)
    name = make_job(clients, run_job_name(PLACE, DEAD).rpartition("/")[2], ALLOWED | {"harness-run": DEAD})
    put(clients, f"harness/{DEAD}/checkpoints/a")
    clients.jobs.run_job(name=name)
    write_footprint(DEAD, PLACE, os.environ)
    removed = remove_left_behind(DEAD, SystemClock())
    assert removed[0] == f"deleted job {name}"
    assert (jobs(clients), objects(clients), read_footprint(DEAD)) == (set(), set(), None)


def test_checkpoints_stay_for_as_long_as_the_job_does(emulator, clients, tmp_path: Path):
    allow(clients)
    write_footprint(DEAD, PLACE, os.environ)
    name = make_job(clients, "train-h1", ALLOWED | {"harness-run": DEAD})
    put(clients, f"harness/{DEAD}/checkpoints/a")
    clients.jobs.run_job(name=name)
    refusal = ApiError(code="PERMISSION_DENIED", message="no")
    emulator.world.injections.add(InjectedFault(method="google.cloud.run.v2.Executions/CancelExecution", error=refusal, times=0))
    assert clean(tmp_path) != 0
    assert objects(clients) == {f"harness/{DEAD}/checkpoints/a"}
    assert jobs(clients) == {"train-h1"}
    assert read_footprint(DEAD) is not None


# ---- who has the project ---------------------------------------------------------------------------------------------


def test_a_project_that_is_in_use_is_left_alone(clients, caller, tmp_path: Path, capsys):
    allow(clients)
    put(clients, f"harness/{DEAD}/x")
    lock = lock_of(clients, caller, "ann@elsewhere")
    lock.take("run-1")
    assert clean(tmp_path, "--run", DEAD) == 0
    assert "in use by ann@elsewhere" in capsys.readouterr().out
    assert f"harness/{DEAD}/x" in objects(clients)
    lock.free()
    assert clean(tmp_path, "--run", DEAD) == 0
    assert objects(clients) == set()


def test_the_lock_of_a_process_that_died_here_is_not_waited_for(clients, caller, tmp_path: Path, capsys):
    allow(clients)
    put(clients, f"harness/{DEAD}/x")
    lock_of(clients, caller, "dead@here").take("run-1")
    bury(clients)
    assert clean(tmp_path, "--run", DEAD) == 0
    assert "removed the lock of dead@here" in capsys.readouterr().out
    assert objects(clients) == set()


def bury(clients: Clients) -> None:
    """As if the owner of the lock had died."""
    blob = clients.storage.bucket(PLACE.bucket).blob(lock_name(PROJECT))
    with subprocess.Popen(["sleep", "600"]) as process:
        dead = msgspec.to_builtins(identify([process.pid])[0])
        process.kill()
    blob.upload_from_string(msgspec.json.encode(msgspec.json.decode(blob.download_as_bytes()) | {"process": dead}))


def is_locked(clients: Clients) -> bool:
    return clients.storage.bucket(PLACE.bucket).blob(lock_name(PROJECT)).exists()


def test_the_lock_is_kept_until_what_is_owed_under_it_is_done(emulator, clients, tmp_path: Path, capsys):
    allow(clients)
    project = Project(place=PLACE, limits=Limits(), applied=None, asked=NOTHING_ASKED)
    store = RunStore(tmp_path / "runs", SystemClock(), overseer=identify([os.getpid()])[0])
    emulator.world.injections.add(InjectedFault(method="google.cloud.run.v2.Executions/CancelExecution", error=REFUSAL, times=0))
    with held(project, SystemClock(), store.root):
        run, run_id = store.create("a-run-that-cannot-be-ended", 0)
        write_footprint(run_id, PLACE, os.environ)
        clients.jobs.run_job(name=make_job(clients, run_job_name(PLACE, run_id).rpartition("/")[2], ALLOWED | {"harness-run": run_id}))
        make_dead(run)

    told = f"the lock of project {PROJECT} is kept: run {run_id}: owed: the end of what it has in {PLACE.parent}, gs://{PLACE.bucket}; "
    assert capsys.readouterr().err.startswith(told + "`harness clean --target gcp`")
    assert is_locked(clients)
    bury(clients)
    assert clean(tmp_path) == 70
    assert "its lock is kept, for something is owed to it still: run " in capsys.readouterr().out
    assert is_locked(clients)
    bury(clients)
    emulator.world.injections.clear()
    assert clean(tmp_path) == 0
    assert (jobs(clients), objects(clients), is_locked(clients)) == (set(), set(), False)


def test_what_a_dead_run_owes_is_not_done_while_somebody_else_has_the_project(emulator, clients, caller, tmp_path: Path, capsys):
    allow(clients)
    run, run_id = RunStore(tmp_path / "runs", SystemClock()).create("a-run-that-was-killed", 0)
    write_footprint(run_id, PLACE, os.environ)
    run.undo.owe("1-lose-pool@0", RestoreProject(project=PROJECT, actions=(), emulator=os.environ[EMULATOR_VARIABLE]))
    make_dead(run)
    lock = lock_of(clients, caller, "ann@elsewhere")
    lock.take("run-1")
    assert run_app(["clean", "--runs-dir", str(tmp_path / "runs")]) == 70
    assert f"{run.name}: target 'gcp' is not available: project our-project is in use by ann@elsewhere" in capsys.readouterr().out
    assert [entry.injection for entry in run.undo.owed()] == ["1-lose-pool@0"]
    lock.free()
    assert run_app(["clean", "--runs-dir", str(tmp_path / "runs")]) == 0
    assert run.undo.owed() == []


def make_dead(run: RunDirectory) -> None:
    """As if the process of a run had died."""
    owner = run.owner()
    assert owner is not None
    gone = msgspec.structs.replace(owner.process, started_s=owner.process.started_s - 1000.0)
    run.write(run.owner_path, msgspec.json.encode(msgspec.structs.replace(owner, process=gone)))


def test_nothing_is_kept_of_a_project_to_which_nothing_is_owed(clients, tmp_path: Path, capsys):
    allow(clients)
    project = Project(place=PLACE, limits=Limits(), applied=None, asked=NOTHING_ASKED)
    write_footprint(OTHER, PLACE, os.environ)
    with held(project, SystemClock(), tmp_path / "runs"):
        assert is_locked(clients)

    assert not is_locked(clients)
    assert capsys.readouterr().err == ""


def test_while_it_cleans_nobody_else_has_the_project(emulator, clients, tmp_path: Path):
    allow(clients)
    put(clients, f"harness/{DEAD}/x")
    before = len(emulator.world.calls.all())
    assert clean(tmp_path, "--run", DEAD) == 0
    writes = [call for call in emulator.world.calls.all()[before:] if call.is_write]
    assert [call.method for call in writes] == ["storage.objects.insert", "storage.objects.delete", "storage.objects.delete"]
    assert "locks" in writes[-1].resource
    assert DEAD in writes[1].resource


def test_one_answer_that_a_job_is_gone_is_not_believed(emulator, clients, tmp_path: Path):
    allow(clients)
    write_footprint(DEAD, PLACE, os.environ)
    make_job(clients, "train-h1", ALLOWED | {"harness-run": DEAD})
    put(clients, f"harness/{DEAD}/checkpoints/a")
    gone = ApiError(code="NOT_FOUND", message="no such job")
    emulator.world.injections.add(InjectedFault(method="google.cloud.run.v2.Jobs/DeleteJob", error=gone, times=0))
    assert clean(tmp_path) != 0
    assert (jobs(clients), objects(clients)) == ({"train-h1"}, {f"harness/{DEAD}/checkpoints/a"})
    emulator.world.injections.clear()
    assert clean(tmp_path) == 0
    assert (jobs(clients), objects(clients)) == (set(), set())
