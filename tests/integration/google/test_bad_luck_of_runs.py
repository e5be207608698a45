"""A run on Google Cloud while services fail, others interfere, and the log comes late: a verdict or a clear error, and nothing left."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.emulator import ApiError, Emulator, InjectedFault
from harness.emulator.failures import permission_denied, unavailable
from harness.emulator.logging.disturbances import Disturbance
from harness.emulator.session import PROJECT
from harness.errors import BrokenHarnessError, HarnessError
from harness.history import ExecutionStarted, LogLine, ObservationLost
from harness.scenario import Injection, Scenario
from harness.scenario.expectations import Completes, LogOrder, WithinRetries
from harness.scenario.faults import Kill, Maintenance
from harness.scenario.triggers import AtStep
from harness.targets.gcp.connection import connect
from harness.targets.gcp.log_reading import live_entries, read_entry
from harness.targets.gcp.secrets import Secrets
from harness.verdict import Outcome
from scenarios.jobs import COUNTER
from tests.integration.google.conftest import RunIt, jobs_left, objects_left

ROOT = Path(__file__).resolve().parents[3]

SHORT = Scenario(
    name="a-killed-job-is-tried-again",
    why="a host error",
    workload=replace(COUNTER, steps=10, environment={"STEPS": "10", "STEP_SECONDS": "0.02", "SAVE_EVERY": "5"}),
    injections=(Injection(fault=Kill(), at=AtStep(step=7)),),
    expects=(Completes(), WithinRetries(attempts_max=2)),
    deadline_s=90.0,
)


class WhenItRuns:
    """Does something once, when the execution has begun."""

    def __init__(self, act: Callable[[str], None]) -> None:
        self._act, self._done = act, threading.Event()

    def waits(self, scenario: Scenario, why: str) -> None:
        pass

    def saw(self, scenario: Scenario, events: object) -> None:
        for event in events:  # type: ignore[attr-defined]
            if isinstance(event, ExecutionStarted) and not self._done.is_set():
                self._done.set()
                self._act(event.execution)


PASSING = [
    ("storage.objects.list", unavailable()),
    ("storage.objects.get", unavailable()),
    ("storage.objects.insert", unavailable()),
    ("google.cloud.run.v2.Executions/GetExecution", unavailable()),
    ("google.cloud.run.v2.Tasks/ListTasks", unavailable()),
    ("google.logging.v2.LoggingServiceV2/ListLogEntries", unavailable()),
    ("google.logging.v2.LoggingServiceV2/WriteLogEntries", unavailable()),
    ("google.cloud.run.v2.Jobs/CreateJob", unavailable()),
    ("google.cloud.run.v2.Jobs/RunJob", unavailable()),
    ("google.cloud.run.v2.Jobs/DeleteJob", unavailable()),
]


@pytest.mark.parametrize(("method", "error"), PASSING, ids=[method for method, _ in PASSING])
def test_a_service_that_fails_once_costs_nothing(run_it: RunIt, emulator: Emulator, method: str, error: ApiError):
    emulator.world.injections.add(InjectedFault(method=method, nth=1, error=error))

    run = run_it(SHORT)

    assert run.verdict.is_valid, run.explain()
    assert objects_left(emulator) == []
    assert jobs_left() == []


@pytest.mark.parametrize("method", ["google.cloud.run.v2.Jobs/RunJob", "google.cloud.run.v2.Jobs/CreateJob"])
def test_an_answer_that_is_lost_begins_nothing_twice(run_it: RunIt, emulator: Emulator, method: str):
    emulator.world.injections.add(InjectedFault(method=method, nth=1, drop="after"))

    run = run_it(SHORT)

    assert run.verdict.is_valid, run.explain()
    assert [len([event for event in run.history.events if isinstance(event, ExecutionStarted)])] == [1]
    assert jobs_left() == []


REFUSED = ["google.cloud.run.v2.Jobs/CreateJob", "google.cloud.run.v2.Jobs/RunJob", "storage.objects.insert"]


@pytest.mark.parametrize("method", REFUSED)
def test_what_is_refused_is_a_clear_error_and_nothing_is_left(run_it: RunIt, emulator: Emulator, method: str):
    denied = permission_denied("some.permission.needed", "the resource")
    emulator.world.injections.add(InjectedFault(method=method, error=denied))

    with pytest.raises(HarnessError, match=r"some\.permission\.needed"):
        run_it(SHORT)

    assert objects_left(emulator) == []
    assert jobs_left() == []


def test_an_execution_that_somebody_else_cancels_and_deletes_is_never_valid_and_nothing_is_left(run_it: RunIt, emulator: Emulator):
    def take_away(execution: str) -> None:
        clients = connect(PROJECT, os.environ, Secrets())
        for name in jobs_left():
            clients.executions.cancel_execution(name=f"{name}/executions/{execution}").result(timeout=60)
            clients.jobs.delete_job(name=name).result(timeout=60)
        clients.close()

    slow = replace(SHORT, workload=replace(SHORT.workload, environment={**SHORT.workload.environment, "STEP_SECONDS": "1"}))
    try:
        run = run_it(slow, progress=WhenItRuns(take_away))
    except BrokenHarnessError as error:
        assert "deleted" in str(error)  # noqa: PT017  either is right: what was seen first decides
    else:
        assert not run.verdict.is_valid

    assert objects_left(emulator) == []
    assert jobs_left() == []


def test_the_log_of_an_execution_can_be_read_afterwards(run_it: RunIt):
    run = run_it(SHORT)
    started = next(event for event in run.history.events if isinstance(event, ExecutionStarted))

    entries = [read_entry(entry) for entry in live_entries(project=PROJECT, execution=started.execution)]

    told = sorted(event.text for event in run.history.events if isinstance(event, LogLine) and event.stream == "stdout")
    assert sorted(entry.text for entry in entries if entry is not None and entry.stream == "stdout") == told
    assert run.verdict.outcome is Outcome.VALID


GUIDES_LINES = LogOrder(patterns=(r"^Received SIGTERM", r"^Saving checkpoint", r"^Container instance preemption", r"^Resuming from"))

MAINTAINED = replace(
    SHORT,
    name="maintenance-of-a-short-job",
    injections=(Injection(fault=Maintenance(), at=AtStep(step=7)),),
    expects=(Completes(), WithinRetries(attempts_max=2), GUIDES_LINES),
)


@pytest.mark.parametrize(
    "disturbance",
    [
        Disturbance(late_s=0.1, late_max_s=1.5, seed=3),
        Disturbance(copies=3),
        Disturbance(padded_bytes=200_000, filter='textPayload:"Saving"'),
    ],
    ids=["late and out of order", "three times", "very long"],
)
def test_a_log_that_comes_late_twice_or_long_is_read_all_the_same(run_it: RunIt, emulator: Emulator, disturbance: Disturbance):
    emulator.log.disturb(disturbance)

    run = run_it(MAINTAINED)

    assert run.verdict.is_valid, run.explain()
    texts = [event.text for event in run.history.events if isinstance(event, LogLine) and event.stream == "stdout"]
    assert len([text for text in texts if text.startswith("Received SIGTERM")]) == 1


def test_the_platforms_lines_that_never_come_are_told_and_nothing_is_claimed_from_their_absence(run_it: RunIt, emulator: Emulator):
    emulator.log.disturb(Disturbance(copies=0, filter='textPayload:"Container"'))

    run = run_it(MAINTAINED)

    assert run.verdict.outcome is Outcome.UNKNOWN, run.explain()
    lost = [event.what for event in run.history.events if isinstance(event, ObservationLost)]
    assert [what for what in lost if what != "moments"] == ["logs"]  # its grace stood still until it was let go from the fault
