"""``harness.toml``: a job of one's own, tested without a line of Python and without touching it.

The file says how the job is started and what can be seen of it; from that the standard scenarios are derived, as strong as what can be seen
allows: with a pattern for steps, kills come at steps; with one for saves, right after a save; with neither, after seconds.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.errors import InvalidDocumentError
from harness.scenario import Expectation, Injection, Layout, LogPatterns, Outside, Platform, Scenario, Trigger, Workload, convert, read_toml
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExitCodes,
    GraceConduct,
    IntactCheckpoints,
    MakesProgress,
    NoHang,
    ResumesFromNewestDurable,
    SameResult,
    WithinRetries,
)
from harness.scenario.faults import Fault, Kill, Terminate
from harness.scenario.refusals import refused_value
from harness.scenario.rules import RefusedValueError, positive, require
from harness.scenario.triggers import AfterSeconds, AtStep, OnLog

CONFIG_NAME = "harness.toml"


class JobTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[workload]``: how the job is started and read; what is not said here is as in ``harness.scenario.Workload`` and ``Outside``.

    Attributes:
        steps: The number of the final step as the job itself counts: 59 where its 60 steps are numbered from 0. 0 when unknown; then only
            ``done`` or the result tells completion.
        directory: Where the command runs; relative to the file.
    """

    name: str
    command: tuple[str, ...]
    steps: int = 0
    save_every: int = 0
    environment: dict[str, str] = {}
    layout: Layout = "files"
    checkpoints: str = "."
    speaks_protocol: bool = False
    ranks: int = 1
    sources: tuple[str, ...] = ()
    directory: str = "."
    logs: LogPatterns = LogPatterns()
    inspect: tuple[str, ...] = ()
    inspect_timeout_s: float = 60.0
    recovery_timeout_s: float = 0.0
    result: str = ""


class PromisesTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[promises]``: what the job claims.

    Attributes:
        lost_steps_max: Steps a kill may cost; -1: ``save_every`` of the workload, and nothing is promised where that is unknown.
        saves_on_sigterm: Whether SIGTERM is answered with a final save within the grace.
        exit_after_sigterm: The exit codes that are right then.
        quiet_s: Seconds without a word after which the job counts as hung; 0: it may be silent.
    """

    lost_steps_max: int = -1
    saves_on_sigterm: bool = False
    exit_after_sigterm: tuple[int, ...] = (143,)
    quiet_s: float = 0.0

    def __post_init__(self) -> None:
        require(self.lost_steps_max >= -1, "lost_steps_max", self.lost_steps_max, "a number of steps >= 0, or -1 for save_every")
        positive("quiet_s", self.quiet_s, zero_allowed=True)


class ChaosTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[chaos]``: when the standard scenarios strike.

    Attributes:
        deadline_s: Seconds a run may take from the start of the execution.
        at_steps: Steps at which to strike, the first and the last of them; empty: at two fifths and at seven tenths of the steps.
        after_s: Seconds after an attempt's start, for a job whose log tells neither steps nor saves.
    """

    deadline_s: float = 300.0
    at_steps: tuple[int, ...] = ()
    after_s: float = 5.0

    def __post_init__(self) -> None:
        positive("deadline_s", self.deadline_s)
        positive("after_s", self.after_s)
        require(all(step >= 1 for step in self.at_steps), "at_steps", self.at_steps, "steps are counted from 1")
        require(len(set(self.at_steps)) != 1, "at_steps", self.at_steps, "two different steps: the second kill comes later than the first")


class DockerTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[target.docker]``: how the job runs in containers.

    Attributes:
        image: What they are made of: an image that the engine has, with the job's interpreter and packages; empty: the harness's own.
    """

    image: str = ""


class TargetTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[target]``: what only some targets need to know."""

    docker: DockerTable = DockerTable()


class GcpLimitsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[gcp.limits]``: what a plan must stay within to be applied.

    Attributes:
        blast_radius: Tasks or nodes that one fault hits.
        gpu_hours: Of all runs of the plan, at worst.
        duration_s: From the start of the first run to the end of the last one, at worst.
    """

    blast_radius: int = 1
    gpu_hours: float = 1.0
    duration_s: float = 3600.0

    def __post_init__(self) -> None:
        require(self.blast_radius >= 1, "blast_radius", self.blast_radius, "a number of tasks or nodes >= 1")
        positive("gpu_hours", self.gpu_hours, zero_allowed=True)
        positive("duration_s", self.duration_s)


class GcpTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[gcp]``: where on Google Cloud the job runs; options and ``HARNESS_GCP_*`` say the same, and come first. Nothing has a default.

    Attributes:
        project: ID of the project.
        region: Of Cloud Run.
        bucket: Where checkpoints and orders lie.
        job: The Cloud Run job to adopt, or to make when there is an ``image``.
        image: Of the job that is made.
        service_account: Of the job that is made.
        gpus: Of one task of the job that is made.
        gpu_type: Of the job that is made, like ``nvidia-l4``.
        cluster: A GKE cluster to adopt.
        zone: Of the cluster.
        lock_bucket: Where the lock of the project lies, for all who use it; empty: in ``bucket``.
        limits: What a plan must stay within.
    """

    project: str = ""
    region: str = ""
    bucket: str = ""
    job: str = ""
    image: str = ""
    service_account: str = ""
    gpus: int = 0
    gpu_type: str = ""
    cluster: str = ""
    zone: str = ""
    lock_bucket: str = ""
    limits: GcpLimitsTable = GcpLimitsTable()

    def __post_init__(self) -> None:
        require(self.gpus >= 0, "gpus", self.gpus, "a number >= 0")


class ScenarioTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[[scenarios]]``: one more scenario on the same workload, with the fields of ``harness.scenario.Scenario``.

    Attributes:
        deadline_s: Seconds a run may take from the start of the execution; 0: as ``[chaos]`` says.
    """

    name: str
    why: str
    expects: tuple[Expectation, ...]
    injections: tuple[Injection, ...] = ()
    within_budget: bool = True
    deadline_s: float = 0.0
    tags: tuple[str, ...] = ()


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole ``harness.toml``."""

    workload: JobTable
    platform: Platform = Platform()
    promises: PromisesTable = PromisesTable()
    chaos: ChaosTable = ChaosTable()
    target: TargetTable = TargetTable()
    gcp: GcpTable = GcpTable()
    scenarios: tuple[ScenarioTable, ...] = ()


def read_config(path: Path) -> dict[str, Scenario]:
    """Read a ``harness.toml`` and return the scenarios that it declares, by name.

    Raises:
        InvalidDocumentError: When it cannot be read or does not validate.
    """
    config = _read(path)
    found = _scenarios(config, str(path))
    names = [scenario.name for scenario in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidDocumentError(
                document=str(path), field="scenarios", problem=f"two scenarios are named {name!r}", advice="rename one"
            )
    return dict(zip(names, found, strict=True))


def read_gcp(path: Path) -> GcpTable:
    """Read ``[gcp]`` of a ``harness.toml``.

    Raises:
        InvalidDocumentError: When the file cannot be read or does not validate.
    """
    return _read(path).gcp


def _read(path: Path) -> Config:
    document = read_toml(path, advice="name a readable file, or write one with `harness init`")
    return convert(document, Config, document=str(path))


def _scenarios(config: Config, document: str) -> list[Scenario]:
    """The standard scenarios and the declared ones; what one of them refuses is told as the field of the file that it came from."""
    job, chaos = config.workload, config.chaos
    with _blamed_on("chaos", document):
        beyond = [step for step in chaos.at_steps if job.steps and step > job.steps]
        require(not beyond, "at_steps", chaos.at_steps, f"steps up to the {job.steps} of the workload")
    with _blamed_on("workload", document):
        _workload(config)
    with _blamed_on("", document):
        found = _standard(config)
    for index, table in enumerate(config.scenarios):
        with _blamed_on(f"scenarios[{index}]", document):
            found.append(_declared(config, table))
    return found


@contextlib.contextmanager
def _blamed_on(place: str, document: str) -> Iterator[None]:
    try:
        yield
    except RefusedValueError as error:
        raise refused_value(error, document, place=place) from error


def _workload(config: Config) -> Workload:
    job = config.workload
    return Workload(
        name=job.name,
        command=job.command,
        steps=job.steps,
        save_every=job.save_every,
        environment=job.environment,
        layout=job.layout,
        checkpoints=job.checkpoints,
        speaks_protocol=job.speaks_protocol,
        ranks=job.ranks,
        sources=job.sources,
        directory=job.directory,
        outside=Outside(
            logs=job.logs,
            inspect=job.inspect,
            inspect_timeout_s=job.inspect_timeout_s,
            recovery_timeout_s=job.recovery_timeout_s,
            result=job.result,
        ),
        image=config.target.docker.image,
    )


def _standard(config: Config) -> list[Scenario]:
    """What any long job owes: to complete when left alone, and, as far as there are retries, after a kill, a notice, and two kills."""
    name = config.workload.name
    early, late = _moments(config)
    standard = [
        (f"{name}-left-alone-completes", "the job itself must be right before it is hurt", ()),
        (f"{name}-killed-without-notice-resumes", "a host error gives no grace", _at(Kill(), early)),
        (f"{name}-terminated-with-notice-resumes", "maintenance: SIGTERM, grace, SIGKILL", _at(Terminate(), late)),
        (f"{name}-killed-again-while-it-recovers-resumes", "recovery is interrupted too", _twice(early, late)),
    ]
    deaths = [sum(len(injection.attempts) for injection in injections) for _, _, injections in standard]
    return [
        _scenario(config, name, why, injections, attempts_max=count + 1)
        for (name, why, injections), count in zip(standard, deaths, strict=True)
        if count <= config.platform.max_retries
    ]


def _twice(early: Trigger, late: Trigger) -> tuple[Injection, ...]:
    if not isinstance(early, AtStep):
        return (Injection(fault=Kill(), at=early, attempts=(0, 1)),)
    return (
        Injection(fault=Kill(), at=early, name="first-kill"),
        Injection(fault=Kill(), at=late, attempts=(1,), name="second-kill"),
    )


def _at(fault: Fault, moment: Trigger) -> tuple[Injection, ...]:
    return (Injection(fault=fault, at=moment),)


def _moments(config: Config) -> tuple[Trigger, Trigger]:
    """An early and a late moment, as exact as the job can be seen."""
    job, chaos = config.workload, config.chaos
    if (job.logs.step or job.speaks_protocol) and (chaos.at_steps or job.steps):
        steps = sorted(chaos.at_steps) or [max(1, job.steps * 2 // 5), max(1, job.steps * 7 // 10)]
        return AtStep(step=steps[0]), AtStep(step=steps[-1])
    if job.logs.saved:
        return OnLog(pattern=job.logs.saved), OnLog(pattern=job.logs.saved, nth=2)
    return AfterSeconds(seconds=chaos.after_s), AfterSeconds(seconds=chaos.after_s)


def _scenario(config: Config, name: str, why: str, injections: tuple[Injection, ...], *, attempts_max: int) -> Scenario:
    return Scenario(
        name=name,
        why=why,
        workload=_workload(config),
        platform=config.platform,
        injections=injections,
        expects=_promises(config, injections, attempts_max=attempts_max),
        deadline_s=config.chaos.deadline_s,
    )


def _promises(config: Config, injections: tuple[Injection, ...], *, attempts_max: int) -> tuple[Expectation, ...]:
    job, promises = config.workload, config.promises
    lost_steps_max = (job.save_every or None) if promises.lost_steps_max < 0 else promises.lost_steps_max
    expects: list[Expectation] = [Completes(), WithinRetries(attempts_max=attempts_max)]
    if job.result:
        expects.append(SameResult())
    if injections and (job.inspect or job.speaks_protocol):
        expects.append(BitExactResume())
    if promises.quiet_s:
        expects.append(NoHang(quiet_s=promises.quiet_s))
    is_judged = bool(job.logs.resumed) or job.speaks_protocol or promises.lost_steps_max >= 0  # in words, then unknown where it is not seen
    if injections and lost_steps_max is not None and is_judged:
        expects.append(ResumesFromNewestDurable(lost_steps_max=lost_steps_max))
        expects.append(MakesProgress())
    if job.speaks_protocol:
        expects.append(IntactCheckpoints())
    if promises.saves_on_sigterm and any(isinstance(injection.fault, Terminate) for injection in injections):
        expects += [GraceConduct(), ExitCodes(after_sigterm=promises.exit_after_sigterm)]
    return tuple(expects)


def _declared(config: Config, table: ScenarioTable) -> Scenario:
    return Scenario(
        name=table.name,
        why=table.why,
        workload=_workload(config),
        platform=config.platform,
        injections=table.injections,
        expects=table.expects,
        within_budget=table.within_budget,
        deadline_s=table.deadline_s or config.chaos.deadline_s,
        tags=table.tags,
    )


TEMPLATE = """\
# A job of your own under chaos, without a line of Python and without touching it.
# Run it with: harness run --config harness.toml

[workload]
name = "my-train"
# {checkpoint_dir} is the mounted directory, the same for every attempt; {python} is this interpreter, {seed} the run's seed.
command = ["python", "train.py", "--out", "{checkpoint_dir}"]
steps = 200                # the final step as the job counts, 199 if it counts from 0; leave it out when unknown
save_every = 10            # steps between checkpoints; leave it out when unknown
# directory = "."          # where the command runs, relative to this file
# layout = "files"         # or: orbax, ray-train, step-directories, text-file
# checkpoints = "run/ckpt" # where they lie below {checkpoint_dir}, for a job that makes directories of its own
# result = "{checkpoint_dir}/final.json"   # must equal, byte for byte, that of an uninterrupted run
# inspect = ["python", "inspect.py", "{checkpoint_dir}"]   # prints {"step": 10, "digests": {"params": "..."}} of a copy
# sources = ["train.py"]   # what the uninterrupted run depends on; without it every code file of the directory

# [workload.environment]
# JAX_PLATFORMS = "cpu"

[workload.logs]            # what the job says of itself; each but sigterm and done needs a group (?P<step>...)
step = '^step (?P<step>\\d+)'
saved = 'saved checkpoint at step (?P<step>\\d+)'
resumed = 'resumed from step (?P<step>\\d+)'
# sigterm = 'SIGTERM received'
# done = 'training complete'

[platform]                 # as Cloud Run jobs: attempts after the first, seconds per attempt, seconds from SIGTERM to SIGKILL
max_retries = 3
timeout_s = 600.0
grace_s = 10.0

# [target.docker]            # with --target docker: an image that the engine has, with the job's interpreter and packages in it
# image = "my-train:latest"

# [gcp]                      # with --target gcp; nothing of this has a default
# project = "my-project-123"
# region = "europe-west4"
# bucket = "my-bucket"       # labelled harness-chaos=allowed, as the job is
# job = "my-train"           # adopted as it is; with an image it is made, and removed again
# limits = { blast_radius = 1, gpu_hours = 1.0, duration_s = 3600.0 }

[promises]                 # what your job claims
lost_steps_max = 10        # steps that a kill may cost
saves_on_sigterm = false   # whether SIGTERM is answered with a final save within the grace
# exit_after_sigterm = [143]
# quiet_s = 60.0           # silence after which the job counts as hung

[chaos]
deadline_s = 300.0
# at_steps = [80, 140]     # where the standard scenarios strike; without it at 2/5 and 7/10 of the steps

# One more scenario of your own:
# [[scenarios]]
# name = "my-train-survives-three-kills"
# why = "weekly maintenance, three weeks in a row"
# injections = [{ fault = { type = "kill" }, at = { type = "at-step", step = 80 }, attempts = [0] }]
# expects = [{ type = "completes" }, { type = "within-retries", attempts_max = 2 }]
"""
"""What ``harness init`` writes."""
