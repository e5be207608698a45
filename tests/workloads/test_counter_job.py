"""The counter against the contract of Cloud Run's GPU guide, sentence by sentence."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.workloads.job_process import ROOT, Job

CHECKPOINT = "local-job-task-0-checkpoint.txt"


@pytest.fixture
def counter() -> Iterator[Job]:
    with Job("workloads.counter.train", STEPS=12) as job:
        yield job


def test_it_is_local_job_task_0_unless_the_platform_says_otherwise(counter: Job) -> None:
    assert counter.run().process.returncode == 0
    assert counter.files() == {CHECKPOINT: b"12"}


def test_each_task_of_each_job_has_its_own_file(counter: Job) -> None:
    for index in (0, 3):
        counter.run(CLOUD_RUN_JOB="train", CLOUD_RUN_TASK_INDEX=index, STEPS=5 + index)

    assert counter.files() == {"train-task-0-checkpoint.txt": b"5", "train-task-3-checkpoint.txt": b"8"}


def test_defaults_are_those_of_the_guide() -> None:
    names = "CHECKPOINT", "STEPS", "SAVE_EVERY", "STEP_SECONDS"
    show = f"from workloads.counter.train import {', '.join(names)}; print({', '.join(names)})"
    environment = {"PATH": os.environ["PATH"]}
    found = subprocess.run([sys.executable, "-c", show], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)

    assert found.stdout.split() == [f"/checkpoints/{CHECKPOINT}", "100", "5", "1.0"]


def test_it_saves_every_five_steps_and_at_the_end(counter: Job) -> None:
    attempt = counter.run()

    assert attempt.steps("save.end") == [5, 10, 12]
    assert attempt.steps("step") == list(range(1, 13))
    assert [line["batch_ids"] for line in attempt.events("step")] == [[step] for step in range(1, 13)]


def test_the_first_line_of_a_new_job_says_that_it_starts_from_scratch(counter: Job) -> None:
    attempt = counter.run()

    assert attempt.log.splitlines()[0] == "No checkpoint found. Starting from scratch."
    assert attempt.restored_step == 0


def test_it_resumes_from_the_checkpointed_step(counter: Job) -> None:
    counter.kill_at("step", nth=7)
    assert counter.files() == {CHECKPOINT: b"5"}

    attempt = counter.run()

    assert attempt.log.splitlines()[0] == "Resuming from checkpointed step 5."
    assert (attempt.restored_step, attempt.steps("restore"), attempt.steps("step")[0]) == (5, [5], 6)
    assert (attempt.process.returncode, counter.files()) == (0, {CHECKPOINT: b"12"})


@pytest.mark.parametrize("content", [b"", b"five", b"-1", b"13", b"5.0", b"\xff\xfe", b"9" * 5000], ids=repr)
def test_an_unreadable_checkpoint_is_named_and_the_job_starts_from_scratch(counter: Job, content: bytes) -> None:
    (counter.checkpoints / CHECKPOINT).write_bytes(content)

    attempt = counter.run()

    assert attempt.log.startswith("Checkpoint unreadable (")
    assert attempt.log.splitlines()[0].endswith("Starting from scratch.")
    assert attempt.events("restore.begin") == []
    assert (attempt.restored_step, attempt.process.returncode, counter.files()[CHECKPOINT]) == (0, 0, b"12")


def test_a_save_that_fails_ends_the_attempt_as_a_failure(counter: Job) -> None:
    (counter.checkpoints / CHECKPOINT).mkdir()

    attempt = counter.run()

    assert attempt.process.returncode == 1
    assert attempt.log.startswith("Checkpoint unreadable (")
    assert "IsADirectoryError" in attempt.log
    assert attempt.events("save.end") == []


def test_on_sigterm_it_says_so_saves_and_exits_143(counter: Job) -> None:
    attempt = counter.terminate_at("step", nth=7)

    assert attempt.process.returncode == 143
    assert attempt.log.splitlines()[-2:] == [
        "Received SIGTERM signal from platform. Initiating graceful shutdown...",
        "Saving checkpoint at step 7...",
    ]
    assert counter.files() == {CHECKPOINT: b"7"}
    assert counter.run().log.startswith("Resuming from checkpointed step 7.\n")


def test_sigterm_at_a_step_that_is_due_saves_it_once(counter: Job) -> None:
    attempt = counter.terminate_at("step", nth=5)

    assert (attempt.process.returncode, attempt.steps("save.end")) == (143, [5])


def test_sigterm_in_the_last_step_does_not_undo_the_completion(counter: Job) -> None:
    attempt = counter.terminate_at("step", nth=12)

    assert (attempt.process.returncode, attempt.steps("save.end"), attempt.steps("done")) == (0, [5, 10, 12], [12])


def test_sigterm_before_the_first_step_saves_and_exits_143(counter: Job) -> None:
    attempt = counter.terminate_at("start")

    assert (attempt.process.returncode, attempt.steps("save.end"), attempt.steps("step")) == (143, [0], [])


def test_a_long_step_delays_the_save_because_the_handler_only_sets_a_flag(counter: Job) -> None:
    for _ in range(3):  # on a stalled machine the signal may land between two steps, which shows nothing
        attempt = counter.start(armed="step:after", STEP_SECONDS=0.3)
        first = attempt.reach("step")["step"]
        attempt.release()
        time.sleep(0.1)  # a third into the next step
        attempt.terminate()
        assert attempt.wait() == 143
        if attempt.steps("step") == [first, first + 1]:
            break

    before, after = attempt.events("step")
    assert after["t"] - before["t"] >= 0.3
    assert before["t"] < attempt.events("sigterm")[0]["t"] < after["t"]
    assert attempt.steps("save.end") == [first + 1]


@pytest.mark.parametrize(("event", "when"), [("save.begin", "after"), ("save.commit", "before"), ("save.commit", "after")])
def test_a_final_save_that_is_cut_short_never_replaces_the_last_good_checkpoint(counter: Job, event: str, when: str) -> None:
    attempt = counter.start(armed=f"step:after {event}:{when}")
    attempt.reach("step", nth=7)
    attempt.terminate()
    attempt.reach(event, step=7)
    attempt.kill()

    assert counter.files()[CHECKPOINT] == b"5"
    assert counter.run().log.startswith("Resuming from checkpointed step 5.\n")
    assert counter.files() == {CHECKPOINT: b"12"}


def test_a_job_that_is_complete_exits_0_without_a_step(counter: Job) -> None:
    counter.run()

    attempt = counter.run()

    assert (attempt.process.returncode, attempt.restored_step, attempt.steps("step"), attempt.steps("done")) == (0, 12, [], [12])


def test_it_runs_the_same_when_nobody_watches(counter: Job) -> None:
    attempt = counter.run(HARNESS_EVENTS="")
    unwatched = subprocess.run(
        [sys.executable, "-S", "-m", "workloads.counter.train"],  # -S: no site-packages, so the standard library is all it needs
        cwd=ROOT,
        env={"CHECKPOINT_DIR": str(counter.checkpoints), "CLOUD_RUN_JOB": "alone", "STEPS": "12", "STEP_SECONDS": "0"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert unwatched.stdout == attempt.log
    assert counter.files() == {CHECKPOINT: b"12", "alone-task-0-checkpoint.txt": b"12"}
