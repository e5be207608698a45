"""The JAX job keeps its promises: killed at chosen moments, damaged at rest, resumed, and compared with an uninterrupted run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.job_process import ROOT, Attempt, Job

STEPS = 12  # two epochs of six steps
SAVE_EVERY = 3  # one save inside each epoch, one on its boundary
PARTS = {"params", "optimizer", "rng", "data", "step"}
BEREAVEMENT_S_MAX = 30.0  # the launcher's grace of 3 s for a rank that waits for a dead one; the rest is for a loaded machine
Trajectory = dict[int, tuple[list[int], dict[str, str]]]


def one_process() -> Job:
    return Job("workloads.jax_gpu.train", JAX_PLATFORMS="cpu", STEPS=STEPS, SAVE_EVERY=SAVE_EVERY)


def two_ranks() -> Job:
    return Job("workloads.jax_gpu.launch", JAX_PLATFORMS="cpu", RANKS=2, STEPS=60, SAVE_EVERY=20)


@pytest.fixture
def job() -> Iterator[Job]:
    with one_process() as job:
        yield job


@pytest.fixture(scope="module")
def uninterrupted() -> Iterator[tuple[Attempt, Attempt]]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(one_process()).start() for _ in range(2))
        assert (first.wait(), second.wait()) == (0, 0), first.log + second.log
        yield first, second


@pytest.fixture(scope="module")
def golden(uninterrupted: tuple[Attempt, Attempt]) -> Trajectory:
    return trajectory(uninterrupted[0])


@pytest.fixture(scope="module")
def uninterrupted_ranks() -> Iterator[Attempt]:
    with two_ranks() as job:
        attempt = job.run()
        assert attempt.process.returncode == 0, attempt.log
        yield attempt


@pytest.fixture(scope="module")
def terminated_ranks() -> Iterator[Job]:
    """A job of two ranks whose first attempt was sent SIGTERM at step 3, with time left to agree on a later one."""
    with two_ranks() as job:
        job.terminate_at("step", nth=6, STEP_SECONDS=0.1)
        yield job


@pytest.fixture(scope="module")
def interrupted() -> Iterator[Path]:
    """A directory with the checkpoints of steps 3 and 6, left by a job that was killed when the second was acknowledged."""
    with one_process() as job:
        job.kill_at("save.end", nth=2)
        assert checkpointed(job.checkpoints) == [3, 6]
        yield job.checkpoints


def trajectory(attempt: Attempt, rank: int = 0) -> Trajectory:
    return {line["step"]: (line["batch_ids"], line["digests"]) for line in attempt.events("step", rank=rank)}


def digests_of(attempt: Attempt, event: str) -> dict[int, dict[str, str]]:
    return {line["step"]: line["digests"] for line in attempt.events(event)}


def checkpointed(root: Path) -> list[int]:
    return sorted(int(entry.name) for entry in root.iterdir() if entry.name.isdecimal())


def assert_follows(golden: Trajectory, attempt: Attempt, rank: int = 0) -> None:
    """Every step that the attempt took is, in data and in each part of the state, that of the uninterrupted run; none is left out."""
    taken = trajectory(attempt, rank)
    assert list(taken) == list(range(attempt.restored_step + 1, attempt.restored_step + 1 + len(taken)))
    assert taken == {step: golden[step] for step in taken}
    for line in attempt.events("restore", rank=rank):
        assert line["digests"] == golden[line["step"]][1]


def assert_completes(golden: Trajectory, attempt: Attempt, root: Path) -> None:
    final_step = max(golden)
    assert attempt.process.returncode == 0, attempt.log
    assert_follows(golden, attempt)
    assert attempt.events("done", rank=0)[0]["step"] == final_step
    assert json.loads((root / "final.json").read_text()) == {"step": final_step, "digests": golden[final_step][1]}
    assert checkpointed(root)[-1] == final_step


def test_two_uninterrupted_runs_agree_in_every_part_of_every_step(uninterrupted: tuple[Attempt, Attempt]) -> None:
    first, second = uninterrupted

    assert list(trajectory(first)) == list(range(1, STEPS + 1))
    assert trajectory(first) == trajectory(second)
    assert "Training on cpu" in first.log


def test_each_part_of_the_state_changes_with_every_step(golden: Trajectory) -> None:
    """Otherwise a part that is forgotten on resume would not show."""
    assert {frozenset(digests) for _, digests in golden.values()} == {frozenset(PARTS)}
    for part in PARTS:
        assert len({digests[part] for _, digests in golden.values()}) == STEPS


def test_an_epoch_consumes_every_sample_once_and_the_next_in_another_order(golden: Trajectory) -> None:
    consumed = [sample for batch_ids, _ in golden.values() for sample in batch_ids]
    first, second = consumed[:192], consumed[192:]

    assert sorted(first) == sorted(second) == list(range(192))
    assert first != second


def test_saves_are_acknowledged_in_order_with_the_digests_they_began_with(uninterrupted: tuple[Attempt, Attempt]) -> None:
    attempt, _ = uninterrupted

    assert attempt.steps("save.begin") == attempt.steps("save.end") == [3, 6, 9, 12]
    assert digests_of(attempt, "save.begin") == digests_of(attempt, "save.end")
    assert digests_of(attempt, "save.begin").items() <= digests_of(attempt, "step").items()


def test_a_job_killed_again_and_again_resumes_bit_for_bit(golden: Trajectory, job: Job) -> None:
    job.kill_at("save.begin", nth=2)
    job.kill_at("restore")
    in_the_save = job.kill_at("step", "before", nth=4)  # the save of step 6 was dispatched some milliseconds ago
    in_the_middle = job.kill_at("step", nth=5)
    last = job.run()

    assert [attempt.steps("restore") for attempt in job.attempts[:3]] == [[], [3], [3]]
    assert in_the_save.restored_step == 3
    assert in_the_middle.restored_step in ({6} if in_the_save.events("save.end") else {3, 6})
    assert last.restored_step >= max(step for attempt in job.attempts[:4] for step in attempt.steps("save.end"))
    for attempt in (in_the_save, in_the_middle):
        assert_follows(golden, attempt)
    assert_completes(golden, last, job.checkpoints)


def test_sigterm_saves_the_last_step_taken_and_exits_143(golden: Trajectory, job: Job) -> None:
    terminated = job.terminate_at("step", nth=4, STEP_SECONDS=0.05)
    resumed = job.run()

    assert terminated.process.returncode == 143, terminated.log
    assert len(terminated.events("sigterm")) == 1
    assert max(terminated.steps("step")) == terminated.steps("save.begin")[-1] == terminated.steps("save.end")[-1] == resumed.restored_step
    assert resumed.restored_step == 4
    assert_completes(golden, resumed, job.checkpoints)


def test_sigterm_while_jax_is_still_being_imported_ends_in_order(job: Job) -> None:
    attempt = job.terminate_at("boot")

    assert attempt.process.returncode == 143, attempt.log
    assert [line["event"] for line in attempt.events()] == ["boot", "sigterm", "compile.begin", "compile.end", "start"]
    assert checkpointed(job.checkpoints) == []


def test_a_save_that_fails_ends_the_job_and_is_not_acknowledged(job: Job) -> None:
    attempt = job.start(armed="save.begin:after")
    attempt.reach("save.begin")
    job.checkpoints.rename(job.home / "gone")
    job.checkpoints.touch()  # a file where the directory was: nothing can be created in it

    assert attempt.wait() == 1
    assert "The save of step 3 failed" in attempt.log
    assert attempt.events("save.end") == []


def largest_file_of_arrays(root: Path) -> Path:
    return max((root / "6").glob("state/ocdbt.process_0/d/*"), key=lambda path: path.stat().st_size)


def flip_a_byte(root: Path) -> None:
    """In the middle of the arrays: Orbax restores it without an error."""
    file = largest_file_of_arrays(root)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def truncate_a_file(root: Path) -> None:
    file = largest_file_of_arrays(root)
    os.truncate(file, file.stat().st_size // 2)


def leave_an_empty_step(root: Path) -> None:
    """Orbax takes it for the latest step."""
    (root / "9").mkdir()


def leave_a_stale_temporary(root: Path) -> None:
    shutil.copytree(root / "6", root / "9.orbax-checkpoint-tmp")


def empty_every_step(root: Path) -> None:
    for step in ("3", "6"):
        shutil.rmtree(root / step)
        (root / step).mkdir()


@pytest.mark.parametrize(
    ("damage", "restored_step", "set_aside"),
    [
        (flip_a_byte, 3, ["6"]),
        (truncate_a_file, 3, ["6"]),
        (leave_an_empty_step, 6, ["9"]),
        (leave_a_stale_temporary, 6, []),
        (empty_every_step, 0, ["3", "6"]),
    ],
)
def test_damage_at_rest_costs_no_more_than_the_damaged_checkpoint(
    golden: Trajectory, interrupted: Path, job: Job, damage: Callable[[Path], None], restored_step: int, set_aside: list[str]
) -> None:
    shutil.copytree(interrupted, job.checkpoints, dirs_exist_ok=True)
    damage(job.checkpoints)

    attempt = job.run()

    assert attempt.restored_step == restored_step, attempt.log
    assert_completes(golden, attempt, job.checkpoints)
    assert sorted(entry.name for entry in (job.checkpoints / "damaged").glob("*")) == set_aside
    assert sorted(attempt.steps("restore.refused")) == [int(step) for step in set_aside]
    assert all(f"Checkpoint of step {step} is damaged" in attempt.log for step in set_aside)
    assert ("Falling back to step" in attempt.log) == bool(set_aside and restored_step)
    assert checkpointed(job.checkpoints) == [9, 12]
    assert list(job.checkpoints.glob("*.orbax-checkpoint-tmp*")) == []


def test_no_damage_to_any_file_passes_for_what_was_saved(interrupted: Path, tmp_path: Path) -> None:
    """Each file of a checkpoint deleted, emptied, cut and flipped: restored as it was saved, or refused."""
    command = [sys.executable, "-m", "tests.workloads.jax_gpu_damage", str(interrupted), "6", str(tmp_path)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    output = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    trials: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
    refused = {trial["file"] for trial in trials if trial["outcome"] == "refused"}

    assert {trial["outcome"] for trial in trials} == {"same", "refused"}
    assert refused >= {"ledger/metadata", "progress/metadata", "state/_METADATA"}


def test_two_ranks_agree_on_the_state_and_share_the_batch(uninterrupted_ranks: Attempt) -> None:
    first, second = trajectory(uninterrupted_ranks, 0), trajectory(uninterrupted_ranks, 1)

    assert list(first) == list(second) == list(range(1, 61))
    for step in first:
        assert first[step][1] == second[step][1]
        assert len({*first[step][0], *second[step][0]}) == 32
    assert {line["rank"] for line in uninterrupted_ranks.events("save.begin")} == {0}
    assert {line["rank"] for line in uninterrupted_ranks.events("done")} == {0, 1}


def test_two_ranks_save_the_same_step_on_sigterm_and_exit_143(uninterrupted_ranks: Attempt, terminated_ranks: Job) -> None:
    """The signal reaches JAX, not Python: without its agreement on a step nothing would be saved."""
    attempt = terminated_ranks.attempts[0]

    assert attempt.process.returncode == 143, attempt.log
    assert sorted(line["rank"] for line in attempt.events("sigterm")) == [0, 1]
    for rank in (0, 1):
        assert attempt.steps("save.end")[-1] == max(trajectory(attempt, rank)) < 60
        assert_follows(trajectory(uninterrupted_ranks, rank), attempt, rank)


def test_the_death_of_one_rank_ends_the_task_and_the_next_attempt_is_exact(uninterrupted_ranks: Attempt, terminated_ranks: Job) -> None:
    saved_step = terminated_ranks.attempts[0].steps("save.end")[-1]
    bereaved = terminated_ranks.start(armed="step:after")
    victim = bereaved.reach("step", rank=1, step=saved_step + 2)
    killed_at = time.monotonic()
    os.kill(victim["pid"], signal.SIGKILL)
    exit_code = bereaved.wait()
    bereaved_s = time.monotonic() - killed_at
    completed = terminated_ranks.run()

    assert exit_code == 128 + signal.SIGKILL, bereaved.log
    assert bereaved_s < BEREAVEMENT_S_MAX
    for rank in (0, 1):
        for attempt in (bereaved, completed):
            assert [line["step"] for line in attempt.events("restore", rank=rank)] == [saved_step]
            assert_follows(trajectory(uninterrupted_ranks, rank), attempt, rank)
    assert_completes(trajectory(uninterrupted_ranks), completed, terminated_ranks.checkpoints)


def test_no_rank_outlives_its_launcher() -> None:
    with two_ranks() as job:
        attempt = job.start(armed="boot:after")
        pids = [attempt.reach("boot")["pid"] for _ in range(2)]
        attempt.process.kill()
        deadline = time.monotonic() + 10
        while any(is_alive(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.02)

        assert [pid for pid in pids if is_alive(pid)] == []


def is_alive(pid: int) -> bool:
    """A zombie that nobody has reaped yet is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
