"""``harness explore --executor ray``: on a cluster that is there the answer is the same as on this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.explore.result import Exploration
from tests.integration.explore.recipes import ROOT
from tests.integration.test_ray_executor import CLUSTER

pytestmark = pytest.mark.slow

EXPLORE = ("explore", "--storage", "posix", "--scope", "process", "--budget", "12", "--result", "final.json", "--json", "--runs-dir")
RUN = ("--", sys.executable, "-m", "workloads.linear.train")
JOB = {"STEPS": "12", "STEP_SECONDS": "0", "SAVE_EVERY": "4"}


def explore(runs: Path, *options: str, **environment: str) -> Exploration:
    words = [sys.executable, "-m", "harness", *EXPLORE, str(runs), *options, *RUN]
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **JOB, **environment}, capture_output=True, text=True, timeout=200)
    assert done.returncode in (0, 2), done.stderr
    return msgspec.json.decode(done.stdout, type=Exploration)


def told(found: Exploration) -> list[tuple[str, str, int]]:
    """What is said of each state, as far as it was judged."""
    return sorted(
        (state.state, str(state.outcome), state.restored_step) for surface in found.surfaces for state in surface.states if state.outcome
    )


def test_states_that_a_ray_cluster_tries_are_judged_as_they_are_here(tmp_path: Path) -> None:
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert cluster.stdout is not None
    try:
        there = json.loads(cluster.stdout.readline())
        ray = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": there["token_path"], "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        far = explore(tmp_path / "far", "--executor", "ray", "--ray-address", there["address"], **ray)
    finally:
        cluster.communicate(timeout=60)
    near = explore(tmp_path / "near")

    assert len(told(far)) >= 12
    assert told(far) == told(near)
    assert there["address"] in far.judge
