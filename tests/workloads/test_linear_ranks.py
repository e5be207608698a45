"""The linear job on two ranks: in step with each other, and ended together."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.workloads.job_process import DEADLINE_S, ROOT, Attempt, Job


@pytest.fixture
def pair() -> Iterator[Job]:
    with Job("workloads.linear.train", RANKS=2) as job:
        yield job


@pytest.fixture(scope="module")
def golden() -> Iterator[Attempt]:
    """The uninterrupted run."""
    with Job("workloads.linear.train", RANKS=2) as job:
        attempt = job.run()
        assert attempt.process.returncode == 0, attempt.log
        yield attempt


def trace(attempt: Attempt, rank: int) -> dict[int, tuple[list[int], dict[str, str]]]:
    return {line["step"]: (line["batch_ids"], line["digests"]) for line in attempt.events("step", rank=rank)}


def assert_ends_like(golden: Attempt, job: Job) -> None:
    last = job.attempts[-1]
    assert last.process.returncode == 0, last.log
    assert sorted(line["rank"] for line in last.events("done")) == [0, 1]
    for attempt in job.attempts:
        for rank in (0, 1):
            assert trace(attempt, rank).items() <= trace(golden, rank).items()


def test_ranks_share_each_batch_and_agree_on_the_state(golden: Attempt) -> None:
    first, second = trace(golden, 0), trace(golden, 1)

    assert list(first) == list(second) == list(range(1, 21))
    assert [digests for _, digests in first.values()] == [digests for _, digests in second.values()]
    epoch = [sample for step in range(1, 11) for sample in first[step][0] + second[step][0]]
    assert sorted(epoch) == list(range(40))


def test_every_rank_speaks_and_only_rank_0_saves(golden: Attempt) -> None:
    assert {line["rank"] for line in golden.events("boot")} == {0, 1}
    assert {line["rank"] for line in golden.events() if line["event"].startswith(("save.", "gc."))} == {0}
    assert len({line["pid"] for line in golden.events()}) == 2


def test_a_rank_says_that_it_waits_for_the_others(golden: Attempt) -> None:
    """By it a watchdog tells the rank that is stuck from those that wait."""
    assert {(line["rank"], line["step"]) for line in golden.events("collective")} == {(rank, step) for rank in (0, 1) for step in range(21)}


@pytest.mark.parametrize("rank", [0, 1])
def test_the_death_of_one_rank_ends_the_other_and_the_task(golden: Attempt, pair: Job, rank: int) -> None:
    attempt = pair.start(armed="step:after")
    held = attempt.reach("step", step=12, rank=rank)
    os.kill(held["pid"], signal.SIGKILL)

    assert attempt.wait() == 128 + signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.killpg(attempt.process.pid, 0)

    assert pair.run().restored_step == 10
    assert_ends_like(golden, pair)


def test_sigterm_stops_all_ranks_at_the_same_step(golden: Attempt, pair: Job) -> None:
    attempt = pair.terminate_at("step", nth=15)

    assert attempt.process.returncode == 143
    assert {line["rank"] for line in attempt.events("sigterm")} == {0, 1}
    assert list(trace(attempt, 0)) == list(trace(attempt, 1))
    assert pair.run().restored_step == max(trace(attempt, 0))
    assert_ends_like(golden, pair)


def test_sigterm_to_one_rank_stops_all_at_the_same_step(golden: Attempt, pair: Job) -> None:
    attempt = pair.start(armed="step:after")
    os.kill(attempt.reach("step", step=7, rank=1)["pid"], signal.SIGTERM)

    assert attempt.wait() == 143
    assert list(trace(attempt, 0)) == list(trace(attempt, 1))
    assert_restores_on_both(pair.run(), attempt.steps("save.end")[-1])
    assert_ends_like(golden, pair)


def assert_restores_on_both(attempt: Attempt, step: int) -> None:
    assert [line["restored_step"] for line in attempt.events("start")] == [step, step]
    first, second = attempt.events("restore")
    assert first["digests"] == second["digests"]


def test_all_ranks_restore_the_step_that_rank_0_found_intact(golden: Attempt, pair: Job) -> None:
    pair.kill_at("gc.begin", nth=2)
    (pair.checkpoints / "step_00000010" / "state.json").write_bytes(b"")

    assert_restores_on_both(pair.run(), 5)
    assert_ends_like(golden, pair)


def test_ranks_end_when_the_launcher_is_killed(pair: Job) -> None:
    attempt = pair.start(armed="step:after")
    attempt.reach("step", step=7, rank=1)
    ranks = [os.pidfd_open(line["pid"]) for line in attempt.events("boot")]
    attempt.process.kill()

    assert attempt.wait() == -signal.SIGKILL
    assert [has_ended(descriptor) for descriptor in ranks] == [True, True]


def has_ended(descriptor: int) -> bool:
    """Wait for a process that is not our child, and close its descriptor."""
    try:
        return bool(select.select([descriptor], [], [], DEADLINE_S)[0])
    finally:
        os.close(descriptor)


STARTING = """
import os, signal, sys
from workloads.linear.ranks import Gang, launch
if "RANK" not in os.environ:
    sys.exit(launch([sys.executable, *sys.orig_argv[1:]], 2))
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGTERM)
try:
    Gang(2).gather(0)
except ConnectionError:
    sys.exit(74)
"""


def test_sigterm_that_meets_a_rank_without_its_handler_ends_the_task_as_any_other() -> None:
    task = subprocess.run([sys.executable, "-c", STARTING], cwd=ROOT, timeout=DEADLINE_S, check=False)

    assert task.returncode == 143


def test_a_rank_that_does_not_end_by_itself_is_killed_with_the_task() -> None:
    with Job("workloads.broken.rank_hangs") as job:
        attempt = job.start(armed="heartbeat:after step:after")
        attempt.reach("heartbeat")
        os.kill(attempt.events("boot", rank=0)[0]["pid"], signal.SIGKILL)

        assert attempt.wait() == 128 + signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.killpg(attempt.process.pid, 0)
