"""Each broken job is wrong in its one way, and seen to be so; without its fault it ends like the right job."""

import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.job_process import ROOT, Attempt, Job
from workloads.broken import BROKEN

WRONG_BY_THEMSELVES = {"async_save_without_drain", "crash_loop", "rank_hangs"}
REPORT = re.compile(r"^(?:Case (\d+)|No case): (.+)$", re.MULTILINE)

BrokenJobs = Callable[..., Job]


@pytest.fixture
def broken() -> Iterator[BrokenJobs]:
    """Makes a broken job of the given name."""
    jobs: list[Job] = []

    def make(name: str, **environment: object) -> Job:
        jobs.append(Job(f"workloads.broken.{name}", **environment))
        return jobs[-1]

    yield make
    for job in jobs:
        job.__exit__(None, None, None)


@pytest.fixture(scope="module")
def right() -> Iterator[Attempt]:
    """The uninterrupted run of the right job."""
    with Job("workloads.linear.train") as job:
        attempt = job.run()
        assert attempt.process.returncode == 0
        yield attempt


def digests_of(attempt: Attempt, event: str = "step") -> dict[int, dict[str, str]]:
    return {line["step"]: line["digests"] for line in attempt.events(event)}


def samples_of(attempt: Attempt) -> dict[int, list[int]]:
    return {line["step"]: line["batch_ids"] for line in attempt.events("step")}


def differing_parts(found: dict[str, Any], expected: dict[str, Any]) -> set[str]:
    return {part for part in expected if found[part] != expected[part]}


def test_the_table_names_every_broken_job() -> None:
    modules = {path.stem for path in (ROOT / "workloads" / "broken").glob("[a-z]*.py")}

    assert modules == BROKEN.keys()


@pytest.mark.parametrize("name", BROKEN)
def test_the_docstring_says_what_is_wrong_which_case_it_is_and_who_must_notice(name: str) -> None:
    text = importlib.import_module(f"workloads.broken.{name}").__doc__ or ""
    reports = REPORT.findall(text)

    assert text.startswith("Wrong: ")
    assert "\nSymptom: " in text
    assert text.endswith(f"\nCaught by: {BROKEN[name].promise}\n")
    assert sorted(int(number) for number, _ in reports if number) == sorted(BROKEN[name].cases)
    assert reports
    assert all(source.startswith(("https://github.com/", "own finding: ")) for _, source in reports)


@pytest.mark.parametrize("name", sorted(BROKEN.keys() - WRONG_BY_THEMSELVES - {"ranks_restore_different_steps"}))
def test_without_a_fault_it_ends_like_the_right_job(broken: BrokenJobs, right: Attempt, name: str) -> None:
    attempt = broken(name).run()

    assert (attempt.process.returncode, attempt.steps("done")) == (0, [20])
    assert digests_of(attempt) == digests_of(right)
    assert samples_of(attempt) == samples_of(right)


def test_saves_in_place_loses_its_only_checkpoint(broken: BrokenJobs) -> None:
    job = broken("saves_in_place")
    assert job.kill_at("save.write", nth=2).steps("save.end") == [5]

    attempt = job.run()

    assert "checkpoint.json is unreadable" in attempt.log
    assert attempt.restored_step == 0


def test_renames_without_fsync_never_waits_for_the_storage(broken: BrokenJobs, right: Attempt, tmp_path: Path) -> None:
    """Only the loss of the node shows the symptom; here the calls are counted in the process itself, against those of the right job."""
    counts = {module: count_fsyncs(module, tmp_path) for module in ("workloads.linear.train", "workloads.broken.renames_without_fsync")}

    assert counts["workloads.broken.renames_without_fsync"] == 0
    assert counts["workloads.linear.train"] > 4 * 6  # each save: two files, two directories, latest and its directory


def count_fsyncs(module: str, directory: Path) -> int:
    """Run a job under a profiler that counts its calls of ``os.fsync``."""
    program = (
        "import os, runpy, sys\n"
        "calls = []\n"
        "sys.setprofile(lambda frame, event, called: calls.append(1) if event == 'c_call' and called is os.fsync else None)\n"
        f"try:\n    runpy.run_module({module!r}, run_name='__main__')\n"
        "finally:\n    sys.setprofile(None); print(len(calls), file=sys.stderr)\n"
    )
    checkpoints = directory / module
    checkpoints.mkdir()
    environment = os.environ | {"CHECKPOINT_DIR": str(checkpoints), "STEPS": "20", "STEP_SECONDS": "0"}
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return int(run.stderr)


def test_deletes_old_before_new_is_left_with_nothing(broken: BrokenJobs) -> None:
    job = broken("deletes_old_before_new")
    assert job.kill_at("save.begin", nth=2).steps("save.end") == [5]

    assert job.directories() == []
    assert job.run().restored_step == 0


def test_ignores_sigterm_trains_on(broken: BrokenJobs) -> None:
    attempt = broken("ignores_sigterm").terminate_at("step", nth=7)

    assert (attempt.process.returncode, attempt.events("sigterm"), attempt.steps("done")) == (0, [], [20])


def test_exits_zero_on_sigterm_looks_like_a_success(broken: BrokenJobs) -> None:
    attempt = broken("exits_zero_on_sigterm").terminate_at("step", nth=7)

    assert (attempt.process.returncode, attempt.steps("save.end"), attempt.events("done")) == (0, [5, 7], [])


def test_reads_flag_between_long_steps_saves_a_step_too_late() -> None:
    delays_s = []
    for name in ("workloads.linear.train", "workloads.broken.reads_flag_between_long_steps"):
        with Job(name, STEP_SECONDS=0.5) as job:
            attempt = job.terminate_at("step")
            assert (attempt.process.returncode, attempt.steps("save.end")) == (143, [1])
            delays_s.append(attempt.events("save.begin")[0]["t"] - attempt.events("sigterm")[0]["t"])

    right, broken = delays_s
    assert right < 0.5 <= broken


def test_names_its_run_by_time_finds_nothing_of_what_it_saved(broken: BrokenJobs) -> None:
    job = broken("names_its_run_by_time")
    job.kill_at("save.end", nth=2)

    attempt = job.run()

    assert attempt.restored_step == 0
    assert sorted(path.name for path in job.checkpoints.glob("run_*/step_*")) == [
        "step_00000005",
        "step_00000010",
        "step_00000015",
        "step_00000020",
    ]


def test_saves_nothing_keeps_nothing_but_its_result(broken: BrokenJobs) -> None:
    job = broken("saves_nothing")
    assert job.kill_at("step", nth=12).steps("save.begin") == []

    assert job.run().restored_step == 0
    assert job.directories() == []


def test_starts_from_scratch_trains_everything_again(broken: BrokenJobs) -> None:
    job = broken("starts_from_scratch")
    assert job.kill_at("save.end", nth=2).steps("save.end") == [5, 10]

    attempt = job.run()

    assert (attempt.restored_step, attempt.steps("step")[0], attempt.events("restore")) == (0, 1, [])


def test_off_by_one_on_resume_skips_a_step(broken: BrokenJobs) -> None:
    job = broken("off_by_one_on_resume")
    job.kill_at("save.end", nth=2)

    attempt = job.run()

    assert (attempt.steps("restore"), attempt.steps("step")[0]) == ([10], 12)


@pytest.mark.parametrize(("name", "part"), [("forgets_optimizer", "optimizer"), ("forgets_rng", "rng"), ("restarts_data_order", "data")])
def test_a_forgotten_part_of_the_state_is_not_the_one_that_was_saved(broken: BrokenJobs, right: Attempt, name: str, part: str) -> None:
    job = broken(name)
    saved = digests_of(job.kill_at("save.end", nth=2), "save.end")[10]

    attempt = job.run()

    assert differing_parts(digests_of(attempt, "restore")[10], saved) == {part}
    assert "params" in differing_parts(digests_of(attempt)[20], digests_of(right)[20])


def test_restarts_data_order_takes_the_first_samples_again(broken: BrokenJobs, right: Attempt) -> None:
    job = broken("restarts_data_order")
    job.kill_at("save.end", nth=1)

    assert samples_of(job.run())[6] == samples_of(right)[1]


def test_data_order_is_right_on_the_first_resume_and_wrong_on_the_second(broken: BrokenJobs, right: Attempt) -> None:
    job = broken("data_order_wrong_on_second_resume")
    job.kill_at("save.end", nth=1)
    first = job.kill_at("save.end", nth=2)

    second = job.run()

    assert samples_of(first).items() <= samples_of(right).items()
    assert second.restored_step == 15
    assert samples_of(second)[16] == samples_of(right)[11]


@pytest.mark.parametrize(("nth", "code"), [(3, 74), (4, 0)])
def test_picks_incomplete_checkpoint(broken: BrokenJobs, nth: int, code: int) -> None:
    """Before the state is written the directory cannot be loaded; before the manifest is, an uncommitted step can."""
    job = broken("picks_incomplete_checkpoint")
    assert job.kill_at("save.write", nth=nth).steps("save.end") == [5]

    attempts = [job.run(), job.run()]

    assert attempts[0].steps("restore.begin") == [10]
    assert [attempt.process.returncode for attempt in attempts] == [code, code]


def test_latest_before_data_passes_over_a_good_checkpoint(broken: BrokenJobs) -> None:
    job = broken("latest_before_data")
    job.kill_at("save.begin", nth=2)

    assert job.directories() == ["step_00000005"]
    assert job.run().restored_step == 0


def test_latest_names_a_path_that_a_copy_has_too(broken: BrokenJobs) -> None:
    job = broken("latest_names_a_path")
    job.kill_at("save.begin", nth=2)

    assert job.directories() == ["step_00000005"]
    assert job.run().restored_step == 0


def test_async_save_without_drain_is_done_and_has_not_saved_the_last_step(broken: BrokenJobs) -> None:
    job = broken("async_save_without_drain")
    attempt = job.run()

    assert (attempt.process.returncode, attempt.steps("done")) == (0, [20])
    assert (attempt.steps("save.begin")[-1], attempt.steps("save.end")[-1]) == (20, 15)
    assert job.run().restored_step == 15


def test_crashes_on_stale_temporary_dies_there_again_and_again(broken: BrokenJobs) -> None:
    job = broken("crashes_on_stale_temporary")
    job.kill_at("save.commit", nth=2)

    for attempt in (job.run(), job.run()):
        assert (attempt.process.returncode, attempt.restored_step, attempt.steps("step")[-1]) == (1, 5, 10)
        assert "a save of step 10 is in progress" in attempt.log


def test_two_writers_commit_side_by_side(broken: BrokenJobs) -> None:
    job = broken("two_writers")
    zombie = job.start(armed="step:after")
    zombie.reach("step", nth=7)
    new = job.run()

    assert zombie.wait() == 0
    assert zombie.events("save.end")[-1]["t"] > new.events("done")[0]["t"]
    assert job.files()["latest"] == b"step_00000010"  # the job is complete, and the pointer has gone back


def test_rank_hangs_alive_while_the_other_waits(broken: BrokenJobs) -> None:
    attempt = broken("rank_hangs").start(armed="heartbeat:after")
    attempt.reach("heartbeat", nth=4)

    assert attempt.process.poll() is None
    assert {line["step"] for line in attempt.events("step")} == set(range(1, 8))
    assert {line["rank"] for line in attempt.events("heartbeat")} == {1}

    attempt.terminate()
    launcher = os.pidfd_open(attempt.process.pid)
    attempt.reach("heartbeat", nth=4)
    assert select.select([launcher], [], [], 0)[0] == []
    os.close(launcher)
    assert attempt.kill() == -signal.SIGKILL


def test_crash_loop_makes_no_progress(broken: BrokenJobs) -> None:
    job = broken("crash_loop")

    for number, attempt in enumerate([job.run(), job.run(), job.run()]):
        assert (attempt.process.returncode, attempt.steps("step")[-1]) == (1, 7)
        assert attempt.restored_step == (5 if number else 0)


def test_skips_saves_after_resume_passes_over_a_save_in_silence(broken: BrokenJobs) -> None:
    job = broken("skips_saves_after_resume", STEPS=10)
    job.kill_at("save.commit", nth=2)

    attempt = job.run()

    assert (attempt.restored_step, attempt.steps("save.begin"), attempt.process.returncode) == (5, [], 0)
    assert job.directories() == ["step_00000005"]


def test_swallows_save_error_acknowledges_what_is_not_there(broken: BrokenJobs) -> None:
    job = broken("swallows_save_error")
    attempt = job.start(armed="save.begin:after save.end:after")
    attempt.reach("save.begin", step=20)
    away = job.checkpoints.rename(job.home / "away")
    attempt.reach("save.end", step=20)
    away.rename(job.checkpoints)

    assert (attempt.wait(), attempt.steps("done")) == (0, [20])
    assert job.directories() == ["step_00000010", "step_00000015"]


def test_skips_epoch_at_boundary_is_done_an_epoch_early(broken: BrokenJobs, right: Attempt) -> None:
    job = broken("skips_epoch_at_boundary", STEPS=30)
    job.kill_at("save.end", nth=2)

    attempt = job.run()

    assert (attempt.restored_step, attempt.process.returncode, attempt.steps("done")) == (10, 0, [20])
    assert set(samples_of(attempt)) == set(range(11, 21))
    assert samples_of(attempt)[11] != samples_of(right)[11]


def test_ranks_restore_different_steps(broken: BrokenJobs) -> None:
    job = broken("ranks_restore_different_steps")
    job.kill_at("save.latest", nth=2)

    attempt = job.run()

    assert {line["rank"]: line["restored_step"] for line in attempt.events("start")} == {0: 10, 1: 5}


def test_stale_learning_rate_restores_everything_and_trains_otherwise(broken: BrokenJobs, right: Attempt) -> None:
    job = broken("stale_learning_rate")
    job.kill_at("save.end", nth=2)

    attempt = job.run()

    assert digests_of(attempt, "restore")[10] == digests_of(right)[10]
    assert differing_parts(digests_of(attempt)[11], digests_of(right)[11]) == {"params", "optimizer"}


@pytest.mark.parametrize("position", [7, 71, 1000], ids=["params", "optimizer", "rng"])
def test_restores_damaged_bytes_without_a_word(broken: BrokenJobs, position: int) -> None:
    job = broken("restores_damaged_bytes")
    saved = digests_of(job.kill_at("step", nth=12), "save.end")[10]
    arrays = job.checkpoints / "step_00000010" / "arrays.bin"
    data = bytearray(arrays.read_bytes())
    data[position] ^= 1
    arrays.write_bytes(data)

    attempt = job.run()

    assert (attempt.restored_step, attempt.process.returncode) == (10, 0)
    assert len(differing_parts(digests_of(attempt, "restore")[10], saved)) == 1
    assert json.loads(job.files()["final.json"])["step"] == 20


def test_crashes_on_stale_lock_spends_two_attempts_on_each_kill(broken: BrokenJobs) -> None:
    job = broken("crashes_on_stale_lock")
    job.kill_at("step", nth=7)

    first, second = job.run(), job.run()

    assert (first.process.returncode, first.events("start")) == (1, [])
    assert "another attempt is at work" in first.log
    assert (second.process.returncode, second.restored_step, second.steps("done")) == (0, 5, [20])


def test_forgets_average_trains_right_and_exports_another_average(broken: BrokenJobs) -> None:
    uninterrupted, interrupted = broken("forgets_average"), broken("forgets_average")
    golden = uninterrupted.run()
    interrupted.kill_at("step", nth=7)

    attempt = interrupted.run()

    assert digests_of(attempt).items() <= digests_of(golden).items()
    assert interrupted.files()["final.json"] != uninterrupted.files()["final.json"]


def test_keeps_log_in_memory_until_it_ends_by_itself(broken: BrokenJobs) -> None:
    job = broken("keeps_log_in_memory")
    killed = job.kill_at("step", nth=7)

    ended = job.run()

    assert killed.log == ""
    assert ended.log.splitlines() == ["Resuming from step 5 of 20.", "Completed 20 steps."]


def test_stalls_in_saves_for_four_fifths_of_its_time(broken: BrokenJobs) -> None:
    attempt = broken("stalls_in_saves", STEP_SECONDS=0.01).run()
    begun, ended = ([line["t"] for line in attempt.events(event)] for event in ("save.begin", "save.end"))
    stalled_s = sum(end - begin for begin, end in zip(begun, ended, strict=True))

    assert stalled_s >= 0.8 * (ended[-1] - attempt.events("start")[0]["t"])
