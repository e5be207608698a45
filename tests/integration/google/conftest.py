"""Emulators as tests on a project have them: found by this process and by all that it starts, and gone with the test."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from harness.clock import SystemClock
from harness.emulator import Emulator
from harness.emulator.session import BUCKET, OWNED_LABELS, PLACE, PROJECT, REGION
from harness.runner import Options, Run, run_scenario
from harness.runner.play import Progress
from harness.scenario import Scenario
from harness.store import RunStore
from harness.targets.gcp.applied import PLAN_VARIABLE
from harness.targets.gcp.calling import Caller, RetryPolicy
from harness.targets.gcp.connection import connect
from harness.targets.gcp.place import FORMS, PREFIX
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.target import GcpTarget
from tests.integration.google.course import PLACE as COURSE_PLACE
from tests.integration.google.course import ROOT, Course

PLACE_VARIABLES = (*(PREFIX + name.upper() for name in FORMS), PLAN_VARIABLE)
"""By which a place and a plan are named."""

Emulate = Callable[..., Emulator]
RunIt = Callable[..., Run]


@pytest.fixture
def emulate(tmp_path: Path, own_state: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulate]:
    """Starts an emulator of the test's own, with the fields that it names. No place is named, and nothing is known of other runs."""
    for name in PLACE_VARIABLES:
        monkeypatch.setenv(name, "")  # put back afterwards, whatever the command line writes into them
    with ExitStack() as running:

        def start(**fields: Any) -> Emulator:
            emulator = running.enter_context(Emulator(tmp_path / "emulator", **fields))
            for name, value in emulator.endpoints.environment().items():
                monkeypatch.setenv(name, value)
            return emulator

        yield start


@pytest.fixture
def emulator(emulate: Emulate, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """One with the project and the bucket of an emulated session, which are named."""
    found = emulate(projects=(PROJECT,))
    found.make_bucket(BUCKET, OWNED_LABELS)
    for name, value in PLACE.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def run_it(emulator: Emulator, tmp_path: Path) -> RunIt:
    """Runs a scenario there."""
    clock = SystemClock()

    def run(scenario: Scenario, progress: Progress | None = None) -> Run:
        store = RunStore(tmp_path / "runs", clock)
        options = Options(root=ROOT, keep=True, progress=progress)
        return run_scenario(scenario, target=lambda: GcpTarget(clock), clock=clock, store=store, options=options)

    return run


@pytest.fixture
def course(emulate: Emulate, tmp_path: Path) -> Course:
    """What a harness does on a project, from the plan on; nothing is named but what the course says."""
    return Course(emulate(projects=(PROJECT,)), tmp_path)


@pytest.fixture
def named(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of the course is named, for what is started."""
    for name, value in COURSE_PLACE.environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def caller() -> Caller:
    """One that is impatient."""
    return Caller(clock=SystemClock(), chance=random.Random(1), policy=RetryPolicy(first_s=0.01, longest_s=0.05, settle_s=0.2))


def objects_left(emulator: Emulator) -> list[str]:
    """Files in the bucket of ``emulator``."""
    return [path.name for path in emulator.buckets.directory(BUCKET).rglob("*") if path.is_file()]


def jobs_left() -> list[str]:
    """Jobs of its project."""
    with closing(connect(PROJECT, os.environ, Secrets())) as clients:
        return [job.name for job in clients.jobs.list_jobs(parent=f"projects/{PROJECT}/locations/{REGION}")]
