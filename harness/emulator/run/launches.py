"""How an execution is started here: its job's template, with the caller's overrides, as a launch of the local target."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.cloud import run_v2

from harness.capabilities import Launch
from harness.emulator.failures import ApiError, invalid_argument
from harness.emulator.run.mounts import Mounts
from harness.emulator.run.validation import check_task_count, check_timeout, check_variables

CHECKPOINTS_AT = "/checkpoints"
"""Where the guide mounts its bucket."""

_OURS = ("CHECKPOINT_DIR", "HARNESS_EVENTS")
"""Set for a job by the local target, and by nobody on Cloud Run: taken away again, or given back the job's own values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlace:
    """Where an execution runs.

    Attributes:
        run_id: Its processes carry it, and its name ends with the last letters of it.
        directory: Its own: its working directory and its log are in there.
        mounts: Its volumes.
        grace_s: Between SIGTERM and SIGKILL.
        epoch_s: The zero of its times, on the monotonic clock.
        entrypoints: What images run that are given no command.
    """

    run_id: str
    directory: Path
    mounts: Mounts
    grace_s: float
    epoch_s: float
    entrypoints: Mapping[str, Sequence[str]]


def overridden(job: run_v2.Job, overrides: run_v2.RunJobRequest.Overrides) -> run_v2.Job:
    """A copy of a job with what the caller of ``RunJob`` wants otherwise.

    Raises:
        ApiError: INVALID_ARGUMENT when it cannot be had.
    """
    changed = run_v2.Job()
    run_v2.Job.copy_from(changed, job)
    execution = changed.template
    if overrides.task_count:
        check_task_count(overrides.task_count, field="overrides.task_count")
        execution.parallelism = min(execution.parallelism, overrides.task_count)
        execution.task_count = overrides.task_count
    if "timeout" in overrides:
        check_timeout(overrides.timeout, field="overrides.timeout")
        execution.template.timeout = overrides.timeout
    for override in overrides.container_overrides:
        _override_container(execution.template.containers, override)
    return changed


def launch_of(job: run_v2.Job, job_id: str, place: LaunchPlace) -> Launch:
    """The launch of an execution.

    Raises:
        ApiError: FAILED_PRECONDITION when nothing says what its image runs.
    """
    task = job.template.template
    container = task.containers[0]
    here = place.mounts.here
    variables = {variable.name: here(variable.value) for variable in container.env}
    command = tuple(here(part) for part in _command_of(container, place.entrypoints))
    checkpoints = variables.get("CHECKPOINT_DIR") or place.mounts.directory(CHECKPOINTS_AT) or place.mounts.first()
    return Launch(
        run_id=place.run_id,
        job=job_id,
        command=_as_on_the_platform(command, variables),
        directory=_working_directory(here(container.working_dir), place.directory / "work"),
        environment={"PATH": _search_path(), "HOME": str(place.directory / "work"), **variables},
        checkpoint_dir=Path(checkpoints or place.directory / "work"),
        logs_dir=place.directory / "logs",
        tasks=job.template.task_count,
        parallelism=job.template.parallelism,
        max_retries=task.max_retries,
        timeout_s=task.timeout.total_seconds(),
        grace_s=place.grace_s,
        epoch_s=place.epoch_s,
    )


def missing_program(launch: Launch) -> str:
    """The program of a launch, where it is not to be found: nobody else looks, for ``env`` stands before it."""
    program = next(part for part in launch.command[1:] if part and not part.startswith("-u") and "=" not in part)
    found = launch.directory / program if os.sep in program else shutil.which(program, path=launch.environment["PATH"])
    return "" if found and os.access(found, os.X_OK) and Path(found).is_file() else program


def _as_on_the_platform(command: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The command behind ``env``, which replaces itself by it: what the local target adds is taken away again."""
    settings = [f"{name}={variables[name]}" if name in variables else f"-u{name}" for name in _OURS]
    return (shutil.which("env") or "/usr/bin/env", *sorted(settings), *command)


def _command_of(container: run_v2.Container, entrypoints: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    command = container.command or entrypoints.get(container.image, ())
    if not command:
        raise ApiError(
            "FAILED_PRECONDITION",
            f"The emulator does not look into images: give the container a command, or name the entry point of '{container.image}'.",
        )
    return (*command, *container.args)


def _working_directory(wanted: str, default: Path) -> Path:
    """The container's, where there is one of that path on this machine; else the execution's own."""
    default.mkdir(parents=True, exist_ok=True)
    return Path(wanted) if wanted and Path(wanted).is_dir() else default


def _search_path() -> str:
    """This interpreter comes first, so that ``python3`` has what is installed beside it, as in an image."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _override_container(containers: Sequence[run_v2.Container], override: run_v2.RunJobRequest.Overrides.ContainerOverride) -> None:
    found = [container for container in containers if override.name in ("", container.name)]
    if not found:
        raise invalid_argument("overrides.container_overrides.name", f"no container is named '{override.name}'")
    check_variables(list(override.env), field="overrides.container_overrides.env")
    container = found[0]
    if override.clear_args and override.args:
        raise invalid_argument("overrides.container_overrides", "args and clear_args exclude one another")
    if override.clear_args or override.args:
        container.args = list(override.args)
    merged = {variable.name: variable for variable in (*container.env, *override.env)}
    container.env = list(merged.values())
