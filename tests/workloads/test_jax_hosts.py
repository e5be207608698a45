"""The job of several hosts, each a process of its own as in its own pod: in step with each other, lost together, resumed bit for bit."""

import os
import signal
import socket
from collections.abc import Iterator

import pytest

from tests.workloads.job_process import Attempt, Job

STEPS = 20
SAVE_EVERY = 5
HEARTBEAT_S = 4
PEER_LOST, FENCED, TERMINATED = 69, 75, 143
ABORTED = -signal.SIGABRT
Hosts = tuple[Attempt, ...]


@pytest.fixture
def job() -> Iterator[Job]:
    with Job("workloads.jax_hosts.train", STEPS=STEPS, SAVE_EVERY=SAVE_EVERY, STEP_SECONDS=0.01, SEED=7) as job:
        yield job


@pytest.fixture(scope="module")
def uninterrupted() -> Iterator[Hosts]:
    with Job("workloads.jax_hosts.train", STEPS=STEPS, SAVE_EVERY=SAVE_EVERY, STEP_SECONDS=0.01, SEED=7) as job:
        hosts = start(job)
        assert finish(hosts) == (0, 0), hosts[0].log
        yield hosts


def start(job: Job, *, armed: str = "", count: int = 2, **environment: object) -> Hosts:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    places = {"JAX_COORDINATOR_ADDRESS": address, "JAX_PROCESS_COUNT": count, "HEARTBEAT_SECONDS": HEARTBEAT_S}
    return tuple(job.start(armed=armed, JAX_PROCESS_ID=number, **places, **environment) for number in range(count))


def hold(hosts: Hosts, *, step: int) -> None:
    """Let all hosts go on together, step by step, and hold each after ``step``."""
    for number in range(1, step + 1):
        for host in hosts:
            host.release()
        for host in hosts:
            host.reach("step", step=number)


def finish(hosts: Hosts) -> tuple[int, ...]:
    for host in hosts:
        host.release()
        host.barrier.close()
    return tuple(host.wait() for host in hosts)


def trace(*attempts: Attempt) -> dict[int, tuple[list[int], dict[str, str]]]:
    return {line["step"]: (line["batch_ids"], line["digests"]) for attempt in attempts for line in attempt.events("step")}


def assert_resumes_from(step: int, job: Job, broken: Hosts, uninterrupted: Hosts) -> None:
    resumed = start(job)

    assert finish(resumed) == (0, 0), resumed[0].log + resumed[1].log
    assert [host.restored_step for host in resumed] == [step, step]
    for number in range(2):
        assert trace(broken[number], resumed[number]) == trace(uninterrupted[number])


def test_hosts_share_each_batch_and_agree_on_the_state(uninterrupted: Hosts) -> None:
    first, second = map(trace, uninterrupted)

    assert list(first) == list(second) == list(range(1, STEPS + 1))
    assert [digests for _, digests in first.values()] == [digests for _, digests in second.values()]
    epoch = [sample for step in range(1, 9) for sample in first[step][0] + second[step][0]]
    assert sorted(epoch) == list(range(256))


def test_only_host_0_saves_and_every_host_is_done(uninterrupted: Hosts) -> None:
    first, second = uninterrupted

    assert first.steps("save.begin") == first.steps("save.end") == [5, 10, 15, 20]
    assert second.steps("save.begin") == []
    assert first.steps("done") == second.steps("done") == [STEPS]


def test_one_host_trains_alone(job: Job) -> None:
    alone = job.run()

    assert alone.process.returncode == 0, alone.log
    assert list(trace(alone)) == list(range(1, STEPS + 1))


@pytest.mark.parametrize("lost", [0, 1])
def test_the_death_of_one_host_ends_the_other_at_once_and_new_ones_resume(job: Job, uninterrupted: Hosts, lost: int) -> None:
    hosts = start(job, armed="step:after")
    hold(hosts, step=12)
    hosts[lost].kill()

    assert hosts[1 - lost].wait() in (PEER_LOST, ABORTED), hosts[1 - lost].log
    assert_resumes_from(10, job, hosts, uninterrupted)


def test_a_host_that_is_silent_is_given_up_after_the_heartbeat(job: Job, uninterrupted: Hosts) -> None:
    """As a host behind a cut network is; the coordinator's own silence is noticed likewise."""
    hosts = start(job, armed="step:after")
    hold(hosts, step=7)
    os.kill(hosts[1].process.pid, signal.SIGSTOP)

    assert hosts[0].wait() in (PEER_LOST, ABORTED), hosts[0].log
    hosts[1].kill()
    assert_resumes_from(5, job, hosts, uninterrupted)


@pytest.mark.parametrize("told", [(0, 1), (1,)], ids=["all", "one"])
def test_sigterm_is_one_save_of_one_step_by_all_hosts(job: Job, uninterrupted: Hosts, told: tuple[int, ...]) -> None:
    hosts = start(job, armed="step:after", STEP_SECONDS=0.3)
    hold(hosts, step=2)
    for number in told:
        hosts[number].terminate()

    assert finish(hosts) == (TERMINATED, TERMINATED), hosts[0].log
    assert list(trace(hosts[0])) == list(trace(hosts[1]))
    saved = hosts[0].steps("save.end")[-1]
    assert saved == max(trace(hosts[0])) < STEPS
    assert_resumes_from(saved, job, hosts, uninterrupted)


def test_sigterm_while_a_host_waits_for_the_others_ends_it_at_once(job: Job) -> None:
    alone = job.start(armed="boot:after", JAX_COORDINATOR_ADDRESS="127.0.0.1:9", JAX_PROCESS_ID=1, JAX_PROCESS_COUNT=2)
    alone.reach("boot")
    alone.terminate()

    assert alone.wait() == TERMINATED
    assert len(alone.events("sigterm")) == 1


def test_a_host_whose_coordinator_never_comes_gives_up(job: Job) -> None:
    alone = job.run(JAX_COORDINATOR_ADDRESS="127.0.0.1:9", JAX_PROCESS_ID=1, JAX_PROCESS_COUNT=2, START_SECONDS=2)

    assert alone.process.returncode in (PEER_LOST, ABORTED), alone.log


def test_an_older_incarnation_stops_at_its_next_save(job: Job) -> None:
    old = job.start(armed="step:after")
    old.reach("step", step=3)
    new = job.run()
    files = job.files()

    assert new.process.returncode == 0
    assert old.wait() == FENCED, old.log
    assert "owns" in old.log
    assert job.files() == files


def test_a_damaged_checkpoint_sends_all_hosts_back_to_the_older_one(job: Job, uninterrupted: Hosts) -> None:
    hosts = start(job, armed="step:after")
    hold(hosts, step=12)
    for host in hosts:
        host.kill()
    (job.checkpoints / "step_00000010" / "arrays.npz").write_bytes(b"")

    assert_resumes_from(5, job, hosts, uninterrupted)
