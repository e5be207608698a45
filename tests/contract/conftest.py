"""The contract of a target: every test here runs against every target, and none looks at how it is made."""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.targets import availability, left_behind
from tests.contract.driver import TRAITS, Run

REQUIRED = os.environ.get("HARNESS_REQUIRE", "").split(",")
"""Targets that must be here: on a machine that is meant to have them, a missing one is no reason to skip."""


@functools.cache
def problem_with(name: str) -> str:
    found = availability(name)
    return "" if found.is_available else f"target {name!r} is not available: {found.reason}; {found.advice}"


@pytest.fixture(params=TRAITS)
def target_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    problem = problem_with(name)
    if problem and (name == "local" or name in REQUIRED):
        pytest.fail(problem, pytrace=False)
    if problem:
        pytest.skip(problem)
    return name


@pytest.fixture
def start(target_name: str, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs; afterwards each is stopped and must have left nothing behind."""
    runs: list[Run] = []

    def start_run(command: tuple[str, ...], **launch: Any) -> Run:
        runs.append(Run(target_name, tmp_path / str(len(runs)), command, **launch))
        return runs[-1].start()

    yield start_run
    for run in runs:
        run.stop()
    assert [left_behind(run.launch.run_id) for run in runs] == [[] for _ in runs]
