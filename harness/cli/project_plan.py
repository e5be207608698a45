"""``harness run --target gcp``: a plan first, which changes nothing; then, from the plan alone, the runs."""

import contextlib
import hashlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from harness.cli.exits import EXIT_USAGE
from harness.cli.owed import owed_on
from harness.cli.plan_display import show
from harness.clock import Clock
from harness.config import GcpTable, read_gcp
from harness.environment import changed_environment
from harness.errors import UsageError
from harness.history import read_document
from harness.runner.golden import golden_scenario, is_needed
from harness.scenario import Scenario
from harness.undo import identify

if TYPE_CHECKING:
    from harness.targets.gcp.place import Place
    from harness.targets.gcp.plan import Limits, Plan, Quota
    from harness.targets.gcp.planning import Accelerators
    from harness.targets.gcp.secrets import Secrets

TARGET = "gcp"

GOLDEN_RUNS = 2
"""Uninterrupted runs that one is compared with, where they were not made before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfProject:
    """What the command line says of a project.

    Attributes:
        options: ``--project`` and the like, by the names of ``[gcp]``; empty: not given.
        limits: ``--blast-radius`` and the like; None: not given.
        config: A ``harness.toml`` with ``[gcp]``.
        plans: Whether ``--plan`` was given.
        apply: The plan to apply.
        plan_file: Where a plan is written.
        then: The command that goes on from it.
        emulated: Whether all of it is on an emulator that ends with the command.
        read_only_planner: Whether the account that plans may only read, and another one will apply.
    """

    options: Mapping[str, str]
    limits: Mapping[str, float | None]
    config: Path | None
    plans: bool
    apply: Path | None
    plan_file: Path
    then: str = ""
    emulated: bool = False
    read_only_planner: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether nothing of a project was said."""
        said = any(self.options.values()) or any(value is not None for value in self.limits.values())
        return not said and not self.plans and not self.read_only_planner and self.apply is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Where runs shall happen, within which limits, and the plan that is applied, if one is."""

    place: "Place"
    limits: "Limits"
    applied: "Plan | None"
    asked: AskedOfProject

    def environment(self) -> dict[str, str]:
        """What the processes that make the runs are told: the place, and the plan that is applied."""
        from harness.targets.gcp.applied import PLAN_VARIABLE

        plan = str(self.asked.apply.resolve()) if self.asked.apply is not None else ""
        return {**self.place.environment(), PLAN_VARIABLE: plan}


@contextlib.contextmanager
def told(project: Project | None) -> Iterator[None]:
    """Have the place and the plan in the environment of this process, for the processes that make the runs."""
    with changed_environment(project.environment() if project is not None else {}):
        yield


def project_asked_for(target: str, asked: AskedOfProject) -> Project | None:
    """The project, for the target ``gcp``.

    Raises:
        UsageError: When no project is named, or one is and the target is another.
        HarnessError: When a plan is to be applied that cannot be read.
    """
    if target != TARGET:
        if not asked.is_nothing:
            raise UsageError(f"a project, limits and plans are of the target {TARGET}, and the target is {target}; add --target {TARGET}")
        return None
    if asked.plans and asked.apply is not None:
        raise UsageError("--plan makes a plan, and --apply applies one: give one of them")
    if asked.read_only_planner and asked.apply is not None:
        raise UsageError("--read-only-planner is of a plan that is made, and --apply asks for every permission; leave it away")
    if asked.emulated and asked.apply is not None:
        raise UsageError(
            "--emulator has a new emulator for each command, where nothing of a plan holds; leave --apply away, or have one emulator for "
            "several commands: harness emulate -- COMMAND"
        )
    from harness.targets.gcp.place import resolve_place
    from harness.targets.gcp.plan import read_plan

    applied = read_plan(asked.apply) if asked.apply is not None else None
    table = read_gcp(asked.config) if asked.config is not None else GcpTable()
    options = asked.options
    if applied is not None:  # it names its place in full; whatever else was said must say the same
        said = {name: value for name, value in applied.place.named().items() if not _is_said(name, asked.options, table)}
        options = {**said, **{name: value for name, value in asked.options.items() if value}}
    place = resolve_place(options, os.environ, table)
    return Project(place=place, limits=_limits(asked, table), applied=applied, asked=asked)


def planned_names(project: Project | None, names: Sequence[str]) -> list[str]:
    """The scenarios that were named, or those of the plan that is applied."""
    if names or project is None or project.applied is None:
        return list(names)
    return [scenario.name for scenario in project.applied.scenarios]


def gpus_of(project: Project | None) -> Mapping[str, int]:
    """GPUs that a run of each scenario may hold at once, as the plan that is applied says."""
    if project is None or project.applied is None:
        return {}
    return {scenario.name: scenario.exposure.gpus * scenario.exposure.tasks for scenario in project.applied.scenarios}


def plan_or_apply(
    project: Project,
    chosen: Sequence[Scenario],
    *,
    seed: int,
    clock: Clock,
    as_json: bool,
    jobs: int = 1,
    repeats: int = 1,
    root: Path = Path(),
) -> int | None:
    """Make a plan, write it and show it, and return the exit code; or see that the one to apply holds, and return None: go on.

    ``root`` is what manifests are relative to.

    Raises:
        UsageError: When the plan does not hold.
        HarnessError: When the project cannot be asked.
    """
    from harness.targets.gcp.applying import require_fitting, require_holding
    from harness.targets.gcp.plan import digest_of, write_plan

    if project.applied is not None:
        digests = {scenario.name: digest_of(scenario, seed) for scenario in chosen}
        require_fitting(project.applied, place=project.place, digests=digests, clock=clock, jobs=jobs)
        found = _made(project, chosen, seed=seed, clock=clock, jobs=project.applied.jobs, repeats=repeats, root=root)
        require_holding(project.applied, found, project.limits)
        return None
    plan = _made(project, chosen, seed=seed, clock=clock, jobs=jobs, repeats=repeats, root=root)
    write_plan(plan, project.asked.plan_file)
    if as_json:
        typer.echo(project.asked.plan_file.read_text(encoding="utf-8").rstrip())
    else:
        then = _secrets().redact(project.asked.then)  # somebody may have typed a credential, and a terminal's output is kept in logs
        show(plan, Console(), path=project.asked.plan_file, then=then, emulated=project.asked.emulated)
    return EXIT_USAGE if plan.problems else 0


@contextlib.contextmanager
def held(project: Project | None, clock: Clock, runs_dir: Path) -> Iterator[None]:
    """Have the project while its runs last, and longer where they owe it something then, which is told; nothing where there is none.

    Raises:
        TargetUnavailableError: When somebody else has it.
    """
    if project is None:
        yield
        return
    from harness.targets.gcp.connection import EMULATOR_VARIABLE
    from harness.targets.gcp.project_holding import project_held

    place, emulator, myself = project.place, os.environ.get(EMULATOR_VARIABLE, ""), identify([os.getpid()])[0]

    def keeps() -> bool:
        owed = owed_on(place.project, emulator, runs_dir, clock, is_asked=lambda owner: myself in (owner.process, owner.overseer))
        for line in owed:
            typer.echo(f"the lock of project {place.project} is kept: {line}", err=True)
        return bool(owed)

    with project_held(place, clock, keeps=keeps):
        yield


def _is_said(name: str, options: Mapping[str, str], table: GcpTable) -> bool:
    return bool(options.get(name) or os.environ.get(f"HARNESS_GCP_{name.upper()}") or getattr(table, name, ""))


def _limits(asked: AskedOfProject, table: GcpTable) -> "Limits":
    from harness.targets.gcp.plan import Limits

    said = {name: value for name, value in asked.limits.items() if value is not None}
    for name, value in said.items():
        if not math.isfinite(value):
            raise UsageError(f"--{name.replace('_', '-')} {value}: a finite number is needed, for a limit is what a plan must stay within")
    of = {"blast_radius": table.limits.blast_radius, "gpu_hours": table.limits.gpu_hours, "duration_s": table.limits.duration_s} | said
    return Limits(blast_radius=int(of["blast_radius"]), gpu_hours=of["gpu_hours"], duration_s=of["duration_s"])


def _secrets() -> "Secrets":
    from harness.targets.gcp.secrets import Secrets

    return Secrets.of(os.environ)


def _accelerators(place: "Place", scenario: Scenario, root: Path) -> "Accelerators":
    from harness.targets.gcp.planning import UNREAD

    if not place.is_of_cluster:
        return UNREAD  # what a Cloud Run job has is its own
    from harness.targets.gke.accelerators import accelerators_of

    return accelerators_of(scenario, root)


def _files(place: "Place", scenario: Scenario, root: Path) -> dict[str, str]:
    """The manifests that a scenario names, with digests of what they hold; of one that cannot be read none."""
    digests: dict[str, str] = {}
    for name in (scenario.cluster.manifest, scenario.cluster.queues):
        if name and place.is_of_cluster:
            with contextlib.suppress(OSError):  # whoever reads what it says tells why
                digests[name] = hashlib.sha256(read_document(root / name)).hexdigest()
    return digests


def _made(project: Project, chosen: Sequence[Scenario], *, seed: int, clock: Clock, jobs: int, repeats: int, root: Path) -> "Plan":
    from harness.targets.gcp.calling import Caller
    from harness.targets.gcp.connection import connect
    from harness.targets.gcp.planning import Wanted, gpus_needed, make_plan
    from harness.targets.gcp.quotas import fetch_from, gpu_quotas, unread_quotas
    from harness.targets.gcp.resolving import Resolver

    secrets = _secrets()
    compared = {scenario.name: golden_scenario(scenario) if is_needed(scenario.expects) else None for scenario in chosen}
    wanted = [
        Wanted(
            scenario=scenario,
            seed=seed,
            executions=repeats + (GOLDEN_RUNS if golden is not None else 0),
            uninterrupted=golden,
            accelerators=_accelerators(project.place, scenario, root),
            files=_files(project.place, scenario, root),
        )
        for scenario in chosen
        for golden in (compared[scenario.name],)
    ]
    with closing(connect(project.place.project, os.environ, secrets)) as clients:
        caller = Caller(clock=clock, secrets=secrets, renew=clients.renew, problem=clients.problem)
        resolved = Resolver(clients, caller, project.place).resolve()
        needed = gpus_needed(wanted, project.place, resolved.job, jobs)
        if project.place.is_of_cluster:
            quotas: tuple[Quota, ...] = ()  # Kueue's, of the cluster: whoever lacks it waits
        elif clients.is_emulator:
            quotas = unread_quotas(project.place, needed, "an emulator tells no quota")
        else:
            gpu_type = resolved.job.gpu_type if resolved.job is not None else project.place.gpu_type
            quotas = gpu_quotas(caller, project.place, fetch_from(clients, project.place), gpu_type=gpu_type, needed=needed)
    return make_plan(
        wanted,
        project.place,
        replace(resolved, quotas=quotas),
        project.limits,
        clock=clock,
        secrets=secrets,
        jobs=jobs,
        read_only_planner=project.asked.read_only_planner,
    )
