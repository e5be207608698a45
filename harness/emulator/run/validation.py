"""What a job may be, and what is filled in where its caller is silent.

Limits: https://docs.cloud.google.com/run/quotas, https://docs.cloud.google.com/run/docs/configuring/task-timeout. Assumed: the words of the
refusals; which field is refused, and with which code, is documented.
"""

from datetime import timedelta

from google.cloud import run_v2

from harness.emulator.failures import ApiError, invalid_argument, unimplemented
from harness.emulator.run.names import check_label
from harness.emulator.run.resource_limits import check_accelerator, check_limits

TASKS_MAX = 10_000
RETRIES_MAX = 10
RETRIES_DEFAULT = 3
TIMEOUT_DEFAULT = timedelta(seconds=600)
TIMEOUT_MAX = timedelta(hours=168)

_FOREIGN_NAMESPACES = ("run.googleapis.com", "cloud.googleapis.com", "serving.knative.dev", "autoscaling.knative.dev")
"""Source: the documentation of ``Job.labels``: labels and annotations in these are refused."""

RESERVED_VARIABLES = frozenset(
    {"CLOUD_RUN_JOB", "CLOUD_RUN_EXECUTION", "CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_ATTEMPT", "CLOUD_RUN_TASK_COUNT"}
)
"""The platform sets them; source: https://docs.cloud.google.com/run/docs/container-contract#jobs-env-vars"""


def complete_job(job: run_v2.Job) -> run_v2.Job:
    """A copy of a job with the defaults filled in.

    Raises:
        ApiError: INVALID_ARGUMENT when it cannot be a job, UNIMPLEMENTED for what the emulator does not cover.
    """
    complete = run_v2.Job()
    run_v2.Job.copy_from(complete, job)
    _check_names("job", complete.labels, complete.annotations)
    if "template" not in complete or "template" not in complete.template:
        raise invalid_argument("job.template.template", "is required")
    if complete.start_execution_token or complete.run_execution_token:
        raise unimplemented("an execution token of a job")
    execution = complete.template
    _check_names("job.template", execution.labels, execution.annotations)
    execution.task_count = execution.task_count or 1
    check_task_count(execution.task_count, field="job.template.task_count")
    if not 0 <= execution.parallelism <= TASKS_MAX:
        raise invalid_argument("job.template.parallelism", f"must be between 0 and {TASKS_MAX}, got {execution.parallelism}")
    execution.parallelism = min(execution.parallelism, execution.task_count)
    _complete_task(execution.template)
    return complete


def check_task_count(count: int, *, field: str) -> None:
    """See that an execution may have so many tasks.

    Raises:
        ApiError: INVALID_ARGUMENT when it may not.
    """
    if not 1 <= count <= TASKS_MAX:
        raise invalid_argument(field, f"must be between 1 and {TASKS_MAX}, got {count}")


def check_timeout(timeout: timedelta, *, field: str) -> None:
    """See that an attempt may last so long. The shorter limits of GPU tasks are not enforced: the pages disagree about them.

    Raises:
        ApiError: INVALID_ARGUMENT when it may not.
    """
    if not timedelta(0) < timeout <= TIMEOUT_MAX:
        raise invalid_argument(
            field, f"must be more than 0s and at most {int(TIMEOUT_MAX.total_seconds())}s, got {timeout.total_seconds():g}s"
        )


def check_variables(variables: list[run_v2.EnvVar], *, field: str) -> None:
    """See that variables may be given to a container.

    Raises:
        ApiError: INVALID_ARGUMENT when one may not, UNIMPLEMENTED for one from a secret.
    """
    reserved = sorted({variable.name for variable in variables} & RESERVED_VARIABLES)
    if reserved:
        names = ", ".join(reserved)
        raise invalid_argument(
            field, f"The following reserved env names were provided: {names}. These values are automatically set by the system."
        )
    for variable in variables:
        if not variable.name or "=" in variable.name or "\0" in variable.name + variable.value:
            raise invalid_argument(field, f"'{variable.name}' is no name of a variable, or its value cannot be one")
        if "value_source" in variable:
            raise unimplemented(f"variable {variable.name} from a secret")


def gpus_of(job: run_v2.Job) -> tuple[int, str]:
    """How many GPUs all tasks that run at once need, and the quota that they count against; 0 without any.

    Source: https://docs.cloud.google.com/run/docs/configuring/jobs/gpu; the form of the quota's name is that of the L4.
    """
    execution = job.template
    task = execution.template
    each = sum(int(container.resources.limits.get("nvidia.com/gpu", "0")) for container in task.containers)
    kind = "".join(part.capitalize() for part in task.node_selector.accelerator.split("-"))
    redundancy = "NoZonalRedundancy" if task.gpu_zonal_redundancy_disabled else ""
    return each * (execution.parallelism or execution.task_count), f"{kind}GpuAlloc{redundancy}PerProjectRegion"


def _complete_task(task: run_v2.TaskTemplate) -> None:
    where = "job.template.template"
    if run_v2.TaskTemplate.pb(task).WhichOneof("retries") is None:
        task.max_retries = RETRIES_DEFAULT
    if not 0 <= task.max_retries <= RETRIES_MAX:
        raise invalid_argument(f"{where}.max_retries", f"must be between 0 and {RETRIES_MAX}, got {task.max_retries}")
    if "timeout" not in task:
        task.timeout = TIMEOUT_DEFAULT
    check_timeout(task.timeout, field=f"{where}.timeout")
    if not task.containers:
        raise invalid_argument(f"{where}.containers", "at least one container is required")
    if len(task.containers) > 1:
        raise unimplemented("a task of more than one container")
    accelerator = task.node_selector.accelerator
    check_accelerator(accelerator, field=f"{where}.node_selector.accelerator")
    _check_container(task.containers[0], accelerator=accelerator, field=f"{where}.containers[0]")
    _check_volumes(task)
    _check_accelerator(task)


def _check_container(container: run_v2.Container, *, accelerator: str, field: str) -> None:
    if not container.image:
        raise invalid_argument(f"{field}.image", "is required")
    check_variables(list(container.env), field=f"{field}.env")
    if any("\0" in text for text in (*container.command, *container.args)):
        raise invalid_argument(f"{field}.command", "holds a NUL character")
    check_limits(dict(container.resources.limits), accelerator=accelerator, field=f"{field}.resources.limits")


def _check_accelerator(task: run_v2.TaskTemplate) -> None:
    wants = any(container.resources.limits.get("nvidia.com/gpu", "0") != "0" for container in task.containers)
    if wants and not task.node_selector.accelerator:
        raise invalid_argument("job.template.template.node_selector.accelerator", "is required where GPUs are requested")
    if task.node_selector.accelerator and not wants:
        raise invalid_argument(
            "job.template.template.containers[0].resources.limits", "nvidia.com/gpu is required where an accelerator is selected"
        )


def _check_volumes(task: run_v2.TaskTemplate) -> None:
    volumes = {volume.name: volume for volume in task.volumes}
    if len(volumes) < len(task.volumes) or "" in volumes:
        raise invalid_argument("job.template.template.volumes", "names must be given, and be unique")
    for volume in volumes.values():
        kind = run_v2.Volume.pb(volume).WhichOneof("volume_type")
        if kind not in ("gcs", "empty_dir"):
            raise _no_volume(volume.name, kind)
        if kind == "gcs" and not volume.gcs.bucket:
            raise invalid_argument(f"job.template.template.volumes[{volume.name}].gcs.bucket", "is required")
    seen: set[str] = set()
    for mount in task.containers[0].volume_mounts:
        field = f"job.template.template.containers[0].volume_mounts[{mount.name}]"
        if mount.name not in volumes:
            raise invalid_argument(field, f"no volume is named '{mount.name}'")
        path = mount.mount_path.rstrip("/")
        if not path.startswith("/") or ".." in path.split("/") or path in seen:
            raise invalid_argument(f"{field}.mount_path", f"must be an absolute path below the root, used once; got '{mount.mount_path}'")
        seen.add(path)


def _no_volume(name: str, kind: str | None) -> ApiError:
    if kind is None:
        return invalid_argument(f"job.template.template.volumes[{name}]", "must have one source")
    return unimplemented(f"volume {name}: {kind}")


def _check_names(field: str, labels: object, annotations: object) -> None:
    for kind, names in (("labels", labels), ("annotations", annotations)):
        for name in names:  # type: ignore[attr-defined]  # a map of proto-plus
            namespace = str(name).rpartition("/")[0]
            if any(namespace == foreign or namespace.endswith(f".{foreign}") for foreign in _FOREIGN_NAMESPACES):
                raise invalid_argument(f"{field}.{kind}", f"'{name}' is in a namespace of the system, which API v2 does not support")
    for name, value in labels.items():  # type: ignore[attr-defined]  # likewise
        check_label(str(name), str(value), field=f"{field}.labels")
