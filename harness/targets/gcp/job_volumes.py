"""What the containers of a run's job mount: the run's own parts of the bucket, and of an adopted job's volumes what may only be read."""

from typing import TYPE_CHECKING

from harness.cloud_run.environment import CHECKPOINTS_AT
from harness.targets.gcp.run_names import agent_prefix, checkpoints_prefix

if TYPE_CHECKING:
    from google.cloud import run_v2

AGENT_AT = "/harness"
"""Where the container sees the agent, its orders and its reports."""

CHECKPOINT_VOLUME, AGENT_VOLUME = "checkpoint-volume", "harness-volume"
"""The first as the guide calls it."""

NO_CACHE = ("metadata-cache-ttl-secs=0",)
"""Of the agent's volume: an order is to be seen when it is there, and a look for one that is not must not be remembered.

Source: https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/cli-options
"""


def mount_run(task: "run_v2.TaskTemplate", run_id: str, bucket: str) -> None:
    """The run's own part of the bucket in place of whatever was mounted there, in every container."""
    from google.cloud import run_v2

    own = _checkpoint_options(task)
    for index, container in enumerate(task.containers):
        kept = [mount for mount in container.volume_mounts if mount.mount_path.rstrip("/") not in (CHECKPOINTS_AT, AGENT_AT)]
        had_checkpoints = any(mount.mount_path.rstrip("/") == CHECKPOINTS_AT for mount in container.volume_mounts)
        if index == 0 or had_checkpoints:
            kept.append(run_v2.VolumeMount(name=CHECKPOINT_VOLUME, mount_path=CHECKPOINTS_AT))
        if index == 0:
            kept.append(run_v2.VolumeMount(name=AGENT_VOLUME, mount_path=AGENT_AT))
        container.volume_mounts = kept
    names = {mount.name for container in task.containers for mount in container.volume_mounts}
    volumes = [volume for volume in task.volumes if volume.name in names and volume.name not in (CHECKPOINT_VOLUME, AGENT_VOLUME)]
    for volume in volumes:
        _make_read_only(volume)
    for name, prefix, options in ((CHECKPOINT_VOLUME, checkpoints_prefix(run_id), own), (AGENT_VOLUME, agent_prefix(run_id), NO_CACHE)):
        source = run_v2.GCSVolumeSource(bucket=bucket, mount_options=[f"only-dir={prefix.rstrip('/')}", *options])
        volumes.append(run_v2.Volume(name=name, gcs=source))
    task.volumes = volumes


def _checkpoint_options(task: "run_v2.TaskTemplate") -> tuple[str, ...]:
    """How an adopted job mounts its checkpoints, but for which part of the bucket: what it finds there follows from that."""
    mounts = [mount for container in task.containers for mount in container.volume_mounts]
    names = {mount.name for mount in mounts if mount.mount_path.rstrip("/") == CHECKPOINTS_AT}
    options = [option for volume in task.volumes if volume.name in names and "gcs" in volume for option in volume.gcs.mount_options]
    return tuple(option for option in options if not option.startswith("only-dir"))


def other_volumes(job: "run_v2.Job") -> list["run_v2.Volume"]:
    """What an adopted job mounts besides what the run's own volumes stand in for."""
    containers = job.template.template.containers
    names = {
        mount.name for each in containers for mount in each.volume_mounts if mount.mount_path.rstrip("/") not in (CHECKPOINTS_AT, AGENT_AT)
    }
    return [
        volume for volume in job.template.template.volumes if volume.name in names and volume.name not in (CHECKPOINT_VOLUME, AGENT_VOLUME)
    ]


def volume_problems(job: "run_v2.Job") -> list[str]:
    """Volumes that a copy of a job would change what is nobody's to change through, and that cannot be mounted read-only."""
    databases = [volume for volume in other_volumes(job) if volume.cloud_sql_instance.instances]
    return [
        f"job {job.name} mounts the databases {', '.join(volume.cloud_sql_instance.instances)}, which a copy that is killed and retried "
        f"would write to; adopt a job without that volume"
        for volume in databases
    ]


def told_volume(volume: "run_v2.Volume") -> str:
    """A volume, in words, as a copy mounts it."""
    if volume.gcs.bucket:
        return f"gs://{volume.gcs.bucket} read-only"
    if volume.nfs.server:
        return f"nfs {volume.nfs.server}:{volume.nfs.path} read-only"
    if volume.cloud_sql_instance.instances:
        return f"databases {', '.join(volume.cloud_sql_instance.instances)}"
    return f"secret {volume.secret.secret}" if volume.secret.secret else "empty directory"


def _make_read_only(volume: "run_v2.Volume") -> None:
    """What the job has besides its checkpoints is production's: a copy that is killed and tried again must not write to it."""
    if volume.gcs.bucket:
        volume.gcs.read_only = True
    if volume.nfs.server:
        volume.nfs.read_only = True
