"""The job of a run: made as the guide deploys it, or a copy of an adopted one; either way run-owned, and its command wrapped by the agent.

An adopted job is never changed: another may run it meanwhile. ``RunJob`` can override arguments, variables, tasks and timeout of an
execution, but neither its command nor its volumes, and the agent needs both; so its copy is run, under a name of the run's own.

Source: https://docs.cloud.google.com/run/docs/reference/rest/v2/projects.locations.jobs (fields, ``Overrides``),
    https://docs.cloud.google.com/run/docs/configuring/jobs/gpu, https://docs.cloud.google.com/run/docs/configuring/jobs/cloud-storage-volume-mounts.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from harness.capabilities import Launch
from harness.cloud_run.environment import CHECKPOINTS_AT
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.gcp.agent_archive import ARCHIVE_NAME
from harness.targets.gcp.guard import ALLOWED_LABEL, ALLOWED_VALUE, LOCK_LABEL, RUN_LABEL
from harness.targets.gcp.job_volumes import AGENT_AT, mount_run
from harness.targets.gcp.pace import Pace
from harness.targets.gcp.place import Place
from harness.targets.gcp.resource_limits import GPU_TYPE, limits_of_copy, limits_of_made
from harness.targets.gcp.run_names import run_label

if TYPE_CHECKING:
    from google.cloud import run_v2

OWN_BARRIER = "save.end:after"
"""Where the job waits for a moment on our own behalf, but in no grace: what storage shows after a save is seen before the next one."""

GPU_TIMEOUT_S_MAX = 12 * 3600.0
TIMEOUT_S_MAX = 168 * 3600.0
"""Source: https://docs.cloud.google.com/run/docs/configuring/task-timeout"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a run's job is made of besides the launch.

    Attributes:
        place: Where.
        pace: Of the agent.
        interpreter: Of the container's Python.
        working_dir: Of the container; empty: its image's own.
        points: Where faults act, for the agent; none: the job is held wherever the launch arms it.
        lock: Under whose lock the run is; empty: none is needed.
    """

    place: Place
    pace: Pace
    interpreter: str = "python3"
    working_dir: str = ""
    points: tuple[str, ...] = ()
    lock: str = ""


def wrapped_command(launch: Launch, around: Surroundings) -> list[str]:
    """The job's command behind the agent."""
    pace = around.pace
    options = [
        "--job",
        launch.job,
        "--home",
        AGENT_AT,
        "--said-every-s",
        f"{pace.said_every_s:g}",
        "--look-every-s",
        f"{pace.look_every_s:g}",
    ]
    options += ["--armed", " ".join(dict.fromkeys(around.points or launch.armed)), "--own", OWN_BARRIER]
    return [around.interpreter, "-I", f"{AGENT_AT}/{ARCHIVE_NAME}", *options, "--", *launch.command]


def build_job(launch: Launch, around: Surroundings) -> "run_v2.Job":
    """The job as the guide deploys it: one container, GPUs without zonal redundancy, retries, timeout, the bucket at ``/checkpoints``."""
    from google.cloud import run_v2

    place = around.place
    limits = limits_of_made(launch.memory_mib, gpus=place.gpus, gpu_type=place.gpu_type)
    task = run_v2.TaskTemplate()
    if place.gpus:
        task.node_selector = run_v2.NodeSelector(accelerator=place.gpu_type or GPU_TYPE)
        task.gpu_zonal_redundancy_disabled = True
    container = run_v2.Container(image=launch.image or place.image, resources=run_v2.ResourceRequirements(limits=limits))
    task.containers = [container]
    if place.service_account:
        task.service_account = place.service_account
    job = run_v2.Job(template=run_v2.ExecutionTemplate(template=task))
    _make_run_owned(job, launch, around)
    return job


def copy_job(adopted: "run_v2.Job", launch: Launch, around: Surroundings) -> "run_v2.Job":
    """A copy of an adopted job that the run owns: how it runs, but for its command and what it could write to; nothing of whose it is."""
    from google.cloud import run_v2

    template = run_v2.ExecutionTemplate()
    run_v2.ExecutionTemplate.copy_from(template, adopted.template)
    job = run_v2.Job(template=template, launch_stage=adopted.launch_stage)
    if "binary_authorization" in adopted:
        job.binary_authorization = adopted.binary_authorization
    task = job.template.template
    resources = task.containers[0].resources
    resources.limits = limits_of_copy(dict(resources.limits), launch.memory_mib, gpu_type=task.node_selector.accelerator)
    _make_run_owned(job, launch, around)
    return job


def _make_run_owned(job: "run_v2.Job", launch: Launch, around: Surroundings) -> None:
    """Labels, the launch's own tasks, retries and timeout, the run's two volumes, and the wrapped command."""
    from google.cloud import run_v2

    labels = {ALLOWED_LABEL: ALLOWED_VALUE, RUN_LABEL: run_label(launch.run_id)}
    if around.lock:
        labels[LOCK_LABEL] = around.lock
    job.labels, job.template.labels = labels, labels
    job.template.task_count, job.template.parallelism = launch.tasks, launch.parallelism
    task = job.template.template
    task.max_retries = launch.max_retries
    task.timeout = timedelta(seconds=launch.timeout_s)
    task.execution_environment = run_v2.ExecutionEnvironment(run_v2.ExecutionEnvironment.EXECUTION_ENVIRONMENT_GEN2)
    container = task.containers[0]
    container.command = wrapped_command(launch, around)
    container.args = []
    if around.working_dir:
        container.working_dir = around.working_dir
    variables = {variable.name: variable for variable in container.env}
    given = {**launch.environment, "CHECKPOINT_DIR": CHECKPOINTS_AT, RUN_ID_VARIABLE: launch.run_id}
    variables |= {name: run_v2.EnvVar(name=name, value=value) for name, value in given.items()}
    container.env = list(variables.values())
    mount_run(task, launch.run_id, around.place.bucket)
