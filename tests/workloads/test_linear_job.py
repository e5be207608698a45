"""The linear job and its whole promise: killed anywhere, it comes back and ends with the bits of a run that nobody touched."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.job_process import ROOT, Attempt, Job

LINEAR = "workloads.linear.train"
NEWEST, OLDER = "step_00000010", "step_00000005"  # on storage after a kill at step 12
Golden = dict[int, dict[str, Any]]


@pytest.fixture
def linear() -> Iterator[Job]:
    with Job(LINEAR) as job:
        yield job


@pytest.fixture(scope="module")
def golden() -> Golden:
    """Digests and samples of each step of the uninterrupted run."""
    with Job(LINEAR) as job:
        attempt = job.run()
        assert attempt.process.returncode == 0
        return {line["step"]: what_matters(line) for line in attempt.events("step")}


def what_matters(line: dict[str, Any]) -> dict[str, Any]:
    return {"digests": line["digests"], "batch_ids": line["batch_ids"]}


def assert_ends_like(golden: Golden, job: Job) -> None:
    """The last attempt completed, and every step of every attempt has the bits and the samples of the uninterrupted run."""
    last = job.attempts[-1]
    assert last.process.returncode == 0, last.log
    assert last.steps("done") == [20]
    for attempt in job.attempts:
        for line in attempt.events("step"):
            assert what_matters(line) == golden[line["step"]], f"attempt {line['attempt']}, step {line['step']}"
    assert json.loads(job.files()["final.json"]) == {"step": 20, "params": golden[20]["digests"]["params"]}


def test_two_uninterrupted_runs_are_equal_and_another_seed_is_not(golden: Golden, linear: Job) -> None:
    linear.run()

    assert_ends_like(golden, linear)
    with Job(LINEAR, SEED=1) as other:
        assert what_matters(other.run().events("step")[0]) != golden[1]


def test_each_epoch_goes_through_all_samples_once_and_in_its_own_order(golden: Golden) -> None:
    first, second = ([sample for step in steps for sample in golden[step]["batch_ids"]] for steps in (range(1, 11), range(11, 21)))

    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second


def test_every_part_of_the_state_changes_with_every_step(golden: Golden) -> None:
    for part in ("params", "rng", "data", "step"):
        assert len({golden[step]["digests"][part] for step in golden}) == 20, part


@pytest.mark.parametrize(
    ("event", "nth", "restored_step"),
    [
        ("boot", 1, 0),
        ("start", 1, 0),
        ("step", 3, 0),
        ("step", 12, 10),
        ("save.begin", 1, 0),
        ("save.begin", 2, 5),
        ("save.write", 3, 5),
        ("save.write", 4, 5),
        ("save.commit", 2, 5),
        ("save.end", 2, 10),
        ("gc.begin", 3, 15),
        ("gc.end", 3, 15),
        ("save.begin", 4, 15),
        ("save.end", 4, 20),
        ("done", 1, 20),
    ],
)
def test_killed_at_a_marker_it_resumes_from_the_newest_durable_step_with_the_same_bits(
    golden: Golden, linear: Job, event: str, nth: int, restored_step: int
) -> None:
    linear.kill_at(event, nth=nth)

    attempt = linear.run()

    assert attempt.restored_step == restored_step
    assert attempt.steps("step") == list(range(restored_step + 1, 21))
    assert_ends_like(golden, linear)


@pytest.mark.parametrize("event", ["boot", "restore.begin", "restore", "start", "step"])
def test_killed_again_while_it_recovers_it_recovers_from_the_same_step(golden: Golden, linear: Job, event: str) -> None:
    linear.kill_at("save.commit", nth=3)
    linear.kill_at(event)

    attempt = linear.run()

    assert attempt.restored_step == 10
    assert_ends_like(golden, linear)


def test_what_is_restored_is_what_was_saved(linear: Job) -> None:
    saved = linear.kill_at("step", nth=12).events("save.begin")[-1]

    attempt = linear.run()
    restored = attempt.events("restore")[0]

    assert (restored["step"], restored["digests"]) == (saved["step"], saved["digests"])
    for line in attempt.events("save.end"):
        begun = next(other for other in attempt.events("save.begin") if other["step"] == line["step"])
        assert line["digests"] == begun["digests"]


@pytest.mark.parametrize(
    ("event", "nth", "durable_step"),
    [("boot", 1, 0), ("start", 1, 0), ("step", 7, 7), ("step", 10, 10), ("save.begin", 2, 10), ("save.commit", 2, 10), ("gc.begin", 2, 10)],
)
def test_on_sigterm_it_saves_the_last_completed_step_and_exits_143(
    golden: Golden, linear: Job, event: str, nth: int, durable_step: int
) -> None:
    attempt = linear.terminate_at(event, nth=nth)

    assert attempt.process.returncode == 143
    assert attempt.steps("step") == list(range(1, durable_step + 1))
    assert linear.run().restored_step == durable_step
    assert_ends_like(golden, linear)


def test_sigterm_inside_a_long_step_does_not_wait_for_its_end(linear: Job) -> None:
    linear.kill_at("step", nth=7)

    attempt = linear.terminate_at("start", STEP_SECONDS=3600)

    assert attempt.process.returncode == 143
    assert "Step 5 is saved already." in attempt.log


def test_sigterm_in_the_last_save_does_not_undo_the_completion(golden: Golden, linear: Job) -> None:
    attempt = linear.terminate_at("save.commit", nth=4)

    assert attempt.process.returncode == 0
    assert_ends_like(golden, linear)


def test_a_complete_job_restores_says_so_and_exits_0(golden: Golden, linear: Job) -> None:
    linear.run()

    attempt = linear.run()

    assert (attempt.restored_step, attempt.steps("step"), attempt.steps("save.begin")) == (20, [], [])
    assert_ends_like(golden, linear)


def test_the_newest_two_checkpoints_are_kept_and_latest_names_the_newest(linear: Job) -> None:
    attempt = linear.run()

    assert linear.directories() == ["step_00000015", "step_00000020"]
    assert linear.files()["latest"] == b"step_00000020"
    order = [line["event"] for line in attempt.events() if line.get("step") == 10]
    assert order == ["step", "save.begin", "save.write", "save.write", "save.commit", "save.latest", "save.end", "gc.begin", "gc.end"]


def test_keep_says_how_many(linear: Job) -> None:
    linear.run(KEEP=3)

    assert linear.directories() == ["step_00000010", "step_00000015", "step_00000020"]


def test_the_newest_checkpoint_is_kept_whatever_keep_says(linear: Job) -> None:
    linear.run(KEEP=0)

    assert linear.directories() == ["step_00000020"]


def flip_byte(directory: Path) -> None:
    data = bytearray((directory / "state.json").read_bytes())
    data[len(data) // 2] ^= 1
    (directory / "state.json").write_bytes(data)


def truncate(directory: Path) -> None:
    data = (directory / "state.json").read_bytes()
    (directory / "state.json").write_bytes(data[: len(data) // 2])


def empty_state(directory: Path) -> None:
    (directory / "state.json").write_bytes(b"")


def delete_state(directory: Path) -> None:
    (directory / "state.json").unlink()


def delete_manifest(directory: Path) -> None:
    (directory / "manifest.json").unlink()


def garble_manifest(directory: Path) -> None:
    (directory / "manifest.json").write_bytes(b'{"step": 10, "files": [1]}')


def replace_by_older(directory: Path) -> None:
    for path in directory.iterdir():
        path.write_bytes((directory.parent / OLDER / path.name).read_bytes())


def leave_empty(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()


def replace_by_file(directory: Path) -> None:
    leave_empty(directory)
    directory.rmdir()
    directory.write_bytes(b"")


DAMAGES = [flip_byte, truncate, empty_state, delete_state, delete_manifest, garble_manifest, replace_by_older, leave_empty, replace_by_file]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_named_passed_over_and_replaced(golden: Golden, linear: Job, damage: Callable[[Path], None]) -> None:
    linear.kill_at("step", nth=12)
    damage(linear.checkpoints / NEWEST)

    attempt = linear.run()

    assert attempt.log.startswith("Skipping the checkpoint of step 10: ")
    assert (attempt.restored_step, attempt.steps("save.end")) == (5, [10, 15, 20])
    assert linear.directories() == ["step_00000015", "step_00000020"]
    assert_ends_like(golden, linear)


def test_when_no_checkpoint_is_intact_it_starts_from_scratch_and_says_so(golden: Golden, linear: Job) -> None:
    linear.kill_at("step", nth=12)
    for name in (NEWEST, OLDER):
        flip_byte(linear.checkpoints / name)

    attempt = linear.run()

    assert attempt.log.count("Skipping the checkpoint of step") == 2
    assert "No checkpoint to use: starting from scratch." in attempt.log
    assert_ends_like(golden, linear)


def test_a_damaged_checkpoint_does_not_count_as_one_that_is_kept(linear: Job) -> None:
    attempt = linear.start(armed="save.begin:after")
    attempt.reach("save.begin", step=15)
    flip_byte(linear.checkpoints / NEWEST)
    attempt.reach("save.begin", step=20)

    assert linear.directories() == [OLDER, NEWEST, "step_00000015"]


def test_temporaries_of_dead_attempts_are_removed_and_those_of_newer_ones_are_not(golden: Golden, linear: Job) -> None:
    linear.kill_at("save.commit", nth=2)
    assert "step_00000010.tmp-0" in linear.directories()
    (linear.checkpoints / "latest.tmp-0").write_bytes(b"")
    (linear.checkpoints / "step_00000099.tmp-9").mkdir()

    linear.run()

    assert linear.directories() == ["step_00000015", "step_00000020", "step_00000099.tmp-9"]
    assert "latest.tmp-0" not in linear.files()
    assert_ends_like(golden, linear)


@pytest.mark.parametrize("event", ["step", "save.begin", "save.write", "save.commit"])
def test_an_attempt_that_a_newer_one_has_overtaken_stops_without_writing(golden: Golden, linear: Job, event: str) -> None:
    zombie = linear.start(armed=f"{event}:after")
    zombie.reach(event, step=10)
    linear.run()
    held = linear.files()

    assert zombie.wait() == 75
    assert "Attempt 1 owns" in zombie.log
    assert linear.files() == held
    assert zombie.steps("save.end") == [5]
    assert_ends_like(golden, linear)


def test_an_attempt_that_starts_after_a_newer_one_does_not_train(linear: Job) -> None:
    linear.run(attempt=1)
    held = linear.files()

    late = linear.run(attempt=0)

    assert (late.process.returncode, late.events("start")) == (75, [])
    assert linear.files() == held


@pytest.mark.parametrize("content", [None, b"", b"\xff"], ids=["deleted", "emptied", "garbled"])
def test_a_damaged_owner_file_is_written_again_at_the_next_save(linear: Job, content: bytes | None) -> None:
    attempt = linear.start(armed="step:after")
    attempt.reach("step", nth=2)
    owner = linear.checkpoints / "owner"
    owner.unlink() if content is None else owner.write_bytes(content)

    assert attempt.wait() == 0
    assert owner.read_bytes() == b"0"


class Unmounted:
    """The checkpoint directory gone for a while, as a lost mount is: every access to it is an OSError, for root too."""

    def __init__(self, job: Job) -> None:
        self.directory = job.checkpoints
        self.away = job.home / "away"

    def __enter__(self) -> None:
        self.directory.rename(self.away)

    def __exit__(self, *error: object) -> None:
        self.away.rename(self.directory)


def assert_step_5_is_intact(attempt: Attempt, job: Job) -> None:
    assert attempt.steps("save.end")[0] == 5
    assert {"manifest.json", "state.json"} == {path.name for path in (job.checkpoints / OLDER).iterdir()}


@pytest.mark.parametrize("event", ["step", "save.begin", "save.write", "save.commit"])
def test_a_save_that_fails_is_reported_and_tried_again_at_the_next_one(golden: Golden, linear: Job, event: str) -> None:
    attempt = linear.start(armed=f"{event}:after step:after")
    attempt.reach(event, step=10)
    with Unmounted(linear):
        attempt.reach("step", step=11)
    assert_step_5_is_intact(attempt, linear)

    assert attempt.wait() == 0
    assert "Cannot save step 10: [Errno 2]" in attempt.log
    assert attempt.steps("save.end") == [5, 15, 20]
    assert_ends_like(golden, linear)


def test_a_removal_that_fails_is_reported_and_made_good_by_the_next_one(golden: Golden, linear: Job) -> None:
    attempt = linear.start(armed="gc.begin:after step:after")
    attempt.reach("gc.begin", step=15)
    with Unmounted(linear):
        attempt.reach("step", step=16)

    assert attempt.wait() == 0
    assert "Cannot remove old checkpoints: [Errno 2]" in attempt.log
    assert linear.directories() == ["step_00000015", "step_00000020"]
    assert_ends_like(golden, linear)


def test_a_last_save_that_fails_is_a_failure(golden: Golden, linear: Job) -> None:
    attempt = linear.start(armed="save.begin:after")
    attempt.reach("save.begin", step=20)
    with Unmounted(linear):
        assert attempt.wait() == 74

    assert attempt.events("done") == []
    assert "Rank 0 stops at step 20 with its work unsaved" in attempt.log
    assert linear.run().restored_step == 15
    assert_ends_like(golden, linear)


def test_a_save_on_sigterm_that_fails_is_a_failure(golden: Golden, linear: Job) -> None:
    attempt = linear.start(armed="step:after")
    attempt.reach("step", step=7)
    attempt.terminate()
    with Unmounted(linear):
        assert attempt.wait() == 74
    assert_step_5_is_intact(attempt, linear)

    linear.run()
    assert_ends_like(golden, linear)


def test_without_a_directory_to_write_to_it_does_not_train(linear: Job) -> None:
    with Unmounted(linear):
        attempt = linear.run()

    assert (attempt.process.returncode, attempt.events("start")) == (74, [])


def test_the_jobs_need_the_standard_library_alone_and_no_one_who_watches(golden: Golden, linear: Job) -> None:
    ranks = "import workloads.linear.ranks, workloads.broken, runpy; runpy.run_module('workloads.linear.train', run_name='__main__')"
    environment = {"CHECKPOINT_DIR": str(linear.checkpoints), "STEPS": "20", "STEP_SECONDS": "0"}

    alone = subprocess.run([sys.executable, "-S", "-c", ranks], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)

    assert alone.stderr == ""
    assert json.loads(linear.files()["final.json"])["params"] == golden[20]["digests"]["params"]
