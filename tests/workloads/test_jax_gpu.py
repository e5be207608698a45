"""The JAX job keeps its promises: killed at chosen moments, damaged at rest, resumed, and compared with an uninterrupted run."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
STEPS = 12  # two epochs of six steps
SAVE_EVERY = 3  # one save inside each epoch, one on its boundary
DEADLINE_S = 120  # an attempt of two ranks takes 7 s on two quiet cores

Event = dict[str, Any]
Action = Callable[[Event, int], None]


@dataclass(frozen=True)
class Attempt:
    """What one process of the job said and how it ended."""

    exit_code: int
    output: str
    events: list[Event]

    def named(self, name: str, rank: int = 0) -> list[Event]:
        return [event for event in self.events if event["event"] == name and event["rank"] == rank]

    def steps_of(self, name: str, rank: int = 0) -> list[int]:
        return [event["step"] for event in self.named(name, rank)]

    def trajectory(self, rank: int = 0) -> dict[int, tuple[object, object]]:
        return {event["step"]: (event["batch_ids"], event["digests"]) for event in self.named("step", rank)}

    @property
    def restored_step(self) -> int:
        return self.named("start")[0]["restored_step"]


@dataclass(frozen=True)
class Fault:
    """Acts at the barrier on the first event of this name, rank and (where given) step; ``when`` is before or after its line is written."""

    action: Action
    event: str
    when: str
    step: int | None = None
    rank: int = 0

    def strikes(self, event: Event) -> bool:
        return event["rank"] == self.rank and self.step in (None, event.get("step"))


def kill_rank(event: Event, _job: int) -> None:
    os.kill(event["pid"], signal.SIGKILL)


def kill_job(_event: Event, job: int) -> None:
    os.kill(job, signal.SIGKILL)


def terminate_job(_event: Event, job: int) -> None:
    os.kill(job, signal.SIGTERM)


def run(root: Path, fault: Fault | None = None, *, module: str = "train", prepare: Callable[[], None] | None = None, **own: str) -> Attempt:
    """Run one attempt of the job to its end, in a session of its own."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("HARNESS_", "CLOUD_RUN_", "XLA_", "JAX_"))}
    settings = {"STEPS": str(STEPS), "SAVE_EVERY": str(SAVE_EVERY), "STEP_SECONDS": "0", "JAX_PLATFORMS": "cpu", **own}
    with tempfile.TemporaryDirectory(prefix="jax-gpu-") as scratch, socket.socket(socket.AF_UNIX) as barrier:
        events = Path(scratch, "events")
        settings |= {"CHECKPOINT_DIR": str(root), "HARNESS_EVENTS": str(events)}
        if fault:
            barrier.bind(f"{scratch}/barrier")
            barrier.listen()
            settings |= {"HARNESS_BARRIER": f"{scratch}/barrier", "HARNESS_ARMED": f"{fault.event}:{fault.when}"}
        job = subprocess.Popen(
            [sys.executable, "-m", f"workloads.jax_gpu.{module}"],
            cwd=REPOSITORY,
            env=outer | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=prepare,
        )
        if fault:
            threading.Thread(target=serve, args=(barrier, fault, job.pid), daemon=True).start()
        try:
            output, _ = job.communicate(timeout=DEADLINE_S)
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
            if fault:
                barrier.shutdown(socket.SHUT_RDWR)
        return Attempt(job.returncode, output.decode(errors="replace"), [json.loads(line) for line in events.read_text().splitlines()])


def serve(barrier: socket.socket, fault: Fault, job: int) -> None:
    """Let every event through, after the fault has acted on the first that it strikes."""
    acted = False
    while True:
        try:
            connection, _ = barrier.accept()
        except OSError:
            return  # the job has ended and the barrier is closed
        with connection, connection.makefile() as lines:
            event = json.loads(lines.readline())
            if fault.strikes(event) and not acted:
                acted = True
                fault.action(event, job)


def assert_follows(golden: Attempt, attempt: Attempt, rank: int = 0) -> None:
    """Every step that the attempt took is, in data and in each part of the state, that of the uninterrupted run; none is left out."""
    taken = attempt.trajectory(rank)
    assert list(taken) == list(range(attempt.restored_step + 1, attempt.restored_step + 1 + len(taken)))
    expected = golden.trajectory(rank)
    assert {step: expected[step] for step in taken} == taken
    for event in attempt.named("restore", rank):
        assert expected[event["step"]][1] == event["digests"]


def assert_completes(golden: Attempt, attempt: Attempt, root: Path) -> None:
    assert attempt.exit_code == 0, attempt.output
    assert_follows(golden, attempt)
    final_step = golden.named("done")[0]["step"]
    final = {"step": final_step, "digests": golden.trajectory()[final_step][1]}
    assert attempt.steps_of("done") == [final_step]
    assert json.loads((root / "final.json").read_text()) == final
    assert max(checkpointed(root)) == final_step


def checkpointed(root: Path) -> list[int]:
    return sorted(int(entry.name) for entry in root.iterdir() if entry.name.isdecimal())


def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Attempt, Attempt]:
    with ThreadPoolExecutor() as executor:
        first, second = executor.map(run, [directory(tmp_path_factory) for _ in range(2)])
    return first, second


@pytest.fixture(scope="module")
def golden(uninterrupted: tuple[Attempt, Attempt]) -> Attempt:
    return uninterrupted[0]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the checkpoints of steps 3 and 6, left by a job that was killed when the second was acknowledged."""
    root = directory(tmp_path_factory)
    attempt = run(root, Fault(kill_rank, "save.end", "after", step=6))
    assert (attempt.exit_code, checkpointed(root)) == (-signal.SIGKILL, [3, 6])
    return root


def test_two_uninterrupted_runs_agree_in_every_part_of_every_step(uninterrupted: tuple[Attempt, Attempt]) -> None:
    first, second = uninterrupted

    assert [attempt.exit_code for attempt in uninterrupted] == [0, 0]
    assert list(first.trajectory()) == list(range(1, STEPS + 1))
    assert first.trajectory() == second.trajectory()
    assert all(event["digests"].keys() == {"params", "optimizer", "rng", "data", "step"} for event in first.named("step"))
    assert "Training on cpu" in first.output


def test_each_part_of_the_state_changes_with_every_step(golden: Attempt) -> None:
    """Otherwise a part that was forgotten on resume would not show."""
    for part in ("params", "optimizer", "rng", "data", "step"):
        assert len({event["digests"][part] for event in golden.named("step")}) == STEPS


def test_an_epoch_consumes_every_sample_once_and_the_next_in_another_order(golden: Attempt) -> None:
    batches = [event["batch_ids"] for event in golden.named("step")]
    first, second = sum(batches[:6], []), sum(batches[6:], [])

    assert sorted(first) == sorted(second) == list(range(192))
    assert first != second


def test_saves_are_acknowledged_in_order_with_the_digests_they_began_with(golden: Attempt) -> None:
    begun = {event["step"]: event["digests"] for event in golden.named("save.begin")}
    ended = {event["step"]: event["digests"] for event in golden.named("save.end")}

    assert list(begun) == list(ended) == [3, 6, 9, 12]
    assert begun == ended == {step: golden.trajectory()[step][1] for step in begun}


def test_a_job_killed_again_and_again_resumes_bit_for_bit(golden: Attempt, tmp_path: Path) -> None:
    deaths = (
        (Fault(kill_rank, "save.begin", "after", step=6), {0}),
        (Fault(kill_rank, "restore", "after"), {3}),
        (Fault(kill_rank, "step", "before", step=7), {3}),  # the save of step 6 has just been dispatched
        (Fault(kill_rank, "step", "after", step=11), {3, 6}),
    )
    acknowledged = [0]
    for fault, restored_steps in deaths:
        attempt = run(tmp_path, fault)
        assert attempt.exit_code == -signal.SIGKILL, attempt.output
        assert set(attempt.steps_of("restore")) <= restored_steps
        assert max([0, *attempt.steps_of("restore")]) >= max(acknowledged)
        if attempt.named("start"):
            assert attempt.restored_step in restored_steps
            assert_follows(golden, attempt)
        acknowledged += attempt.steps_of("save.end")

    attempt = run(tmp_path)

    assert attempt.restored_step >= max(acknowledged)
    assert_completes(golden, attempt, tmp_path)


def test_sigterm_saves_the_last_step_taken_and_exits_143(golden: Attempt, tmp_path: Path) -> None:
    first = run(tmp_path, Fault(terminate_job, "step", "after", step=4), STEP_SECONDS="0.05")
    second = run(tmp_path)

    assert first.exit_code == 143, first.output
    assert len(first.named("sigterm")) == 1
    assert max(first.trajectory()) == first.steps_of("save.begin")[-1] == first.steps_of("save.end")[-1] == second.restored_step == 4
    assert_completes(golden, second, tmp_path)


def test_sigterm_while_jax_is_still_being_imported_ends_in_order(tmp_path: Path) -> None:
    attempt = run(tmp_path, Fault(terminate_job, "compile.begin", "before"))

    assert attempt.exit_code == 143, attempt.output
    assert [event["event"] for event in attempt.events][-1] == "start"
    assert checkpointed(tmp_path) == []


def test_a_save_that_fails_ends_the_job_and_is_not_acknowledged(tmp_path: Path) -> None:
    attempt = run(tmp_path, prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))

    assert attempt.exit_code == 1
    assert "The save of step 3 failed" in attempt.output
    assert attempt.steps_of("save.begin") == [3]
    assert attempt.named("save.end") == []
    assert checkpointed(tmp_path) == []


def flip_a_byte(root: Path) -> None:
    """In the middle of the arrays: Orbax restores it without an error."""
    file = max((root / "6").glob("state/ocdbt.process_0/d/*"), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def truncate_a_file(root: Path) -> None:
    file = max((root / "6").glob("state/ocdbt.process_0/d/*"), key=lambda path: path.stat().st_size)
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
    golden: Attempt, interrupted: Path, tmp_path: Path, damage: Callable[[Path], None], restored_step: int, set_aside: list[str]
) -> None:
    root = tmp_path / "checkpoints"
    shutil.copytree(interrupted, root)
    damage(root)

    attempt = run(root)

    assert attempt.restored_step == restored_step, attempt.output
    assert_completes(golden, attempt, root)
    assert checkpointed(root) == [9, 12]
    assert sorted(entry.name for entry in (root / "damaged").glob("*")) == set_aside
    for step in set_aside:
        assert f"Checkpoint of step {step} is damaged" in attempt.output
    assert ("Falling back to step" in attempt.output) == bool(set_aside and restored_step)
    assert list(root.glob("*.orbax-checkpoint-tmp*")) == []


def test_no_damage_to_any_file_passes_for_what_was_saved(interrupted: Path, tmp_path: Path) -> None:
    """Each file of a checkpoint deleted, emptied, cut and flipped: restored as it was saved, or refused."""
    command = [sys.executable, "tests/workloads/jax_gpu_damage.py", str(interrupted), "6", str(tmp_path)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(REPOSITORY)}
    output = subprocess.run(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    trials = [json.loads(line) for line in output.splitlines()]

    assert [trial for trial in trials if trial["outcome"] == "wrong"] == []
    assert {trial["outcome"] for trial in trials} == {"same", "refused"}
    assert {trial["file"] for trial in trials if trial["outcome"] == "refused"} >= {"ledger/metadata", "progress/metadata", "state/_METADATA"}


def run_ranks(root: Path, fault: Fault | None = None, **own: str) -> Attempt:
    return run(root, fault, module="launch", RANKS="2", SAVE_EVERY="20", STEPS="60", **own)


@pytest.fixture(scope="module")
def golden_of_two(tmp_path_factory: pytest.TempPathFactory) -> Attempt:
    return run_ranks(directory(tmp_path_factory))


def test_two_ranks_agree_on_the_state_and_share_the_batch(golden_of_two: Attempt) -> None:
    first, second = golden_of_two.trajectory(0), golden_of_two.trajectory(1)

    assert golden_of_two.exit_code == 0, golden_of_two.output
    assert len(first) == 60
    assert {step: digests for step, (_, digests) in first.items()} == {step: digests for step, (_, digests) in second.items()}
    assert all(not set(first[step][0]) & set(second[step][0]) for step in first)
    assert golden_of_two.steps_of("save.begin", rank=0) == golden_of_two.steps_of("save.end", rank=0) == [20, 40, 60]
    assert golden_of_two.steps_of("save.begin", rank=1) == []
    assert golden_of_two.steps_of("done", rank=1) == [60]


def test_two_ranks_save_together_on_sigterm_and_survive_the_death_of_one(golden_of_two: Attempt, tmp_path: Path) -> None:
    terminated = run_ranks(tmp_path, Fault(terminate_job, "step", "after", step=3), STEP_SECONDS="0.1")
    started = time.monotonic()
    bereaved = run_ranks(tmp_path, Fault(kill_rank, "step", "after", step=terminated.steps_of("save.end")[-1] + 2, rank=1))
    bereaved_s = time.monotonic() - started
    completed = run_ranks(tmp_path)

    assert terminated.exit_code == 143, terminated.output
    for rank in (0, 1):
        assert len(terminated.named("sigterm", rank)) == 1
        assert max(terminated.trajectory(rank)) == terminated.steps_of("save.end")[-1]
        assert_follows(golden_of_two, terminated, rank)

    assert bereaved.exit_code == 128 + signal.SIGKILL, bereaved.output
    assert bereaved_s < 60
    for rank in (0, 1):
        assert bereaved.steps_of("restore", rank) == terminated.steps_of("save.end")[-1:]
        assert_follows(golden_of_two, bereaved, rank)
        assert completed.steps_of("restore", rank) == terminated.steps_of("save.end")[-1:]
        assert_follows(golden_of_two, completed, rank)
    assert_completes(golden_of_two, completed, tmp_path)


def test_no_rank_outlives_its_launcher(tmp_path: Path) -> None:
    attempt = run_ranks(tmp_path, Fault(kill_job, "boot", "after", rank=1))
    ranks = [event["pid"] for event in attempt.events]
    deadline = time.monotonic() + 10
    while any(is_alive(pid) for pid in ranks) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert attempt.exit_code == -signal.SIGKILL
    assert ranks
    assert not any(is_alive(pid) for pid in ranks)


def is_alive(pid: int) -> bool:
    """A zombie that nobody has reaped yet is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
