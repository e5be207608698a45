"""What an attempt is started with: command, environment, files."""

import os
import shutil
from pathlib import Path

from harness.capabilities import Launch
from harness.cloud_run.environment import check_texts, platform_variables
from harness.errors import WorkloadMissingError
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.variables import RUN_ID_VARIABLE, Doors, protocol_variables


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
    """The job's variables, and over them the platform's and the protocol's; a ``TMPDIR`` of the job's own choice stays."""
    environment = dict(launch.environment)
    if environment.get("TMPDIR") in (None, os.environ.get("TMPDIR")):
        environment["TMPDIR"] = str(scratch)
    doors = Doors(events=str(event_path(launch, key)), barrier=str(barrier_path or ""))
    return (
        environment | platform_variables(launch, key, str(launch.checkpoint_dir)) | protocol_variables(launch.run_id, doors, launch.armed)
    )


def check_program(launch: Launch) -> None:
    """See that the job can be started at all.

    Raises:
        WorkloadMissingError: When its program cannot be found or executed.
        InvalidDocumentError: As ``check_texts``.
    """
    check_texts(launch)
    program = launch.command[0]
    path = launch.environment.get("PATH", os.defpath)
    found = launch.directory / program if os.sep in program else Path(shutil.which(program, path=path) or os.devnull)
    if not (found.is_file() and os.access(found, os.X_OK)):
        raise WorkloadMissingError(workload=launch.job, program=program, directory=launch.directory)
