"""Which targets can be tried on this machine."""

import functools
import os

import pytest

from harness.targets import availability
from harness.targets.docker.presence import image_problem

REQUIRED = ("local", *os.environ.get("HARNESS_REQUIRE", "").split(","))
"""Targets that must be here: on a machine that is meant to have them, a missing one is no reason to skip."""


def skip_or_fail_without(name: str) -> None:
    """Skip the test where a target is not here; fail it where it must be."""
    problem = _problem_with(name)
    if problem and name in REQUIRED:
        pytest.fail(problem, pytrace=False)
    if problem:
        pytest.skip(problem)


@functools.cache
def _problem_with(name: str) -> str:
    found = availability(name)
    problem = "" if found.is_available else f"{found.reason}; {found.advice}"
    if name == "docker":
        problem = problem or image_problem()
    return problem and f"target {name!r} is not available: {problem}"
