"""What an attempt is started with: names, command, environment, files."""

import os
import shutil
from pathlib import Path

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError, WorkloadMissingError
from harness.targets.local.execution import AttemptKey
from harness.targets.local.processes import RUN_ID_VARIABLE

EXECUTION_SUFFIX_LENGTH = 5
"""As Cloud Run writes it: the job, a hyphen, five letters or digits."""


def execution_name(launch: Launch) -> str:
    """The execution's name: as the platform's, with the end of the run id for its random part."""
    letters = [letter for letter in launch.run_id.lower() if letter.isascii() and letter.isalnum()]
    return f"{launch.job}-{''.join(letters)[-EXECUTION_SUFFIX_LENGTH:].rjust(EXECUTION_SUFFIX_LENGTH, '0')}"


def event_path(launch: Launch, key: AttemptKey) -> Path:
    """The file of an attempt's events."""
    return launch.logs_dir / f"events-task{key.task}-attempt{key.attempt}.jsonl"


def marks_of(launch: Launch, key: AttemptKey) -> list[bytes]:
    """The entries of the environment by which an attempt's processes are known."""
    return [
        f"{RUN_ID_VARIABLE}={launch.run_id}".encode(),
        f"CLOUD_RUN_TASK_INDEX={key.task}".encode(),
        f"CLOUD_RUN_TASK_ATTEMPT={key.attempt}".encode(),
    ]


def environment_of(launch: Launch, key: AttemptKey, barrier_path: Path | None, scratch: Path) -> dict[str, str]:
    """The job's variables, and over them the platform's and the protocol's; a ``TMPDIR`` of the job's own choice stays.

    Source: https://docs.cloud.google.com/run/docs/container-contract#jobs-env-vars
    """
    environment = dict(launch.environment)
    if environment.get("TMPDIR") == os.environ.get("TMPDIR"):
        environment["TMPDIR"] = str(scratch)
    environment |= {
        "CLOUD_RUN_JOB": launch.job,
        "CLOUD_RUN_EXECUTION": execution_name(launch),
        "CLOUD_RUN_TASK_INDEX": str(key.task),
        "CLOUD_RUN_TASK_ATTEMPT": str(key.attempt),
        "CLOUD_RUN_TASK_COUNT": str(launch.tasks),
        "CHECKPOINT_DIR": str(launch.checkpoint_dir),
        "HARNESS_EVENTS": str(event_path(launch, key)),
        RUN_ID_VARIABLE: launch.run_id,
    }
    if barrier_path is not None:
        environment |= {"HARNESS_BARRIER": str(barrier_path), "HARNESS_ARMED": " ".join(launch.armed)}
    return environment


def check_program(launch: Launch) -> None:
    """See that the job can be started at all.

    Raises:
        WorkloadMissingError: When its program cannot be found or executed.
        InvalidDocumentError: When its command or environment holds what no process can be given, or its directory is not there.
    """
    for field, texts in (("command", launch.command), ("environment", launch.environment.values())):
        if any("\0" in text for text in texts):
            raise InvalidDocumentError(document=launch.job, field=field, problem="holds a NUL character, which no process can be given")
    if not os.path.isdir(launch.directory):  # noqa: PTH112  a name that is too long is no directory, and Path.is_dir raises at it
        raise InvalidDocumentError(document=launch.job, field="directory", problem=f"{launch.directory} is no directory")
    program = launch.command[0]
    path = launch.environment.get("PATH", os.defpath)
    found = launch.directory / program if os.sep in program else Path(shutil.which(program, path=path) or os.devnull)
    if not (found.is_file() and os.access(found, os.X_OK)):
        raise WorkloadMissingError(workload=launch.job, program=program, directory=launch.directory)
