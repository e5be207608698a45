"""The workload's own inspection, and what is left of its processes."""

import os
import secrets
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.history import Inspected
from harness.runner.inspection import OUTPUT_BYTES_MAX, inspect_copies
from harness.scenario import Outside, Scenario, Workload
from harness.scenario.expectations import Completes
from harness.targets import left_behind

ANSWER = """print('{"step": 5, "digests": {"w": "1"}}', flush=True)"""
DETACHED = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], {}); "

Inspect = Callable[..., Inspected]


@pytest.fixture
def run_id() -> str:
    return secrets.token_hex(6)


@pytest.fixture
def inspect(tmp_path: Path, run_id: str) -> Inspect:
    def inspect_with(code: str, *, timeout_s: float = 60.0) -> Inspected:
        outside = Outside(inspect=("{python}", "-c", code), inspect_timeout_s=timeout_s)
        workload = Workload(name="job", command=("job",), steps=20, outside=outside)
        scenario = Scenario(name="a-job-is-inspected", why="a test", workload=workload, expects=(Completes(),))
        copy = tmp_path / "copy"
        copy.mkdir()
        (event,) = inspect_copies(scenario, {(0, 0): (copy, 1.0)}, root=tmp_path, seed=0, run_id=run_id)
        assert isinstance(event, Inspected)
        assert not copy.exists()
        return event

    return inspect_with


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Groups that were killed."""
    groups: list[int] = []
    kill = os.killpg

    def note(group: int, number: int) -> None:
        groups.append(group)
        kill(group, number)

    monkeypatch.setattr(os, "killpg", note)
    return groups


def test_an_answer_is_recorded_and_no_group_is_killed_whose_id_may_be_another_s(inspect, killed):
    event = inspect(ANSWER)

    assert (event.step, event.digests) == (5, {"w": "1"})
    assert killed == []


@pytest.mark.parametrize("options", ["start_new_session=True", "start_new_session=False"])
def test_what_it_started_and_left_is_ended(inspect, run_id: str, options: str):
    event = inspect(DETACHED.format(f"stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, {options}") + ANSWER)

    assert event.step == 5
    assert left_behind(run_id) == []


def test_one_that_does_not_end_is_ended_with_all_it_started(inspect, run_id: str, killed):
    event = inspect(DETACHED.format("start_new_session=True") + "import time; time.sleep(600)", timeout_s=0.5)

    assert (event.step, event.detail) == (-1, "not finished after 0.5 s")
    assert len(killed) == 1
    assert left_behind(run_id) == []


def test_of_one_that_never_stops_talking_no_more_than_the_end_is_held(inspect):
    tracemalloc.start()
    try:
        event = inspect("import os\nwhile True: os.write(1, b'x' * 65536)", timeout_s=1.0)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (event.step, event.detail) == (-1, "not finished after 1 s")
    assert peak_bytes < 8 * OUTPUT_BYTES_MAX


def test_the_answer_after_a_long_talk_is_read(inspect):
    assert inspect(f"print('x' * {2 * OUTPUT_BYTES_MAX}); {ANSWER}").step == 5
