"""The JaxTrainer job keeps its promises on a local Ray cluster: hurt at chosen moments, resumed, and compared with an uninterrupted run."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.workloads.job_process import Attempt, Job
from tests.workloads.tpu_slice import tpu_slice
from workloads.jax_tpu.state import DamagedError, TrainState, read_checkpoint, write_checkpoint

STEPS = 12
SAVE_EVERY = 3
RAY_DEADLINE_S = 240.0  # two quiet cores need 15 s for a run and 10 s more for each worker group that dies
GRACE_S = 10.0  # Cloud Run's
RUN = "local-job"
SNAPSHOT = "checkpoint_manager_snapshot.json"
Trajectory = dict[int, list[tuple[int, list[int], dict[str, str]]]]


def jax_trainer(**environment: object) -> Job:
    return Job("workloads.jax_tpu.train", STEPS=STEPS, SAVE_EVERY=SAVE_EVERY, STEP_SECONDS=0.1, SEED=7, **environment)


@pytest.fixture
def job() -> Iterator[Job]:
    with jax_trainer() as job:
        yield job


@pytest.fixture(scope="module")
def uninterrupted() -> Iterator[tuple[Job, Attempt, list[str]]]:
    with jax_trainer() as job:
        attempt = start(job, armed="step:after")
        attempt.reach("step", rank=0, step=2)
        addresses = listening_addresses(attempt)
        assert finish(attempt) == 0, attempt.log
        assert processes_of(attempt) == []
        yield job, attempt, addresses


def start(job: Job, *, armed: str = "", **environment: object) -> Attempt:
    attempt = job.start(armed=armed, **environment)
    attempt.barrier.settimeout(RAY_DEADLINE_S)
    return attempt


def finish(attempt: Attempt) -> int:
    """Let the job go on to its end, for which a Ray job needs longer than others."""
    attempt.release()
    attempt.barrier.close()
    return attempt.process.wait(timeout=RAY_DEADLINE_S)


def wait_for_commit(attempt: Attempt, step: int) -> None:
    """Wait until the controller has committed a step: it does so at its next look at the workers, while they go on."""
    deadline_s = time.monotonic() + RAY_DEADLINE_S
    while step not in attempt.steps("save.end"):
        assert time.monotonic() < deadline_s, attempt.log
        time.sleep(0.05)


def processes_of(attempt: Attempt) -> list[psutil.Process]:
    """What is alive of the session that the attempt leads."""
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            if os.getsid(process.pid) == attempt.process.pid and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        except ProcessLookupError:
            continue
    return found


def listening_addresses(attempt: Attempt) -> list[str]:
    connections = (connection for process in processes_of(attempt) for connection in process.net_connections("tcp"))
    return sorted({connection.laddr.ip for connection in connections if connection.status == psutil.CONN_LISTEN})


def trajectory(*attempts: Attempt) -> Trajectory:
    """Per step, what each rank did last: the samples it took and the state it reached."""
    last = {(line["step"], line["rank"]): line for attempt in attempts for line in attempt.events("step")}
    steps = {step for step, _ in last}
    return {step: [(rank, line["batch_ids"], line["digests"]) for (at, rank), line in sorted(last.items()) if at == step] for step in steps}


def committed_steps(job: Job) -> list[int]:
    snapshot = json.loads((job.checkpoints / RUN / SNAPSHOT).read_bytes())
    return [result["metrics"]["step"] for result in snapshot["checkpoint_results"]]


def checkpoint_of(job: Job, step: int) -> Path:
    run = job.checkpoints / RUN
    results = json.loads((run / SNAPSHOT).read_bytes())["checkpoint_results"]
    return run / next(result["checkpoint_dir_name"] for result in results if result["metrics"]["step"] == step)


def some_state() -> TrainState:
    return TrainState.initial(seed=3, features=2)


def test_a_checkpoint_holds_the_state_that_was_saved(tmp_path: Path) -> None:
    write_checkpoint(some_state(), tmp_path)

    assert read_checkpoint(tmp_path).digests() == some_state().digests()


@pytest.mark.parametrize("name", ["arrays.npz", "ledger.json"])
def test_a_checkpoint_that_lost_a_file_or_its_end_is_refused(tmp_path: Path, name: str) -> None:
    write_checkpoint(some_state(), tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-40])

    with pytest.raises(DamagedError, match="unreadable"):
        read_checkpoint(tmp_path)

    path.unlink()
    with pytest.raises(DamagedError, match=name):
        read_checkpoint(tmp_path)


def test_a_checkpoint_with_another_value_names_the_part_that_differs(tmp_path: Path) -> None:
    write_checkpoint(some_state(), tmp_path)
    with np.load(tmp_path / "arrays.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["momentum.weights"][0] += 1
    np.savez(tmp_path / "arrays.npz", **arrays)

    with pytest.raises(DamagedError, match="optimizer differ"):
        read_checkpoint(tmp_path)


def test_an_epoch_ends_where_the_next_begins() -> None:
    cursor = some_state().cursor.advance(32, 64).advance(32, 64)

    assert (cursor.epoch, cursor.offset) == (1, 0)
    assert sorted(cursor.order(64)) == list(range(64))


@pytest.mark.slow
def test_a_plain_run_completes_and_says_so(uninterrupted: tuple[Job, Attempt, list[str]]) -> None:
    job, attempt, _ = uninterrupted

    assert "Training Complete!" in attempt.log
    assert attempt.steps("done") == [STEPS]
    assert attempt.steps("save.begin") == attempt.steps("save.end") == [3, 6, 9, 12]
    assert committed_steps(job) == [9, 12]
    assert {line["rank"] for line in attempt.events("boot")} == {0, 1}


@pytest.mark.slow
def test_nothing_listens_beyond_loopback(uninterrupted: tuple[Job, Attempt, list[str]]) -> None:
    _, _, addresses = uninterrupted

    assert addresses
    assert set(addresses) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@pytest.mark.slow
def test_a_second_run_takes_the_same_samples_to_the_same_state(job: Job, uninterrupted: tuple[Job, Attempt, list[str]]) -> None:
    second = start(job)

    assert finish(second) == 0, second.log
    assert trajectory(second) == trajectory(uninterrupted[1])


@pytest.mark.slow
def test_a_killed_worker_costs_a_worker_group_but_no_attempt(job: Job, uninterrupted: tuple[Job, Attempt, list[str]]) -> None:
    attempt = start(job, armed="step:after")
    victim = attempt.reach("step", rank=1, step=8)
    wait_for_commit(attempt, 6)
    os.kill(victim["pid"], signal.SIGKILL)

    assert finish(attempt) == 0, attempt.log
    assert [line["restored_step"] for line in attempt.events("start", rank=0)] == [0, 6]
    assert len(attempt.events("boot", rank=1)) == 2
    assert trajectory(attempt) == trajectory(uninterrupted[1])


@pytest.mark.slow
def test_sigterm_ends_everything_within_the_grace_and_a_retry_resumes(job: Job, uninterrupted: tuple[Job, Attempt, list[str]]) -> None:
    first = start(job, armed="step:after")
    first.reach("step", rank=0, step=8)
    wait_for_commit(first, 6)
    began_s = time.monotonic()
    first.terminate()

    assert first.process.wait(timeout=RAY_DEADLINE_S) == 143, first.log
    assert time.monotonic() - began_s < GRACE_S
    assert len(first.events("sigterm")) == 1
    assert processes_of(first) == []

    second = start(job)

    assert finish(second) == 0, second.log
    assert second.restored_step == 6
    assert trajectory(first, second) == trajectory(uninterrupted[1])


@pytest.mark.slow
def test_sigterm_while_the_cluster_starts_ends_it(job: Job) -> None:
    attempt = start(job, armed="ray.up:before")
    attempt.reach("ray.up")
    attempt.terminate()

    assert finish(attempt) == 143, attempt.log
    assert processes_of(attempt) == []


@pytest.mark.slow
def test_a_truncated_snapshot_stops_the_run_and_says_why(job: Job, uninterrupted: tuple[Job, Attempt, list[str]]) -> None:
    shutil.copytree(uninterrupted[0].checkpoints, job.checkpoints, dirs_exist_ok=True)
    snapshot = job.checkpoints / RUN / SNAPSHOT
    os.truncate(snapshot, snapshot.stat().st_size // 2)
    attempt = start(job)

    assert finish(attempt) == 1
    assert f"Ray cannot start the run '{RUN}'" in attempt.log
    assert attempt.events("boot") == []
    assert processes_of(attempt) == []


@pytest.mark.slow
def test_a_damaged_checkpoint_sends_the_run_back_to_the_older_one(job: Job, uninterrupted: tuple[Job, Attempt, list[str]]) -> None:
    shutil.copytree(uninterrupted[0].checkpoints, job.checkpoints, dirs_exist_ok=True)
    arrays = checkpoint_of(job, 12) / "arrays.npz"
    os.truncate(arrays, arrays.stat().st_size - 1)
    attempt = start(job)

    assert finish(attempt) == 0, attempt.log
    assert attempt.restored_step == 9
    assert "Skipping the checkpoint of step 12" in attempt.log
    assert trajectory(attempt) == {step: done for step, done in trajectory(uninterrupted[1]).items() if step > 9}
    assert committed_steps(job) == [12, 12], "Ray does not know that the older one of them is damaged"


@pytest.mark.slow
def test_a_drained_node_is_left_for_another_and_costs_no_failure(uninterrupted: tuple[Job, Attempt, list[str]]) -> None:
    with jax_trainer(RAY_NODES=2, MAX_FAILURES=0) as job:
        attempt = start(job, armed="ray.up:after step:after", STEP_SECONDS=0.5)  # workers notice within a second that their raylet is gone
        cluster = attempt.reach("ray.up")
        attempt.reach("step", rank=0, step=4)
        drain(cluster, deadline_s=1)
        attempt.reach("step", rank=0, step=5)
        with contextlib.suppress(ProcessLookupError):  # Ray ends a drained node by itself once nothing runs on it
            os.kill(cluster["nodes"][1]["raylet_pid"], signal.SIGKILL)

        assert finish(attempt) == 0, attempt.log
        assert processes_of(attempt) == []
        assert len(attempt.events("start", rank=0)) == 2
        assert trajectory(attempt) == trajectory(uninterrupted[1])


def drain(cluster: dict[str, Any], *, deadline_s: int) -> None:
    """Announce to Ray that the second node will be taken away."""
    reason = ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "test", "--deadline-remaining-seconds", str(deadline_s)]
    node = ["--address", cluster["address"], "--node-id", cluster["nodes"][1]["node_id"]]
    access = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": cluster["token_path"], "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    command = [sys.executable, "-m", "ray.scripts.scripts", "drain-node", *node, *reason]
    subprocess.run(command, env=os.environ | access, check=True, timeout=RAY_DEADLINE_S)


@pytest.mark.slow
def test_hosts_of_a_slice_are_reserved_together_and_a_dead_worker_is_resumed_on_them(job: Job) -> None:
    with tpu_slice("2x4", 2) as place:
        attempt = start(job, armed="step:after", TPU_TOPOLOGY="2x4", RANKS=2, **place)
        victim = attempt.reach("step", rank=1, step=8)
        wait_for_commit(attempt, 6)
        os.kill(victim["pid"], signal.SIGKILL)

        assert finish(attempt) == 0, attempt.log
        assert [line["restored_step"] for line in attempt.events("start", rank=0)] == [0, 6]
        assert {line["rank"] for line in attempt.events("boot")} == {0, 1}
        assert attempt.steps("done") == [STEPS]
