"""Two uninterrupted runs are compared by what says something of their state."""

from pathlib import Path
from typing import Literal

import pytest

from harness.clock import ManualClock
from harness.history import (
    SCHEMA_VERSION,
    AttemptExited,
    AttemptStarted,
    Done,
    Event,
    ExecutionFinished,
    ExecutionStarted,
    GoldenKnown,
    HistoryWriter,
    Inspected,
    RunClosed,
    RunOpened,
    StepDone,
    TaskFinished,
)
from harness.runner.golden import establish
from harness.scenario import Scenario, Workload
from harness.scenario.expectations import BitExactResume
from harness.store import RunDirectory, RunStore

SILENT = Workload(name="job", command=("job",), steps=20, speaks_protocol=False)
SCENARIO = Scenario(name="a-job-repeats-itself", why="a test", workload=SILENT, expects=(BitExactResume(),))


def history(said: list[Event], *, reason: Literal["finished", "deadline"] = "finished") -> list[Event]:
    """A right run with something said in it; by ``reason`` one that had to be ended."""
    return [
        RunOpened(
            t_s=0, schema=SCHEMA_VERSION, run_id="r", scenario="s", target="local", seed=0, opened_at="2026-01-01T00:00:00.000+00:00"
        ),
        ExecutionStarted(t_s=0, execution="job-1", tasks=1, max_retries=3, timeout_s=600, grace_s=10),
        AttemptStarted(t_s=0, pid=1),
        *said,
        Done(t_s=2, step=20),
        AttemptExited(t_s=3, exit_code=0),
        TaskFinished(t_s=3, task=0, succeeded=True, attempts=1),
        ExecutionFinished(t_s=3, succeeded=1, failed=0, cancelled=0, retried=0),
        RunClosed(t_s=4, reason=reason),
    ]


@pytest.fixture
def compare(tmp_path: Path):
    def compare_runs(*said: list[Event]) -> GoldenKnown:
        told = iter(said)

        def play(_scenario: Scenario, directory: RunDirectory, _run_id: str) -> None:
            writer = HistoryWriter(directory.history_path)
            writer.append(history(next(told)))
            writer.close()

        store = RunStore(tmp_path / "runs", ManualClock())
        return establish(SCENARIO, store=store, root=tmp_path, seed=0, target="local", play=play)[0]

    return compare_runs


def test_steps_without_a_fingerprint_say_nothing_of_the_state(compare):
    known = compare([StepDone(t_s=1, step=4)], [StepDone(t_s=1, step=5)])

    assert known.equal


@pytest.mark.parametrize("one", [StepDone(t_s=1, step=4, digests={"params": "a"}), Inspected(t_s=3, step=20, digests={"params": "a"})])
def test_a_fingerprint_that_differs_proves_that_the_job_does_not_repeat_itself(compare, one):
    other = type(one)(t_s=1, step=one.step, digests={"params": "b"})

    known = compare([one], [other])

    assert not known.equal
    assert "differ" in known.detail


def test_equal_fingerprints_are_counted_and_failed_inspections_are_not(compare):
    same = [Inspected(t_s=3, step=20, digests={"params": "a"}), Inspected(t_s=3, step=-1, detail="exit code 1")]

    known = compare(same, same)

    assert known.equal
    assert "equal in 1 observations" in known.detail


def test_a_run_that_was_not_right_is_made_again_and_one_that_was_is_kept(tmp_path: Path):
    store = RunStore(tmp_path / "runs", ManualClock())
    played: list[str] = []
    reasons: list[Literal["finished", "deadline"]] = ["finished", "deadline", "finished"]

    def play(_scenario: Scenario, directory: RunDirectory, _run_id: str) -> None:
        writer = HistoryWriter(directory.history_path)
        writer.append(history([], reason=reasons[len(played)]))
        writer.close()
        played.append(directory.path.name)

    def known() -> GoldenKnown:
        return establish(SCENARIO, store=store, root=tmp_path, seed=0, target="local", play=play)[0]

    assert not known().equal
    assert known().equal
    assert played == ["first", "second", "second"]


def test_a_run_that_failed_and_was_tried_again_is_no_uninterrupted_one(compare):
    crashed = [AttemptExited(t_s=1, exit_code=1, retried=True), AttemptStarted(t_s=1, attempt=1, pid=2)]

    known = compare(crashed, crashed)

    assert not known.equal
    assert "itself is invalid" in known.detail
