"""The three real jobs of the manual: their files hold together. They are run by hand, for they take gigabytes and half an hour."""

import csv
import re
import tomllib
from pathlib import Path

import pytest

from harness.config import read_config
from harness.protocol.log_patterns import PATTERN_NAMES
from tests.docs.pages import DOCS, blocks_of, commands_in

JOBS = DOCS / "jobs"
CONFIGS = sorted(JOBS.glob("*/*.toml"))

SAID = {
    "maxtext": {
        "step": (
            24,
            "I1129 13:34:01.977393 140039953435520 metric_logger.py:265] completed step: 24, seconds: 0.001, TFLOP/s/device: 0.017",
        ),
        "saved": (
            20,
            "atomicity.py:851] [process=0][thread=async_save] Finished saving checkpoint (finalized tmp dir) to `/c/tiny/checkpoints/20`.",
        ),
        "resumed": (20, "I1129 13:34:18.201694 139681489976192 checkpointing.py:705] restoring from this run's directory step 20"),
    },
    "llamafactory": {
        "step": (24, " 40%|████      | 24/60 [00:01<00:02, 17.15it/s]"),
        "saved": (
            10,
            "[INFO|modeling_utils.py:3471] 2026-11-29 13:51:11,322 >> Model weights saved in /checkpoints/checkpoint-10/model.safetensors",
        ),
        "resumed": (
            30,
            "[INFO|trainer.py:1482] 2026-11-29 13:51:29,642 >>   Resuming training from checkpoint with epoch 0 and global step 30",
        ),
        "done": (None, "Training completed. Do not forget to share your model on huggingface.co/models =)"),
    },
    "openclip": {
        "step": (4, "2026-11-29,13:37:44 | INFO | Start epoch 4"),
        "resumed": (
            6,
            "2026-11-29,13:41:34 | INFO | => resuming checkpoint '/checkpoints/tiny/checkpoints/epoch_6.pt' (epoch 6)",
        ),
    },
}
"""Lines that the jobs printed, and the steps that they tell."""


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_configuration_validates(path):
    found = read_config(path)

    assert len(found) >= 5  # the four that any job gets, and one of its own
    assert {scenario.workload.name for scenario in found.values()} == {path.parent.name}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_pattern_reads_what_the_job_printed(path):
    patterns = tomllib.loads(path.read_text(encoding="utf-8"))["workload"]["logs"]
    said = SAID[path.parent.name]

    assert patterns.keys() == said.keys() <= set(PATTERN_NAMES)
    for name, (step, line) in said.items():
        (found,) = re.finditer(patterns[name], line)
        assert found.groupdict() == ({} if step is None else {"step": str(step)})


def test_every_job_is_described_with_the_versions_it_was_run_with():
    jobs = {path.parent.name for path in CONFIGS}
    lines = [command.line for block in blocks_of("own-job.md") for command in commands_in(block)]
    installed = {word.strip("'") for line in lines if line.startswith("pip install") for word in line.split()[2:]}

    pinned = {line for job in jobs for line in (JOBS / job / "requirements.txt").read_text(encoding="utf-8").split()}

    assert installed == pinned
    assert all("==" in pin for pin in pinned)
    assert len(jobs) == len(SAID) == 3


def test_no_file_names_a_place_of_one_machine():
    for path in JOBS.rglob("*"):
        if path.is_file() and path.suffix != ".png":
            assert not re.search(r"(?<![\w}/.-])/(?:home|root|tmp|work|usr|mnt)/", path.read_text(encoding="utf-8")), path


def test_pictures_have_captions_that_differ():
    with (JOBS / "openclip" / "train.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    assert len({row["title"] for row in rows}) == len(rows) == 320
    assert {Path(row["filepath"]).name for row in rows} == {path.name for path in (JOBS / "openclip" / "pictures").iterdir()}
