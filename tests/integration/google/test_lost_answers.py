"""Connections that break while something is made: it is made once, whether the request or its answer was lost."""

import random
from contextlib import closing
from pathlib import Path

import pytest
from google.cloud import run_v2

from harness.clock import SystemClock
from harness.emulator import Emulator, InjectedFault
from harness.emulator.failures import deadline_exceeded, quota_exceeded, unavailable
from harness.targets.gcp.bucket import BucketPrefix
from harness.targets.gcp.calling import Caller, RetryPolicy
from harness.targets.gcp.connection import connect
from harness.targets.gcp.failures import CallError, QuotaExceededError, ResourceExistsError
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.submission import Jobs

PARENT = "projects/our-project/locations/europe-west4"
NAME = f"{PARENT}/jobs/train"
RUN = "google.cloud.run.v2.Jobs/RunJob"
CREATE = "google.cloud.run.v2.Jobs/CreateJob"
LIST = "google.cloud.run.v2.Executions/ListExecutions"
JOB = run_v2.Job(
    template=run_v2.ExecutionTemplate(template=run_v2.TaskTemplate(containers=[run_v2.Container(image="job", command=["sleep", "60"])]))
)


@pytest.fixture
def emulator(tmp_path: Path):
    with Emulator(tmp_path, projects=["our-project"], buckets=["our-bucket"]) as running:
        yield running


@pytest.fixture
def clients(emulator: Emulator):
    with closing(connect("our-project", emulator.endpoints.environment(), Secrets())) as found:
        yield found


@pytest.fixture
def caller() -> Caller:
    return Caller(
        clock=SystemClock(), chance=random.Random(1), policy=RetryPolicy(first_s=0.01, longest_s=0.05, settle_s=0.2, attempts_max=3)
    )


@pytest.fixture
def jobs(clients, caller) -> Jobs:
    return Jobs(clients, caller)


LOSSES = {
    "request": {"drop": "before"},
    "answer": {"drop": "after"},
    "refused": {"error": unavailable()},
    "late": {"error": deadline_exceeded()},
}


@pytest.mark.parametrize("loss", LOSSES)
def test_one_execution_is_begun_and_no_second_one(emulator, clients, jobs, loss):
    jobs.create(JOB, NAME)
    emulator.world.injections.add(InjectedFault(method=RUN, nth=1, **LOSSES[loss]))
    running = jobs.run(NAME)
    assert [execution.name.rpartition("/")[2] for execution in clients.executions.list_executions(parent=NAME)] == [
        running.name.rpartition("/")[2]
    ]


def test_where_it_cannot_be_looked_for_none_is_begun_a_second_time(emulator, clients, jobs):
    jobs.create(JOB, NAME)
    emulator.world.injections.add(InjectedFault(method=RUN, drop="after", times=0))
    emulator.world.injections.add(InjectedFault(method=LIST, error=unavailable(), times=0))
    with pytest.raises(CallError, match="may have done it") as caught:
        jobs.run(NAME)
    assert caught.value.may_be_done
    emulator.world.injections.clear()
    assert len(list(clients.executions.list_executions(parent=NAME))) == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_a_job_is_made_once_and_there(emulator, clients, jobs, loss):
    emulator.world.injections.add(InjectedFault(method=CREATE, nth=1, **LOSSES[loss]))
    jobs.create(JOB, NAME)
    assert clients.jobs.get_job(name=NAME).generation == 1


def test_a_job_that_was_there_before_is_not_taken_for_ours(clients, jobs):
    jobs.create(JOB, NAME)
    with pytest.raises(ResourceExistsError):
        jobs.create(JOB, NAME)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_object_is_written_once_under_its_precondition(emulator, clients, caller, loss):
    below = BucketPrefix(clients.storage, caller, bucket="our-bucket", prefix="harness/ab12/")
    emulator.world.injections.add(InjectedFault(method="storage.objects.insert", nth=1, **LOSSES[loss]))
    generation = below.write("orders/00001.json", b"{}", generation=0)
    assert below.read("orders/00001.json", generation=generation) == b"{}"


def test_a_quota_that_is_used_up_is_not_asked_for_again(emulator, jobs):
    jobs.create(JOB, NAME)
    error = quota_exceeded("NVIDIA_L4_GPUS", limit=1.0, place="europe-west4", service="run.googleapis.com")
    emulator.world.injections.add(InjectedFault(method=RUN, error=error, times=0))
    before = len(emulator.world.calls.all())
    with pytest.raises(QuotaExceededError, match="waiting does not help"):
        jobs.run(NAME)
    assert len(emulator.world.calls.all()) == before + 1
