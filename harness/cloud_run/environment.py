"""What the platform names and says to an attempt."""

import os

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError
from harness.protocol.attempt_key import AttemptKey

CHECKPOINTS_AT = "/checkpoints"
"""Where a container sees its checkpoints: where the guide for Cloud Run mounts its bucket."""

EXECUTION_SUFFIX_LENGTH = 5
"""As Cloud Run writes it: the job, a hyphen, five letters or digits."""


def execution_name(launch: Launch) -> str:
    """The execution's name: as the platform's, with the end of the run id for its random part."""
    letters = [letter for letter in launch.run_id.lower() if letter.isascii() and letter.isalnum()]
    return f"{launch.job}-{''.join(letters)[-EXECUTION_SUFFIX_LENGTH:].rjust(EXECUTION_SUFFIX_LENGTH, '0')}"


def platform_variables(launch: Launch, key: AttemptKey, checkpoint_dir: str) -> dict[str, str]:
    """What the platform adds to the environment of an attempt; ``checkpoint_dir`` as the job sees it.

    Source: https://docs.cloud.google.com/run/docs/container-contract#jobs-env-vars
    """
    return {
        "CLOUD_RUN_JOB": launch.job,
        "CLOUD_RUN_EXECUTION": execution_name(launch),
        "CLOUD_RUN_TASK_INDEX": str(key.task),
        "CLOUD_RUN_TASK_ATTEMPT": str(key.attempt),
        "CLOUD_RUN_TASK_COUNT": str(launch.tasks),
        "CHECKPOINT_DIR": checkpoint_dir,
    }


def check_texts(launch: Launch) -> None:
    """See that its command and variables can be given to a process, and that its directory is there.

    Raises:
        InvalidDocumentError: When they hold what no process can be given, or the directory is not there.
    """
    for field, texts in (("command", launch.command), ("environment", launch.environment.values())):
        if any("\0" in text for text in texts):
            raise InvalidDocumentError(document=launch.job, field=field, problem="holds a NUL character, which no process can be given")
    if not os.path.isdir(launch.directory):  # noqa: PTH112  a name that is too long is no directory, and Path.is_dir raises at it
        raise InvalidDocumentError(document=launch.job, field="directory", problem=f"{launch.directory} is no directory")
