"""What only a container reveals: the same job started by a shell, and a job that wants more memory than it was granted."""

from collections.abc import Callable
from signal import SIGKILL

import pytest
from msgspec.structs import replace

from harness.capabilities import Target
from harness.clock import Clock
from harness.history import AttemptExited, LogLine
from harness.runner import Run
from harness.scenario import Injection, Platform, Scenario, Workload
from harness.scenario.expectations import Completes, GraceConduct, IntactCheckpoints, ResumesFromNewestDurable, WithinRetries
from harness.scenario.faults import Kill, Terminate
from harness.scenario.triggers import AtStep
from harness.targets import create
from harness.verdict import Outcome
from scenarios.jobs import LINEAR
from tests.contract.presence import skip_or_fail_without
from tests.detection.conftest import Play

SLOW = replace(LINEAR, environment={**LINEAR.environment, "STEP_SECONDS": "0.1"})  # so that the grace is over before the job is
IN_A_SHELL = replace(SLOW, name="linear-in-a-shell", command=("sh", "-c", "{python} -m workloads.linear.train; exit $?"))
BY_EXEC = replace(SLOW, name="linear-by-exec", command=("sh", "-c", "exec {python} -m workloads.linear.train"))
GREEDY = replace(LINEAR, name="linear-greedy", command=("{python}", "-m", "tests.detection.jobs.grows_without_bound"))

MEMORY_MIB = 160
"""The linear job takes a fifth of it; the greedy one has it after nine steps, when the first checkpoint is there."""


def scenario(name: str, workload: Workload, *injections: Injection, platform: Platform) -> Scenario:
    return Scenario(
        name=f"{workload.name}-{name}",
        why="what a process outside of a container does not show",
        workload=workload,
        platform=platform,
        injections=injections,
        expects=(
            Completes(),
            IntactCheckpoints(),
            ResumesFromNewestDurable(lost_steps_max=5),
            WithinRetries(attempts_max=2),
            GraceConduct(),
        )
        if any(isinstance(injection.fault, Terminate) for injection in injections)
        else (Completes(), IntactCheckpoints(), WithinRetries(attempts_max=2)),
        deadline_s=60.0,
    )


@pytest.fixture
def play_in_containers(play: Play) -> Callable[[Scenario], Run]:
    skip_or_fail_without("docker")

    def docker(clock: Clock) -> Target:
        return create("docker", clock)

    return lambda found: play(found, target=docker)


def outcomes(run: Run) -> dict[str, Outcome]:
    return {finding.checker: finding.outcome for finding in run.verdict.findings}


def ends(run: Run) -> list[tuple[int | None, str]]:
    return [(event.signal, event.cause) for event in run.history.events if isinstance(event, AttemptExited)]


TERMINATED = Injection(fault=Terminate(), at=AtStep(step=8))


def test_a_shell_as_entry_point_keeps_the_notice_from_the_job_and_is_caught(play_in_containers):
    run = play_in_containers(scenario("is-given-notice", IN_A_SHELL, TERMINATED, platform=Platform(grace_s=1.0)))

    assert outcomes(run)["grace-conduct"] is Outcome.INVALID, run.explain()
    assert outcomes(run)["landed"] is Outcome.VALID, run.explain()
    assert ends(run)[0] == (SIGKILL, "grace")


def test_a_shell_that_becomes_the_job_is_no_mistake(play_in_containers):
    run = play_in_containers(scenario("is-given-notice", BY_EXEC, TERMINATED, platform=Platform(grace_s=5.0)))

    assert run.verdict.is_valid, run.explain()


def test_a_job_that_wants_too_much_memory_fails_by_its_own_doing_and_not_by_ours(play_in_containers):
    run = play_in_containers(scenario("has-little-memory", GREEDY, platform=Platform(max_retries=1, memory_mib=MEMORY_MIB)))

    assert outcomes(run)["completes"] is Outcome.INVALID, run.explain()
    assert outcomes(run)["landed"] is Outcome.VALID, run.explain()
    assert set(ends(run)) == {(SIGKILL, "platform")}
    assert "Memory limit of 160 MiB exceeded" in run.explain()
    assert [line for line in run.history.events if isinstance(line, LogLine) and line.text.startswith("Memory limit of 160 MiB exceeded")]


def test_a_job_that_is_killed_by_us_within_its_memory_is_valid(play_in_containers):
    killed = Injection(fault=Kill(), at=AtStep(step=8))
    run = play_in_containers(scenario("has-enough-memory", LINEAR, killed, platform=Platform(memory_mib=MEMORY_MIB)))

    assert run.verdict.is_valid, run.explain()
    assert ends(run) == [(SIGKILL, "fault"), (None, "job")]
