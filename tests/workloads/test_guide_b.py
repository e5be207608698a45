"""The guide's own script runs on a slice of Ray's as the guide says, and saves nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workloads.job_process import ROOT
from tests.workloads.tpu_slice import tpu_slice

DEADLINE_S = 240


@pytest.mark.slow
def test_the_guides_job_trains_on_every_host_says_so_and_leaves_no_checkpoint(tmp_path: Path) -> None:
    with tpu_slice("2x4", 2) as place:
        own = {"HOSTS": "2", "TOPOLOGY": "2x4", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
        command = [sys.executable, ROOT / "workloads" / "guide_b" / "train.py"]
        done = subprocess.run(command, env=os.environ | place | own, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S)

    assert done.returncode == 0, done.stderr
    assert "Epoch 40: Loss" in done.stdout
    assert "Training Complete!" in done.stdout
    assert "Run result:" in done.stdout
    assert not list(tmp_path.rglob("*checkpoint_*/*"))
