"""States are tried on a Ray cluster of two nodes, one of which is taken away midway: every state is answered once, as it is locally."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from harness.clock import SystemClock
from harness.explore.executors.local import LocalExecutor
from harness.explore.executors.wire import encode
from harness.explore.judgement import Recovery
from harness.explore.recipe import Recipe, StateTask, Tried
from harness.process_table import read_table, send
from harness.targets import left_behind, remove_left_behind
from tests.integration.explore.recipes import ROOT, linear, python, state

pytestmark = pytest.mark.slow

STATES = 24

CLUSTER = """
import contextlib, json, sys
from workloads.jax_tpu.cluster import start_cluster
with contextlib.ExitStack() as stack:
    print(json.dumps(start_cluster(stack, nodes=2, cpus=1)), flush=True)
    sys.stdin.read()
"""

DRIVER = """
import sys
from pathlib import Path
from harness.explore.executors.ray import RayExecutor
from harness.explore.executors.wire import decode, encode
from harness.explore.recipe import Recipe, StateTask
lines = sys.stdin.buffer.read().splitlines()
recipe, tasks = decode(lines[0], Recipe), [decode(line, StateTask) for line in lines[1:]]
with RayExecutor(Path(sys.argv[1]), address=sys.argv[2], run_id=sys.argv[3]) as executor:
    for tried in executor.try_all(tasks, recipe, deadline_s=float("inf")):
        sys.stdout.buffer.write(encode(tried))
        sys.stdout.buffer.flush()
"""


@pytest.fixture
def run_id() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield name
    remove_left_behind(name, only="local")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Two nodes on this machine, in a process of its own, since Ray reads its environment when it is imported."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.communicate(timeout=60)


class Driver:
    """An exploration by Ray, in a process of its own."""

    def __init__(self, cluster: dict[str, Any], blobs: Path, run_id: str, *, recipe: Recipe, tasks: list[StateTask]) -> None:
        ray = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": cluster["token_path"], "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(blobs), cluster["address"], run_id],
            cwd=ROOT,
            env={**os.environ, **ray},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(encode(recipe) + b"".join(map(encode, tasks)))
        self.process.stdin.close()
        self.process.stdin = None  # told it all; and nobody else closes it again

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def answers(self) -> Iterator[Tried]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield msgspec.convert(json.loads(line), Tried, str_keys=True)
        assert self.process.wait() == 0


@pytest.fixture
def drivers() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


def take_away(node: dict[str, Any], begun: Path) -> None:
    """Kill all of a node at once, as a machine goes, while a recovery runs on it that has said so."""
    clock, deadline_s = SystemClock(), SystemClock().monotonic_s() + 60
    pids: set[int] = set()
    while not pids.intersection(map(int, begun.read_text().split())):
        assert clock.monotonic_s() < deadline_s
        pids = read_table().descendants(node["raylet_pid"])
    for pid in (node["raylet_pid"], *sorted(pids)):
        send(pid, signal.SIGKILL)


def told(tried: Tried) -> list[Recovery | None]:
    return [recovery and msgspec.structs.replace(recovery, seconds=0.0) for recovery in (tried.first, tried.second)]


def some_states(blobs: Path) -> list[StateTask]:
    """Right ones, fenced ones and damaged ones."""
    owners = [b"%d" % number if number % 3 else b"garbage %d" % number for number in range(STATES)]
    return [state(blobs, {"owner": owner}, again=not number % 4) for number, owner in enumerate(owners)]


def test_a_node_that_dies_loses_no_verdict_and_all_are_as_they_are_locally(cluster, tmp_path: Path, run_id: str, drivers) -> None:
    blobs, begun = tmp_path / "blobs", tmp_path / "begun"
    tasks = some_states(blobs)
    job = f"with open({str(begun)!r}, 'a') as log: log.write(f'{{os.getpid()}}\\n')\ntime.sleep(0.3)\nfrom workloads.linear.train import main\nsys.exit(main())"
    recipe = python(job, environment=dict(linear().environment), result="{checkpoint_dir}/final.json")
    driver = Driver(cluster, blobs, run_id, recipe=recipe, tasks=tasks)
    drivers.callback(driver.close)
    answers = []
    for tried in driver.answers():
        answers.append(tried)
        if len(answers) == STATES // 3:
            take_away(cluster["nodes"][1], begun)
    begun_by_ray = len(begun.read_text().splitlines())
    with LocalExecutor(blobs, jobs=2, run_id=run_id) as local:
        locally = {tried.state: told(tried) for tried in local.try_all(tasks, recipe, deadline_s=float("inf"))}

    assert sorted(tried.state for tried in answers) == sorted(task.state for task in tasks)
    assert {tried.state: told(tried) for tried in answers} == locally
    assert {recovery.exit_code for tried in answers if (recovery := tried.first)} == {0, 75}
    assert begun_by_ray > sum(1 + task.again for task in tasks)  # what the node had begun was begun again


def test_when_the_exploration_ends_its_workers_leave_the_nodes_with_all_that_is_theirs(
    cluster, tmp_path: Path, run_id: str, drivers
) -> None:
    blobs = tmp_path / "blobs"
    driver = Driver(cluster, blobs, run_id, recipe=linear(), tasks=[state(blobs, {"owner": b"0"})])
    drivers.callback(driver.close)
    (tried,) = driver.answers()
    clock, deadline_s = SystemClock(), SystemClock().monotonic_s() + 30
    while left_behind(run_id):
        assert clock.monotonic_s() < deadline_s, left_behind(run_id)
        clock.sleep(0.1)

    assert tried.first is not None
    assert tried.first.exit_code == 0
    assert psutil.pid_exists(cluster["nodes"][0]["raylet_pid"])


def test_without_a_cluster_it_says_so(tmp_path: Path, run_id: str) -> None:
    code = f"""
from pathlib import Path
from harness.errors import TargetUnavailableError
from harness.explore.executors.ray import RayExecutor
try:
    RayExecutor(Path({str(tmp_path)!r}), address="127.0.0.1:1", run_id={run_id!r})
except TargetUnavailableError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert "no cluster answers at 127.0.0.1:1" in done.stdout, done.stderr
