"""Parts of a Ray cluster are killed, drained and taken away: played by shells that are called as Ray calls its own, and once by Ray."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from harness.history import LogLine, Marked, SignalSent
from harness.targets import left_behind
from harness.targets.local import ray_host
from tests.contract.driver import Run, python

PARTS = """
def part(name, script, *options):
    return subprocess.Popen([name, '-c', script, *options], executable='/bin/sh')
def raylet(node_id, *more):
    options = (f'--node_id={node_id}', '--gcs-address=127.0.0.1:6379', f'--python_worker_command={cli} worker.py', *more)
    os.environ['RAY_AUTH_MODE'] = 'token'
    return part('/opt/ray/raylet', "sleep 60 & sh -c 'sleep 60 & wait' & wait", *options)
"""
"""A node here is a shell with a child and a grandchild beside it: four processes."""

NODE_PROCESSES = 4
JOB_PROCESSES = 3
"""The job itself, and its control store with a child."""

TWO_NODES = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: os._exit(1))
part('/opt/ray/gcs_server', 'sleep 60 & wait')
raylet('aa', '--head'); raylet('bb')
emit('ray.up')
time.sleep(60)
"""

ONE_NODE = TWO_NODES.replace("; raylet('bb')", "")


@pytest.fixture
def run_job(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts a job and waits until it has said its marker; afterwards nothing of it is left."""
    runs: list[Run] = []

    def start_run(command: tuple[str, ...]) -> Run:
        runs.append(Run("local", tmp_path / "home", command).start())
        runs[-1].until(Marked)
        return runs[-1]

    yield start_run
    for run in runs:
        run.stop()
        assert left_behind(run.launch.run_id) == []


@pytest.fixture
def start(run_job: Callable[..., Run], tmp_path: Path) -> Callable[..., Run]:
    """Starts a job whose Ray answers a drain with a shell script."""

    def start_run(job: str, answer: str = "exit 0") -> Run:
        cli = tmp_path / "python"
        cli.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\nenv > {tmp_path}/environment\n{answer}\n')
        cli.chmod(0o755)
        run = run_job(python(f"cli = {str(cli)!r}\n{PARTS}{job}"))
        processes = JOB_PROCESSES + NODE_PROCESSES * job.count("raylet(")
        run.until_true(lambda: len(run.target.process_ids(run.victim())) >= processes)
        return run

    return start_run


def pid_of(run: Run, *words: str) -> int:
    """The process of the attempt whose command line has these words."""
    (found,) = [pid for pid in run.target.process_ids(run.victim()) if set(words) <= set(psutil.Process(pid).cmdline())]
    return found


def until_state(run: Run, node_id: str, state: str) -> None:
    run.until_true(lambda: run.target.ray_node_state(run.victim(), node_id) == state)


def test_the_raylet_of_a_node_that_is_not_the_head_is_killed_and_nothing_else(start) -> None:
    run = start(TWO_NODES)
    before, raylet = run.target.process_ids(run.victim()), pid_of(run, "/opt/ray/raylet", "--node_id=bb")

    assert run.target.kill_ray_processes(run.victim(), "raylet") == (raylet,)
    run.until_true(lambda: run.target.process_states([raylet]) == {raylet: "gone"})
    assert set(run.target.process_ids(run.victim())) == set(before) - {raylet}


@pytest.mark.parametrize("is_drained", [False, True])
def test_the_death_of_an_attempt_that_lost_a_part_is_laid_at_the_fault_s_door(start, is_drained) -> None:
    run = start(TWO_NODES)
    if is_drained:
        run.target.drain_ray_node(run.victim(), 1.0)
        run.until(LogLine, lambda line: line.stream == "system")
    else:
        run.target.kill_ray_processes(run.victim(), "raylet")
    os.kill(run.target.process_ids(run.victim())[0], signal.SIGUSR1)  # the job sees what it lost, and gives up
    run.finish()

    assert [(exited.exit_code, exited.cause) for exited in run.exits()] == [(1, "fault")]


def test_the_only_raylet_is_the_heads(start) -> None:
    run = start(ONE_NODE)
    raylet = pid_of(run, "--head")

    assert run.target.kill_ray_processes(run.victim(), "raylet") == (raylet,)


def test_the_head_is_its_control_store(start) -> None:
    run = start(ONE_NODE)
    store = pid_of(run, "/opt/ray/gcs_server")

    assert run.target.kill_ray_processes(run.victim(), "head") == (store,)
    run.until_true(lambda: run.target.process_states([store]) == {store: "gone"})
    with pytest.raises(LookupError, match="gcs_server"):
        run.target.kill_ray_processes(run.victim(), "head")


@pytest.mark.parametrize("ask", ["kill", "drain", "state"])
def test_without_a_cluster_there_is_nothing_to_hit(run_job, ask) -> None:
    run = run_job(python("emit('ready'); time.sleep(60)"))
    asks = {
        "kill": lambda: run.target.kill_ray_processes(run.victim(), "raylet"),
        "drain": lambda: run.target.drain_ray_node(run.victim(), 1.0),
        "state": lambda: run.target.ray_node_state(run.victim(), "aa"),
    }

    with pytest.raises(LookupError, match="its Ray cluster is not up"):
        asks[ask]()


def test_a_drain_is_ray_s_own_command_and_awaited_beside_the_loop(start, tmp_path) -> None:
    run = start(TWO_NODES, answer="sleep 0.5")

    node_id = run.target.drain_ray_node(run.victim(), 29.5)

    assert node_id == "bb"
    assert run.target.ray_node_state(run.victim(), node_id) == "alive"
    until_state(run, node_id, "draining")
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:7] == ["-m", "ray.scripts.scripts", "drain-node", "--address", "127.0.0.1:6379", "--node-id", "bb"]
    assert arguments[-2:] == ["--deadline-remaining-seconds", "30"]
    environment = (tmp_path / "environment").read_text().splitlines()
    assert {"RAY_AUTH_MODE=token", f"HARNESS_RUN_ID={run.launch.run_id}"} <= set(environment)
    assert not [line for line in environment if line.startswith("CLOUD_RUN_")]


def test_a_drained_node_is_taken_away_at_its_deadline_with_all_that_runs_on_it(start) -> None:
    run = start(TWO_NODES)
    before = run.target.process_ids(run.victim())
    raylet = psutil.Process(pid_of(run, "/opt/ray/raylet", "--node_id=bb"))
    node = {raylet.pid, *(child.pid for child in raylet.children(recursive=True))}

    run.target.drain_ray_node(run.victim(), 1.0)
    until_state(run, "bb", "draining")
    until_state(run, "bb", "dead")
    line = run.until(LogLine, lambda line: line.stream == "system")

    assert len(node) == NODE_PROCESSES
    run.until_true(lambda: set(run.target.process_ids(run.victim())) == set(before) - node)
    assert line.text == f"Node bb was taken away 1 s after it was announced: {NODE_PROCESSES} processes killed."
    assert run.of(SignalSent) == []


def test_a_second_drain_takes_the_next_node(start) -> None:
    run = start(TWO_NODES)

    assert [run.target.drain_ray_node(run.victim(), 30.0) for _ in range(2)] == ["bb", "aa"]
    with pytest.raises(LookupError, match="not being drained"):
        run.target.drain_ray_node(run.victim(), 30.0)


def test_a_refusal_is_told_in_ray_s_words_and_the_node_stays(start) -> None:
    run = start(TWO_NODES, answer="echo 'The drain request is not accepted: no' >&2; exit 1")
    run.target.drain_ray_node(run.victim(), 1.0)

    with pytest.raises(LookupError, match=r"exit code 1.*not accepted: no"):
        until_state(run, "bb", "draining")
    assert pid_of(run, "/opt/ray/raylet", "--node_id=bb")


def test_no_answer_is_no_drain(start, monkeypatch) -> None:
    monkeypatch.setattr(ray_host, "ANSWER_S_MAX", 0.2)
    run = start(TWO_NODES, answer="sleep 60")
    run.target.drain_ray_node(run.victim(), 1.0)

    with pytest.raises(LookupError, match=r"did not answer within 0.2 s"):
        until_state(run, "bb", "draining")


def test_a_node_that_is_gone_before_ray_has_answered_is_dead_once_it_has(start, tmp_path) -> None:
    run = start(TWO_NODES, answer=f"while ! test -e {tmp_path}/go; do sleep 0.05; done")
    run.target.drain_ray_node(run.victim(), 30.0)
    (raylet,) = run.target.kill_ray_processes(run.victim(), "raylet")
    run.until_true(lambda: run.target.process_states([raylet]) == {raylet: "gone"})

    assert run.target.ray_node_state(run.victim(), "bb") == "alive"
    (tmp_path / "go").touch()
    until_state(run, "bb", "dead")


def test_the_end_of_the_attempt_leaves_no_drain_behind(start) -> None:
    run = start(TWO_NODES)
    run.target.drain_ray_node(run.victim(), 1.0)
    until_state(run, "bb", "draining")
    run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.finish()

    assert run.target.is_finished()
    with pytest.raises(LookupError, match="does not run"):
        run.target.ray_node_state(run.victim(), "bb")


CLUSTER = """
import contextlib, time
from workloads.protocol import emit
from workloads.jax_tpu.cluster import start_cluster
with contextlib.ExitStack() as stack:
    start_cluster(stack, nodes=2, cpus=1)
    emit("ray.up")
    time.sleep(300)
"""


@pytest.mark.slow
def test_ray_itself_accepts_a_drain_and_loses_the_node(run_job) -> None:
    run = run_job((sys.executable, "-c", CLUSTER))
    node_id = run.target.drain_ray_node(run.victim(), 1.0)
    until_state(run, node_id, "dead")

    head = pid_of(run, "--head")
    assert run.target.kill_ray_processes(run.victim(), "raylet") == (head,)
