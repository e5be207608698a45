"""What a job may be, and how it becomes a launch of this machine."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest
from google.cloud import run_v2

from harness.emulator.failures import ApiError, not_found
from harness.emulator.run.launches import LaunchPlace, launch_of, missing_program, overridden
from harness.emulator.run.mounts import Mount, Mounts, mounts_of
from harness.emulator.run.names import RunName, check_job_id
from harness.emulator.run.validation import complete_job, gpus_of


def job(*, task=None, container=None, execution=None, **fields):
    """A job that is right, but for what is given."""
    containers = [run_v2.Container(**{"image": "image", "command": ["sh", "-c", "exit 0"], **(container or {})})]
    template = run_v2.TaskTemplate(**{"containers": containers, **(task or {})})
    return run_v2.Job(template=run_v2.ExecutionTemplate(template=template, **(execution or {})), **fields)


class Buckets:
    def __init__(self, root):
        self.root = root

    def mount(self, bucket, below=""):
        if bucket != "b":
            raise not_found(bucket)
        directory = self.root / bucket / below
        directory.mkdir(parents=True, exist_ok=True)
        return directory


NO_MOUNTS = Mounts([])


def place(tmp_path, mounts=NO_MOUNTS, **fields):
    given = {"run_id": "0123456789", "directory": tmp_path / "run", "grace_s": 10.0, "epoch_s": 0.0, "entrypoints": {}, **fields}
    return LaunchPlace(mounts=mounts, **given)


# ---- names -------------------------------------------------------------------------------------------------------------------


def test_a_name_is_read_as_far_as_it_goes_and_written_as_it_was():
    text = "projects/p/locations/l/jobs/j/executions/e/tasks/t"
    name = RunName.parse(text, "tasks")

    assert (name.job, name.execution, name.task) == ("j", "e", "t")
    assert (str(name), name.parent, name.job_name()) == (text, "projects/p/locations/l", "projects/p/locations/l/jobs/j")


@pytest.mark.parametrize("text", ["", "j", "projects/p/locations/l", "projects/p/locations//jobs/j", "projects/p/locations/l/jobs/j/x/y"])
def test_a_name_of_another_form_is_refused_with_the_form(text):
    with pytest.raises(ApiError, match=r"projects/\{project\}/locations/\{location\}/jobs/\{job\}"):
        RunName.parse(text, "jobs")


def test_a_hyphen_stands_for_all_jobs_and_all_executions_of_a_place():
    name = RunName("p", "l", "j", "e")

    assert all(
        RunName.parse(f"projects/p/locations/l/jobs/{text}", "executions").matches(name) for text in ("-/executions/-", "j/executions/e")
    )
    assert not any(RunName.parse(f"projects/p/locations/{text}", "jobs").matches(name) for text in ("l/jobs/k", "m/jobs/-"))


@pytest.mark.parametrize("job_id", ["", "J", "1a", "a-", "a_b", "a" * 64, "ä"])
def test_an_impossible_job_id_is_refused(job_id):
    check_job_id("train-1")
    with pytest.raises(ApiError, match="INVALID_ARGUMENT: job_id"):
        check_job_id(job_id)


# ---- validation --------------------------------------------------------------------------------------------------------------


def test_what_the_caller_leaves_out_is_filled_in_and_its_own_message_stays():
    given = job()
    complete = complete_job(given)

    assert complete.template.task_count == 1
    assert (complete.template.template.max_retries, complete.template.template.timeout) == (3, timedelta(seconds=600))
    assert given.template.task_count == 0


def test_no_retries_are_no_default():
    assert complete_job(job(task={"max_retries": 0})).template.template.max_retries == 0


def test_no_more_tasks_run_at_once_than_there_are():
    assert complete_job(job(execution={"task_count": 2, "parallelism": 5})).template.parallelism == 2


VOLUME = {"name": "v", "gcs": {"bucket": "b"}}


@pytest.mark.parametrize(
    ("wrong", "code", "text"),
    [
        (run_v2.Job(), "INVALID_ARGUMENT", "template.template: is required"),
        (run_v2.Job(template={"template": {"max_retries": 1}}), "INVALID_ARGUMENT", "containers: at least one"),
        (job(container={"image": ""}), "INVALID_ARGUMENT", "image: is required"),
        (job(execution={"task_count": 10_001}), "INVALID_ARGUMENT", "task_count: must be between 1 and 10000"),
        (job(execution={"task_count": -1}), "INVALID_ARGUMENT", "task_count"),
        (job(execution={"parallelism": -1}), "INVALID_ARGUMENT", "parallelism"),
        (job(task={"max_retries": 11}), "INVALID_ARGUMENT", "max_retries: must be between 0 and 10"),
        (job(task={"timeout": timedelta(hours=169)}), "INVALID_ARGUMENT", "timeout: must be more than 0s and at most 604800s"),
        (job(task={"timeout": timedelta(0)}), "INVALID_ARGUMENT", "timeout"),
        (job(labels={"run.googleapis.com/x": "y"}), "INVALID_ARGUMENT", "labels"),
        (job(annotations={"a.serving.knative.dev/x": "y"}), "INVALID_ARGUMENT", "annotations"),
        (
            job(container={"env": [{"name": "CLOUD_RUN_JOB", "value": "x"}]}),
            "INVALID_ARGUMENT",
            "reserved env names were provided: CLOUD_RUN_JOB",
        ),
        (job(container={"env": [{"name": "A=B", "value": "x"}]}), "INVALID_ARGUMENT", "no name of a variable"),
        (job(container={"env": [{"name": "A", "value_source": {"secret_key_ref": {"secret": "s"}}}]}), "UNIMPLEMENTED", "secret"),
        (job(container={"command": ["a\0b"]}), "INVALID_ARGUMENT", "NUL"),
        (job(container={"volume_mounts": [{"name": "v", "mount_path": "/c"}]}), "INVALID_ARGUMENT", "no volume is named 'v'"),
        (job(task={"volumes": [VOLUME]}, container={"volume_mounts": [{"name": "v", "mount_path": "c"}]}), "INVALID_ARGUMENT", "no volume"),
        (job(task={"volumes": [VOLUME, VOLUME]}), "INVALID_ARGUMENT", "unique"),
        (job(task={"volumes": [{"name": "v", "gcs": {}}]}), "INVALID_ARGUMENT", "bucket: is required"),
        (job(task={"volumes": [{"name": "v"}]}), "INVALID_ARGUMENT", "one source"),
        (job(task={"volumes": [{"name": "v", "nfs": {"server": "s"}}]}), "UNIMPLEMENTED", "nfs"),
        (job(start_execution_token="x"), "UNIMPLEMENTED", "token"),
        (job(labels={"BAD LABEL": "x"}), "INVALID_ARGUMENT", "BAD LABEL"),
        (job(labels={"key": "Capital"}), "INVALID_ARGUMENT", "labels"),
        (job(labels={"1st": "x"}), "INVALID_ARGUMENT", "labels"),
        (job(labels={"k": "v" * 64}), "INVALID_ARGUMENT", "labels"),
        (job(execution={"labels": {"a b": ""}}), "INVALID_ARGUMENT", "job.template.labels"),
        (job(task={"node_selector": {"accelerator": "nvidia-nonsense"}}), "INVALID_ARGUMENT", "'nvidia-nonsense' is not supported"),
        (job(container={"resources": {"limits": {"memory": "lots"}}}), "INVALID_ARGUMENT", "memory: 'lots' is no quantity"),
        (job(container={"resources": {"limits": {"cpu": "77"}}}), "INVALID_ARGUMENT", "cpu: must be"),
        (job(container={"resources": {"limits": {"nvidia.com/gpu": "1"}}}), "INVALID_ARGUMENT", "accelerator: is required"),
        (job(task={"node_selector": {"accelerator": "nvidia-l4"}}), "INVALID_ARGUMENT", "gpu is required"),
    ],
)
def test_an_impossible_job_is_refused_with_its_field(wrong, code, text):
    if text == "no volume":  # the container of ``job`` takes its own fields: the mount is of a volume that is there, at a relative path
        wrong.template.template.containers[0].volume_mounts = [run_v2.VolumeMount(name="v", mount_path="c")]
        text = "absolute path"
    with pytest.raises(ApiError) as caught:
        complete_job(wrong)
    assert caught.value.code == code
    assert text in caught.value.message


def test_gpus_are_counted_for_all_tasks_that_run_at_once_against_the_quota_of_their_kind():
    gpu = job(
        task={"node_selector": {"accelerator": "nvidia-l4"}, "gpu_zonal_redundancy_disabled": True},
        container={"resources": {"limits": {"nvidia.com/gpu": "1"}}},
        execution={"task_count": 8, "parallelism": 3},
    )

    assert gpus_of(complete_job(gpu)) == (3, "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion")
    assert gpus_of(complete_job(job()))[0] == 0


# ---- mounts ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("/checkpoints", "/here"),
        ("--out=/checkpoints/a", "--out=/here/a"),
        ("open('/checkpoints/a')", "open('/here/a')"),
        ("/checkpoints/deep/x", "/deeper/x"),
        ("/checkpoints2", "/checkpoints2"),
        ("/var/checkpoints", "/var/checkpoints"),
        ("/checkpoints-old", "/checkpoints-old"),
        ("/a:/checkpoints:/b", "/a:/here:/b"),
    ],
)
def test_a_mounts_path_is_replaced_where_it_is_a_path_of_its_own(text, here):
    mounts = Mounts([Mount("/checkpoints", Path("/here")), Mount("/checkpoints/deep", Path("/deeper"))])

    assert mounts.here(text) == here


def test_without_mounts_nothing_is_replaced():
    assert Mounts([]).here("/checkpoints") == "/checkpoints"


def mounted(tmp_path, *, options=(), sub_path="", bucket="b"):
    template = job(
        task={"volumes": [{"name": "v", "gcs": {"bucket": bucket, "mount_options": list(options)}}]},
    ).template.template
    template.containers[0].volume_mounts = [run_v2.VolumeMount(name="v", mount_path="/c/", sub_path=sub_path)]
    return mounts_of(template, Buckets(tmp_path), scratch=tmp_path / "scratch")


def test_a_bucket_is_mounted_whole_or_from_the_part_that_only_dir_names(tmp_path):
    assert mounted(tmp_path).directory("/c") == tmp_path / "b"
    part = mounted(tmp_path, options=["implicit-dirs", "only-dir=harness/run"], sub_path="x").directory("/c")

    assert part == tmp_path / "b/harness/run/x"
    assert part.is_dir()


def test_a_part_that_leads_out_of_its_bucket_and_a_bucket_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(ApiError, match="leads out"):
        mounted(tmp_path, options=["only-dir=../other"])
    with pytest.raises(ApiError, match="NOT_FOUND"):
        mounted(tmp_path, bucket="other")
    assert not (tmp_path / "other").exists()


def test_a_file_system_in_memory_is_a_directory_of_the_execution(tmp_path):
    template = job(task={"volumes": [{"name": "m", "empty_dir": {}}]}).template.template
    template.containers[0].volume_mounts = [run_v2.VolumeMount(name="m", mount_path="/cache")]

    assert mounts_of(template, Buckets(tmp_path), scratch=tmp_path / "s").directory("/cache") == tmp_path / "s/volumes/m"


# ---- launches ----------------------------------------------------------------------------------------------------------------


def test_a_launch_has_what_the_template_says_with_paths_of_this_machine(tmp_path):
    template = complete_job(
        job(
            task={"max_retries": 2, "timeout": timedelta(seconds=90)},
            container={"command": ["python3", "/c/train.py"], "args": ["--out=/c/x"], "env": [{"name": "DATA", "value": "/c/data"}]},
            execution={"task_count": 4, "parallelism": 2},
        )
    )
    launch = launch_of(template, "train", place(tmp_path, Mounts([Mount("/c", tmp_path / "b")])))

    assert launch.command[-3:] == ("python3", f"{tmp_path}/b/train.py", f"--out={tmp_path}/b/x")
    assert launch.environment["DATA"] == f"{tmp_path}/b/data"
    assert launch.environment["PATH"].startswith(str(Path(sys.executable).parent))
    assert (launch.tasks, launch.parallelism, launch.max_retries, launch.timeout_s) == (4, 2, 2, 90)
    assert launch.checkpoint_dir == tmp_path / "b"


def test_a_job_sees_no_variable_of_the_local_target_but_those_that_it_has_itself(tmp_path):
    bare = launch_of(complete_job(job()), "j", place(tmp_path))
    own = launch_of(complete_job(job(container={"env": [{"name": "CHECKPOINT_DIR", "value": "/mine"}]})), "j", place(tmp_path))

    assert bare.command[1:3] == ("-uCHECKPOINT_DIR", "-uHARNESS_EVENTS")
    assert own.command[1:3] == ("-uHARNESS_EVENTS", "CHECKPOINT_DIR=/mine")


def test_an_image_without_a_command_runs_what_its_user_has_named_or_nothing(tmp_path):
    silent = complete_job(job(container={"command": [], "args": ["x"]}))

    assert launch_of(silent, "j", place(tmp_path, entrypoints={"image": ("sh", "-c")})).command[-3:] == ("sh", "-c", "x")
    with pytest.raises(ApiError, match=r"FAILED_PRECONDITION.*entry point of 'image'"):
        launch_of(silent, "j", place(tmp_path))


@pytest.mark.parametrize(("command", "missing"), [(["no-such-program"], "no-such-program"), (["/no/such"], "/no/such"), (["sh"], "")])
def test_a_program_that_is_not_there_is_named_though_env_stands_before_it(tmp_path, command, missing):
    assert missing_program(launch_of(complete_job(job(container={"command": command})), "j", place(tmp_path))) == missing


def test_overrides_change_the_execution_and_leave_the_job():
    template = complete_job(
        job(
            container={"name": "main", "args": ["a"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            execution={"task_count": 4, "parallelism": 4},
        )
    )
    overrides = run_v2.RunJobRequest.Overrides(
        task_count=2,
        timeout=timedelta(seconds=5),
        container_overrides=[{"name": "main", "args": ["b", "c"], "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}],
    )
    changed = overridden(template, overrides)
    container = changed.template.template.containers[0]

    assert (changed.template.task_count, changed.template.parallelism) == (2, 2)
    assert changed.template.template.timeout == timedelta(seconds=5)
    assert list(container.args) == ["b", "c"]
    assert {variable.name: variable.value for variable in container.env} == {"A": "1", "B": "3", "C": "4"}
    assert list(template.template.template.containers[0].args) == ["a"]


def test_arguments_can_be_cleared():
    overrides = run_v2.RunJobRequest.Overrides(container_overrides=[{"clear_args": True}])

    assert list(overridden(complete_job(job(container={"args": ["a"]})), overrides).template.template.containers[0].args) == []


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({"task_count": 10_001}, "overrides.task_count"),
        ({"timeout": timedelta(hours=200)}, "overrides.timeout"),
        ({"container_overrides": [{"name": "other"}]}, "no container is named 'other'"),
        ({"container_overrides": [{"args": ["a"], "clear_args": True}]}, "exclude one another"),
        ({"container_overrides": [{"env": [{"name": "CLOUD_RUN_JOB", "value": "x"}]}]}, "reserved"),
    ],
)
def test_impossible_overrides_are_refused(overrides, text):
    with pytest.raises(ApiError, match="INVALID_ARGUMENT") as caught:
        overridden(complete_job(job()), run_v2.RunJobRequest.Overrides(**overrides))
    assert text in caught.value.message
