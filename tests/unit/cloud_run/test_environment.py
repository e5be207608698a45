"""What the platform names."""

from pathlib import Path

import pytest

from harness.capabilities import Launch
from harness.cloud_run.environment import check_texts, execution_name, platform_variables
from harness.errors import InvalidDocumentError
from harness.protocol.attempt_key import AttemptKey


def launch(**fields):
    base = {
        "run_id": "20260101-abc-XY12z",
        "job": "train",
        "command": ("true",),
        "directory": Path("/"),
        "environment": {},
        "checkpoint_dir": Path("/checkpoints"),
        "logs_dir": Path("/logs"),
    }
    return Launch(**(base | fields))


@pytest.mark.parametrize(
    ("run_id", "name"), [("20260101-abc-XY12z", "train-xy12z"), ("7", "train-00007"), ("", "train-00000"), ("é-ab", "train-000ab")]
)
def test_the_execution_is_named_after_the_job_and_the_run(run_id, name):
    assert execution_name(launch(run_id=run_id)) == name


def test_the_checkpoint_directory_is_named_as_the_job_sees_it():
    variables = platform_variables(launch(tasks=4), AttemptKey(2, 1), "/mounted")

    assert variables["CHECKPOINT_DIR"] == "/mounted"
    assert (variables["CLOUD_RUN_TASK_INDEX"], variables["CLOUD_RUN_TASK_ATTEMPT"], variables["CLOUD_RUN_TASK_COUNT"]) == ("2", "1", "4")


@pytest.mark.parametrize("fields", [{"command": ("sh", "\0")}, {"environment": {"A": "\0"}}, {"directory": Path("/no/such/directory")}])
def test_what_no_process_can_be_given_is_refused(fields):
    with pytest.raises(InvalidDocumentError):
        check_texts(launch(**fields))
