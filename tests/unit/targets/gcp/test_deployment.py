"""The job of a run: as the guide deploys it, or a copy of an adopted one."""

from datetime import timedelta
from pathlib import Path

import pytest
from google.cloud import run_v2

from harness.targets.gcp.agent.command_line import read_settings
from harness.targets.gcp.deployment import OWN_BARRIER, Surroundings, build_job, copy_job
from harness.targets.gcp.job_volumes import other_volumes, told_volume, volume_problems
from harness.targets.gcp.pace import PROJECT
from harness.targets.gcp.place import Place
from harness.targets.gcp.run_names import run_job_name, run_label
from tests.unit.targets.gcp.launches import PLACE, launch_of

WITH_GPU = Place(
    project="test-project", region="europe-west4", bucket="test-bucket", job="trainer", image="i", gpus=1, gpu_type="nvidia-l4"
)


def around(place: Place = PLACE, **fields: object) -> Surroundings:
    return Surroundings(place=place, pace=PROJECT, **fields)  # type: ignore[arg-type]


def variables(container: run_v2.Container) -> dict[str, str]:
    return {variable.name: variable.value for variable in container.env}


def test_the_guides_job_has_its_gpu_its_retries_its_timeout_and_its_bucket(tmp_path: Path):
    job = build_job(launch_of(tmp_path, max_retries=3, timeout_s=43_200.0, tasks=2, parallelism=1), around(WITH_GPU))

    task, container = job.template.template, job.template.template.containers[0]
    assert container.resources.limits["nvidia.com/gpu"] == "1"
    assert task.node_selector.accelerator == "nvidia-l4"
    assert task.gpu_zonal_redundancy_disabled
    assert (task.max_retries, task.timeout, job.template.task_count, job.template.parallelism) == (3, timedelta(hours=12), 2, 1)
    mounts = {mount.mount_path: mount.name for mount in container.volume_mounts}
    volumes = {volume.name: volume.gcs for volume in task.volumes}
    assert mounts["/checkpoints"] == "checkpoint-volume"
    assert volumes["checkpoint-volume"].bucket == "test-bucket"
    assert list(volumes["checkpoint-volume"].mount_options) == ["only-dir=harness/20260101T000000.000Z-0-abc/checkpoints"]
    assert "only-dir=harness/20260101T000000.000Z-0-abc/agent" in volumes[mounts["/harness"]].mount_options
    assert task.execution_environment == run_v2.ExecutionEnvironment.EXECUTION_ENVIRONMENT_GEN2


def test_without_gpus_none_is_asked_for(tmp_path: Path):
    task = build_job(launch_of(tmp_path), around()).template.template

    assert not task.containers[0].resources.limits
    assert not task.node_selector.accelerator


def test_everything_is_labelled_as_the_runs_own(tmp_path: Path):
    job = build_job(launch_of(tmp_path), around())

    assert dict(job.labels) == {"harness-chaos": "allowed", "harness-run": "20260101t000000-000z-0-abc"}
    assert job.template.labels == job.labels


def test_under_whose_lock_a_run_is_is_seen_on_its_job(tmp_path: Path):
    assert build_job(launch_of(tmp_path), around(lock="0123456789abcdef")).labels["harness-lock"] == "0123456789abcdef"


def test_the_command_is_the_jobs_behind_the_agent_and_the_agent_reads_it_so(tmp_path: Path):
    launch = launch_of(tmp_path, armed=("step:after",), command=("python3", "-m", "train", "--", "--home", "x"))
    container = build_job(launch, around(points=("step:after@step=3,rank=0",))).template.template.containers[0]

    command = list(container.command)
    assert command[:3] == ["python3", "-I", "/harness/agent.pyz"]
    settings = read_settings(command[3:])
    assert settings.command == list(launch.command)
    assert (settings.armed, settings.own) == (("step:after@step=3,rank=0",), (OWN_BARRIER,))
    assert (settings.home, settings.job) == ("/harness", "counter")
    assert list(container.args) == []


def test_a_job_is_held_wherever_it_is_armed_where_no_moments_are_known(tmp_path: Path):
    container = build_job(launch_of(tmp_path, armed=("step:after",)), around()).template.template.containers[0]

    assert read_settings(list(container.command)[3:]).armed == ("step:after",)


def adopted() -> run_v2.Job:
    container = run_v2.Container(
        image="users/image",
        command=["python3"],
        args=["train.py"],
        env=[run_v2.EnvVar(name="OWN", value="1"), run_v2.EnvVar(name="STEPS", value="9")],
        resources=run_v2.ResourceRequirements(limits={"nvidia.com/gpu": "1", "memory": "16Gi"}),
        volume_mounts=[run_v2.VolumeMount(name="data", mount_path="/data"), run_v2.VolumeMount(name="theirs", mount_path="/checkpoints")],
    )
    volumes = [
        run_v2.Volume(name="data", gcs=run_v2.GCSVolumeSource(bucket="datasets", read_only=True)),
        run_v2.Volume(name="theirs", gcs=run_v2.GCSVolumeSource(bucket="production-checkpoints")),
    ]
    task = run_v2.TaskTemplate(containers=[container], volumes=volumes, service_account="a@b.gserviceaccount.com", max_retries=0)
    return run_v2.Job(name="theirs", labels={"team": "x"}, template=run_v2.ExecutionTemplate(template=task))


def test_a_copy_keeps_how_the_adopted_job_runs_and_leaves_that_one_as_it_is(tmp_path: Path):
    original, before = adopted(), adopted()
    job = copy_job(original, launch_of(tmp_path, max_retries=2), around())

    task, container = job.template.template, job.template.template.containers[0]
    assert container.image == "users/image"
    assert dict(container.resources.limits) == {"nvidia.com/gpu": "1", "memory": "16Gi"}
    assert task.service_account == "a@b.gserviceaccount.com"
    assert variables(container)["OWN"] == "1"
    assert variables(container)["STEPS"] == "40"
    assert task.max_retries == 2
    assert original == before


def test_a_copy_never_mounts_the_checkpoints_of_the_adopted_job(tmp_path: Path):
    task = copy_job(adopted(), launch_of(tmp_path), around()).template.template

    assert {volume.gcs.bucket for volume in task.volumes} == {"datasets", "test-bucket"}
    paths = [mount.mount_path for mount in task.containers[0].volume_mounts]
    assert sorted(paths) == ["/checkpoints", "/data", "/harness"]


def test_what_else_an_adopted_job_mounts_its_copy_only_reads(tmp_path: Path):
    original = adopted()
    task = original.template.template
    task.volumes[0].gcs.read_only = False
    task.volumes.append(run_v2.Volume(name="share", nfs=run_v2.NFSVolumeSource(server="10.0.0.2", path="/prod")))
    task.containers[0].volume_mounts.append(run_v2.VolumeMount(name="share", mount_path="/share"))
    copied = copy_job(original, launch_of(tmp_path), around()).template.template

    volumes = {volume.name: volume for volume in copied.volumes}
    assert volumes["data"].gcs.read_only
    assert volumes["share"].nfs.read_only
    assert not volumes["checkpoint-volume"].gcs.read_only
    assert not task.volumes[0].gcs.read_only
    assert [told_volume(volume) for volume in other_volumes(original)] == ["gs://datasets read-only", "nfs 10.0.0.2:/prod read-only"]
    assert volume_problems(original) == []


def test_a_job_that_writes_to_a_database_is_not_adopted():
    original = adopted()
    task = original.template.template
    task.volumes.append(run_v2.Volume(name="db", cloud_sql_instance=run_v2.CloudSqlInstance(instances=["p:r:prod"])))
    task.containers[0].volume_mounts.append(run_v2.VolumeMount(name="db", mount_path="/cloudsql"))

    assert "mounts the databases p:r:prod" in volume_problems(original)[0]


@pytest.mark.parametrize("job", ["trainer", "t" * 49])
def test_the_runs_job_has_a_name_of_its_own_that_cloud_run_takes(job: str):
    place = Place(project="test-project", region="europe-west4", bucket="test-bucket", job=job)
    first, second = run_job_name(place, "run-1"), run_job_name(place, "run-2")

    assert first != second
    assert first.startswith(f"{place.parent}/jobs/")
    short = first.rpartition("/")[2]
    assert len(short) <= 49
    assert short != job


def test_a_run_id_is_a_label_whatever_it_holds():
    assert run_label("2026-01-01T00:00:00.5Z_Ä" + "x" * 80) == ("2026-01-01t00-00-00-5z_-" + "x" * 80)[:63]
