"""``harness gate``: the scenarios of a release, held against thresholds and against the last accepted result."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.catalogue import DEFAULT_CATALOGUE, choose, everywhere, load
from harness.cli.gate_conclusion import Said, accepted_place, conclude, require_acceptable
from harness.cli.gate_summary import Summary
from harness.cli.gate_surroundings import surroundings_of
from harness.cli.gating import Course, Gate, Ways
from harness.cli.options import Json, RunsDir
from harness.cli.project_options import ProjectOptions, entered, with_project_options
from harness.cli.project_plan import TARGET, AskedOfProject, Project, gpus_of, held, plan_or_apply
from harness.cli.running import require_target, require_writable
from harness.clock import SystemClock
from harness.emulator.address import EMULATOR_VARIABLE
from harness.errors import UsageError
from harness.gate.document import GATE_NAME, GateConfig, read_gate
from harness.gate.markdown import write_without_result
from harness.gate.result import read_accepted, read_measured
from harness.gate.standards import refuse_strangers
from harness.runner import belongs_to
from harness.scenario import Scenario
from harness.targets import create

USED_WITH_FROM = {"config", "target", "accepts", "source", "accepted", "summary", "as_json"}
"""What says how an older result is judged; the rest says how scenarios are run."""

PLANNED, PLAN_REFUSED = "a plan was made, and nothing was run", "the plan has problems, and nothing was run"

EMULATED = "-emulator"
"""After the name of a target, where an emulator plays the project: its figures say nothing of the project's."""


@with_project_options
def gate(
    context: typer.Context,
    options: ProjectOptions,
    config: Annotated[Path, typer.Option("--config", help="The gate: scenarios, thresholds, budget.")] = Path(GATE_NAME),
    target: Annotated[str, typer.Option(help="Where to run (default: local; with --from where the result was made).")] = "",
    accepts: Annotated[bool, typer.Option("--accept", help="Accept the result: later ones are compared with it.")] = False,
    source: Annotated[Path | None, typer.Option("--from", help="Run nothing: judge the gate.json of a gate that was run.")] = None,
    accepted: Annotated[Path | None, typer.Option("--accepted", help="The accepted result (default: as the gate says).")] = None,
    summary: Annotated[Path | None, typer.Option("--summary", help="Write the Markdown summary there too.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Scenarios at once.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Keep checkpoint directories of valid runs too.")] = False,
    runs_dir: RunsDir = Path("runs"),
    root: Annotated[
        Path | None, typer.Option("--root", help="What workloads' directories are relative to (default: where the scenarios' file is).")
    ] = None,
    as_json: Json = False,
) -> int:
    """Hold a release against thresholds and the last accepted result: 0 passes, 1 fails or is worse, 2 is unknown."""
    said = Said(path=config, accepted=accepted, accepts=accepts, summary=Summary(summary), as_json=as_json)
    with said.summary.kept():
        asked_for = read_gate(config)
        if source is not None:
            _require_idle(context)
            return _judge_again(said, asked_for, source, target=target)
        job_file = _job_file(said, asked_for)
        base = (root or (job_file or config).parent).resolve()
        ways = Ways(root=base, runs_dir=runs_dir.resolve(), keep=keep, jobs=jobs, as_json=as_json)
        return _run(context, said, asked_for, ways, asked=options.asked(context, config=job_file), target=target or "local")


def _require_idle(context: typer.Context) -> None:
    """Refuse options that say how something is run, where nothing is.

    Raises:
        UsageError: When there is one.
    """
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name)
        if name not in USED_WITH_FROM and given is not None and given.name == "COMMANDLINE":
            raise UsageError(f"--from runs nothing, and does nothing with {parameter.opts[0]}: leave one of them away")


def _run(context: typer.Context, said: Said, config: GateConfig, ways: Ways, *, asked: AskedOfProject, target: str) -> int:
    """Run a gate, or plan it."""
    is_emulated = target == TARGET and (asked.emulated or bool(os.environ.get(EMULATOR_VARIABLE)))
    place = target + EMULATED if is_emulated else target
    _require_apart(said, config, place, [asked.plan_file, *([asked.apply] if asked.apply is not None else [])])
    on_project = entered(context, target, asked)
    require_target(target)
    wanted = _gate(said, config, target=target, place=place, root=ways.root)
    require_acceptable(said, wanted)
    if on_project is not None:
        code = _plan_or_apply(on_project, wanted, ways)
        if code is not None:
            said.summary.write(write_without_result(PLANNED if code == 0 else PLAN_REFUSED))
            return code
    require_writable(ways.runs_dir)
    said.summary.begin()
    ways = replace(ways, gpus=gpus_of(on_project), surroundings=surroundings_of(on_project))
    with held(on_project, SystemClock(), ways.runs_dir):
        course = Course(wanted, ways, SystemClock())
        outcome = course.run()
    code = conclude(said, wanted, outcome, course.directory, broken=course.exit_code)
    if course.failure is not None:
        raise course.failure
    return code


def _job_file(said: Said, config: GateConfig) -> Path | None:
    """The ``harness.toml`` of a gate."""
    return said.path.parent / config.gate.config if config.gate.config else None


def _require_apart(said: Said, config: GateConfig, place: str, others: Sequence[Path]) -> None:
    """See ``harness.cli.gate_summary.Summary.require_apart``."""
    job_file = _job_file(said, config)
    said.summary.require_apart([said.path, accepted_place(said, config, place), *([job_file] if job_file is not None else []), *others])


def _gate(said: Said, config: GateConfig, *, target: str, place: str, root: Path) -> Gate:
    """The gate that is asked for, with its scenarios.

    Raises:
        UsageError: When there are none, something is said of others, or the accepted result that is named is not there.
    """
    table, directory, job_file = config.gate, said.path.parent, _job_file(said, config)
    known = load(catalogue=table.catalogue or DEFAULT_CATALOGUE, config=job_file, root=root)
    belongs = everywhere if job_file is not None else partial(belongs_to, target=create(target, SystemClock()))
    names = [str(directory / name) if name.endswith(".json") else name for name in table.scenarios]
    chosen = choose(known, names, everything=table.all, slow=table.slow, tags=table.tags, belongs=belongs)
    refuse_strangers(config, [scenario.name for scenario in chosen])
    path = accepted_place(said, config, place)
    accepted = read_accepted(path)
    if accepted is None and said.accepted is not None and not said.accepts:
        raise UsageError(f"the accepted result {path} is not there: name one that is, or accept this result there with --accept")
    return Gate(config=config, target=target, place=place, chosen=chosen, accepted=accepted)


def _plan_or_apply(project: Project, wanted: Gate, ways: Ways) -> int | None:
    """See ``harness.cli.project_plan.plan_or_apply``.

    Raises:
        UsageError: When there are several seeds: a plan is of one.
    """
    table = wanted.config.gate
    if len(table.seeds) > 1:
        raise UsageError(f"a plan is of one seed, and the gate has {len(table.seeds)}: give one in [gate], and repeats")
    chosen: list[Scenario] = list(wanted.chosen)
    return plan_or_apply(
        project,
        chosen,
        seed=table.seeds[0],
        clock=SystemClock(),
        as_json=ways.as_json,
        jobs=ways.jobs,
        repeats=table.repeats,
        root=ways.root,
    )


def _judge_again(said: Said, config: GateConfig, source: Path, *, target: str) -> int:
    """Judge a result that is there, by the thresholds and the accepted result as they are now."""
    measured = read_measured(source)
    if target and target not in (measured.target, measured.target.removesuffix(EMULATED)):
        raise UsageError(f"{source} is of target {measured.target}, and not of {target}; leave --target away")
    _require_apart(said, config, measured.target, [source])
    where = measured.target.removesuffix(EMULATED)
    wanted = _gate(said, config, target=where, place=measured.target, root=(_job_file(said, config) or said.path).parent.resolve())
    require_acceptable(said, wanted)
    return conclude(said, wanted, wanted.judge(wanted.read(measured)), None, broken=0)
