"""Options of the target ``gcp``, as every command that runs something there has them."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.advised import cleaning_command, planning_command
from harness.cli.emulation import emulated_where_asked
from harness.cli.plan_display import OF_LIMITS, OF_PROJECTS, next_command
from harness.cli.project_plan import TARGET, AskedOfProject, Project, project_asked_for, told
from harness.environment import changed_environment
from harness.targets.gcp.advice import CLEANING_VARIABLE, PLANNING_VARIABLE

OfProject = Annotated[str, typer.Option("--project", help="gcp: ID of the project; no default is ever assumed.")]
OfRegion = Annotated[str, typer.Option("--region", help="gcp: region of Cloud Run.")]
OfBucket = Annotated[str, typer.Option("--bucket", help="gcp: bucket of checkpoints.")]
OfCluster = Annotated[str, typer.Option("--cluster", help="gcp: GKE cluster to adopt.")]
OfZone = Annotated[str, typer.Option("--zone", help="gcp: zone of the cluster.")]
OfJob = Annotated[str, typer.Option("--job", help="gcp: Cloud Run job to adopt, or to make of an image.")]
OfImage = Annotated[str, typer.Option("--image", help="gcp: image of the job that is made.")]
OfServiceAccount = Annotated[str, typer.Option("--service-account", help="gcp: of the job that is made.")]
OfGpus = Annotated[int, typer.Option("--gpus", min=0, help="gcp: of a task of the job that is made.")]
OfGpuType = Annotated[str, typer.Option("--gpu-type", help="gcp: of the job that is made, like nvidia-l4.")]
OfLockBucket = Annotated[str, typer.Option("--lock-bucket", help="gcp: bucket of the project's lock (default: that of checkpoints).")]

BlastRadius = Annotated[int | None, typer.Option("--blast-radius", min=1, help="gcp: tasks or nodes that one fault may hit.")]
GpuHours = Annotated[float | None, typer.Option("--gpu-hours", min=0, help="gcp: that all may cost at worst; TPU chips count as GPUs.")]
DurationS = Annotated[float | None, typer.Option("--duration-s", min=0, help="gcp: that all may take at worst, seconds.")]

Planned = Annotated[bool, typer.Option("--plan", help="gcp: say what would be touched, and change nothing (the default there).")]
Applied = Annotated[Path | None, typer.Option("--apply", help="gcp: run a plan, if it holds still.")]
PlanFile = Annotated[Path, typer.Option("--plan-file", help="gcp: where the plan is written.")]
ReadOnlyPlanner = Annotated[
    bool, typer.Option("--read-only-planner", help="gcp: plan as an account that may only read; --apply asks what another one may.")
]
Emulated = Annotated[bool, typer.Option("--emulator", help="With --target gcp: on an emulator that lives as long as the command.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectOptions:
    """What was said of a project, an option each."""

    emulator: Emulated = False
    plan: Planned = False
    apply: Applied = None
    plan_file: PlanFile = Path("plan.json")
    read_only_planner: ReadOnlyPlanner = False
    project: OfProject = ""
    region: OfRegion = ""
    bucket: OfBucket = ""
    job: OfJob = ""
    image: OfImage = ""
    service_account: OfServiceAccount = ""
    gpus: OfGpus = 0
    gpu_type: OfGpuType = ""
    cluster: OfCluster = ""
    zone: OfZone = ""
    lock_bucket: OfLockBucket = ""
    blast_radius: BlastRadius = None
    gpu_hours: GpuHours = None
    duration_s: DurationS = None

    def asked(self, context: typer.Context, *, config: Path | None) -> AskedOfProject:
        """What a command was told of a project, and the command that goes on from its plan."""
        return AskedOfProject(
            options={name: str(getattr(self, name) or "") for name in OF_PROJECTS},
            limits={name: getattr(self, name) for name in OF_LIMITS},
            config=config,
            plans=self.plan,
            apply=self.apply,
            plan_file=self.plan_file,
            then=next_command(context, plan_file=self.plan_file, emulated=self.emulator),
            emulated=self.emulator,
            read_only_planner=self.read_only_planner,
        )


def with_project_options(command: Callable[..., int]) -> Callable[..., int]:
    """The command with the options of a project after its own; its parameter ``options`` is what was said by them.

    Typer takes parameters one by one, so each option is a parameter of what it sees.
    """
    taken = inspect.signature(ProjectOptions).parameters
    own = inspect.signature(command)

    @functools.wraps(command)
    def collect(**values: Any) -> int:
        options = ProjectOptions(**{name: values.pop(name) for name in taken})
        return command(options=options, **values)

    shown = [*(parameter for name, parameter in own.parameters.items() if name != "options"), *taken.values()]
    collect.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    collect.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
    return collect


def entered(context: typer.Context, target: str, asked: AskedOfProject) -> Project | None:
    """The project, for as long as the command lasts: with its emulator, where one is asked for, and in the environment of what makes runs.

    Raises:
        UsageError: When none is named, or what is said is of another target.
    """
    context.with_resource(emulated_where_asked(target, is_asked=asked.emulated))
    if target == TARGET:
        context.with_resource(changed_environment({PLANNING_VARIABLE: planning_command(context, asked)}))
    project = None if asked.emulated and asked.is_nothing else project_asked_for(target, asked)
    if project is not None:
        context.with_resource(changed_environment({CLEANING_VARIABLE: cleaning_command(context, project)}))
    context.with_resource(told(project))
    return project
