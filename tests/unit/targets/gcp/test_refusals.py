"""What Cloud Run would not take is refused before anything is made."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import InvalidDocumentError
from harness.targets.gcp.place import Place
from harness.targets.gcp.refusals import check_launch, credentials_in
from tests.unit.targets.gcp.launches import PLACE, launch_of

WITH_GPU = Place(project="test-project", region="europe-west4", bucket="test-bucket", job="trainer", gpus=1)


def test_a_launch_that_cloud_run_takes_is_not_refused(tmp_path: Path):
    check_launch(launch_of(tmp_path), PLACE, is_emulated=False)
    check_launch(launch_of(tmp_path, timeout_s=0.5), PLACE, is_emulated=True)


@pytest.mark.parametrize(
    ("fields", "place", "named"),
    [
        ({"timeout_s": 200 * 3600.0}, PLACE, "timeout_s"),
        ({"timeout_s": 13 * 3600.0}, WITH_GPU, "timeout_s"),
        ({"timeout_s": 0.5}, PLACE, "timeout_s"),
        ({"memory_mib": 100}, PLACE, "memory_mib"),
        ({"memory_mib": 64 << 10}, PLACE, "memory_mib"),
        ({"environment": {"BIG": "x" * (33 << 10)}}, PLACE, "environment"),
        ({"environment": {f"V{index}": "" for index in range(1001)}}, PLACE, "environment"),
        ({"environment": {"HF_TOKEN": "x"}}, PLACE, "HF_TOKEN is named like a credential"),
        ({"environment": {"HUB": "https://me:hunter22@hub"}}, PLACE, "the value of HUB looks like a credential"),
        ({"command": ("python3", "train.py", "--wandb-api-key=planted0123")}, PLACE, "argument 2 looks like a credential"),
        ({"command": ("python3", "train.py", "--wandb-api-key", "planted0123")}, PLACE, "argument 3 looks like a credential"),
        ({"command": ("sh", "-c", "train --wandb-api-key planted0123")}, PLACE, "argument 2 looks like a credential"),
        ({"command": ("python3", "/harness/train.py")}, PLACE, "command"),
    ],
)
def test_a_launch_that_it_does_not_take_is_refused_by_the_field(tmp_path: Path, fields: dict[str, Any], place: Place, named: str):
    with pytest.raises(InvalidDocumentError, match=named) as caught:
        check_launch(launch_of(tmp_path, **fields), place, is_emulated=False)
    assert "hunter22" not in str(caught.value)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [("--tokenizer", "gpt2"), ("--max-token", "4096"), ("--mode", "basic", "training"), ("--hub-token", "--verbose"), ("--out", "a-token")],
)
def test_an_argument_that_is_no_credential_is_taken(command: tuple[str, ...]):
    assert not list(credentials_in({}, ("python3", "train.py", *command)))
