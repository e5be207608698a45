"""Binding a scenario to a target: everything that can be refused is refused here, before anything starts."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.capabilities import ImageHost, Launch, LaunchChecking, MemoryLimiter, QueueHost, ScenarioChecking, Target
from harness.errors import CapabilityMissingError
from harness.faults import missing_capability, missing_for_trigger
from harness.scenario import Injection, Scenario, Workload, injection_name, kind_of
from harness.scenario.faults import FailWrites, SlowWrites
from harness.scenario.triggers import AtMarker, AtOperation, AtStep
from harness.store import RunDirectory

PRIVATE_PREFIXES = ("HARNESS_", "CLOUD_RUN_")
"""Variables of the caller that a job must not inherit: they would make it believe that it is another job, or part of another run."""


def refuse_missing_capabilities(scenario: Scenario, target: Target) -> None:
    """Refuse a scenario whose faults the target cannot cause, or not at their moments.

    Raises:
        CapabilityMissingError: Naming the first such fault.
    """
    for index, injection in enumerate(scenario.injections):
        missing, reason = _missing(injection, target)
        if missing:
            needs = f"{missing} for {injection_name(scenario.injections, index)}"
            raise CapabilityMissingError(scenario=scenario.name, target=target.name, needs=needs, reason=reason)
    for needs, problem in _platform_problems(scenario, target).items():
        raise CapabilityMissingError(scenario=scenario.name, target=target.name, needs=needs, reason=problem)


def _missing(injection: Injection, target: Target) -> tuple[str, str]:
    """What the target lacks for an injection, and which part of it needs that; two times nothing when it lacks nothing."""
    for_fault = missing_capability(injection.fault, target)
    if for_fault:
        return for_fault, kind_of(injection.fault)
    for_moment = missing_for_trigger(injection.at, target)
    return for_moment, AT_OPERATION if for_moment else ""


AT_OPERATION = "at-operation; the nearest moment is a marker, at-marker"
"""The one moment that asks something of a target, and what every target has instead."""


def refuse_unlaunchable(scenario: Scenario, target: Target, *, root: Path, seed: int) -> None:
    """Refuse what the target can tell to be wrong from what is written; no directory is made for it, and nobody is waited for.

    Raises:
        UsageError: As the target says.
        TargetUnavailableError: Likewise.
    """
    if not isinstance(target, LaunchChecking | ScenarioChecking):
        return
    launch = launch_of(scenario, RunDirectory(root), target=target, run_id="", root=root, seed=seed, epoch_s=0.0)
    if isinstance(target, LaunchChecking):
        target.check_launch(launch)
    if isinstance(target, ScenarioChecking):
        target.check_scenario(scenario, launch)


def _platform_problems(scenario: Scenario, target: Target) -> dict[str, str]:
    """Fields of the platform that the target cannot play, as what they need, each with the reason."""
    platform, problems = scenario.platform, {}
    if platform.memory_mib:
        reason = target.memory_problem() if isinstance(target, MemoryLimiter) else "it has no memory limit"
        problems[f"MemoryLimiter for platform.memory_mib = {platform.memory_mib}"] = reason
    if platform.parallelism and isinstance(target, QueueHost):
        needs = f"a platform without a queue for platform.parallelism = {platform.parallelism}"
        problems[needs] = "how many tasks run at once is decided by its queue and quota; take the field away"
    return {needs: reason for needs, reason in problems.items() if reason}


CLUSTER_TAG = "cluster"
"""Marks scenarios whose promises speak of queues, nodes and pods."""


def belongs_to(scenario: Scenario, target: Target) -> bool:
    """Whether a scenario is run on a target without being named: those of clusters on a cluster, the others elsewhere.

    And only where the target offers what its faults need; one that is named is refused there, with the reason.
    """
    if (CLUSTER_TAG in scenario.tags) != isinstance(target, QueueHost):
        return False
    return not _platform_problems(scenario, target) and not any(_missing(found, target)[0] for found in scenario.injections)


def fill(text: str, *, checkpoint_dir: Path | str, seed: int, python: str = sys.executable) -> str:
    """Replace the placeholders of a command, a variable or a path."""
    return text.replace("{python}", python).replace("{checkpoint_dir}", str(checkpoint_dir)).replace("{seed}", str(seed))


def launch_of(scenario: Scenario, directory: RunDirectory, *, target: Target, run_id: str, root: Path, seed: int, epoch_s: float) -> Launch:
    """What the target needs to run the scenario's workload in a run directory.

    In a container a job has the variables of the image and its own, elsewhere the caller's and its own.
    """
    workload, platform = scenario.workload, scenario.platform
    checkpoint_dir = directory.checkpoints.resolve()

    def filled(text: str) -> str:
        if isinstance(target, ImageHost):
            return fill(text, checkpoint_dir=target.mounted_at(checkpoint_dir), seed=seed, python=target.interpreter())
        return fill(text, checkpoint_dir=checkpoint_dir, seed=seed)

    surroundings = {} if isinstance(target, ImageHost) else inherited(os.environ)
    return Launch(
        run_id=run_id,
        job=workload.name,
        command=tuple(filled(part) for part in workload.command),
        directory=(root / workload.directory).resolve(),
        environment=surroundings | {name: filled(value) for name, value in workload.environment.items()},
        checkpoint_dir=checkpoint_dir,
        logs_dir=directory.logs.resolve(),
        tasks=platform.tasks,
        parallelism=platform.parallelism,
        max_retries=platform.max_retries,
        timeout_s=platform.timeout_s,
        grace_s=platform.grace_s,
        armed=armed_events(scenario) if workload.speaks_protocol else (),
        stops=tuple(dict.fromkeys(injection.at for injection in scenario.injections if isinstance(injection.at, AtOperation))),
        interpose_storage=any(isinstance(injection.fault, FailWrites | SlowWrites) for injection in scenario.injections),
        epoch_s=epoch_s,
        seed=seed,
        log_patterns=_log_patterns(workload),
        steps=workload.steps,
        checkpoints=workload.checkpoints,
        ranks=workload.ranks,
        cluster=scenario.cluster,
        root=root.resolve(),
        image=workload.image,
        memory_mib=platform.memory_mib,
        journal=directory.undo_path.resolve(),
    )


def armed_events(scenario: Scenario) -> tuple[str, ...]:
    """The events at which the job shall ask the barrier, for the triggers that name one."""
    armed: set[str] = set()
    for injection in scenario.injections:
        if isinstance(injection.at, AtStep):
            armed.add("step:after")
        elif isinstance(injection.at, AtMarker):
            armed.add(f"{injection.at.event}:{injection.at.when}")
    return tuple(sorted(armed))


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """What of the caller's variables its processes may see."""
    return {name: value for name, value in environment.items() if not name.startswith(PRIVATE_PREFIXES)}


def _log_patterns(workload: Workload) -> dict[str, str]:
    logs = workload.outside.logs
    patterns = {"step": logs.step, "saved": logs.saved, "resumed": logs.resumed, "sigterm": logs.sigterm, "done": logs.done}
    return {kind: pattern for kind, pattern in patterns.items() if pattern}
