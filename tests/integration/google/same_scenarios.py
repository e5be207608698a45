"""Scenarios of every kind that a Cloud Run job can have, right jobs and wrong ones, with the verdict that each has wherever it runs."""

from dataclasses import dataclass

from msgspec.structs import replace

from harness.scenario import Expectation, Injection, LogPatterns, Outside, Platform, Scenario, Workload
from harness.scenario.expectations import (
    Completes,
    ExitCodes,
    GraceConduct,
    IntactCheckpoints,
    MakesProgress,
    ResumesFromNewestDurable,
    SameResult,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import EndGrace, ExpireTimeout, FlipByte, Kill, Maintenance, Terminate
from harness.scenario.triggers import AfterSeconds, AtMarker, AtStep, OnEffect
from harness.verdict import Outcome
from scenarios import CATALOGUE
from scenarios.jobs import COUNTER, LINEAR
from scenarios.promises import recovers
from workloads.broken import BROKEN

VALID, UNKNOWN, INVALID = Outcome.VALID, Outcome.UNKNOWN, Outcome.INVALID

COUNTED = replace(COUNTER, outside=Outside(result="{checkpoint_dir}/counter-task-0-checkpoint.txt"))
"""What the guide's job leaves is the step in its checkpoint."""

TOLD = Injection(fault=Terminate(), at=AtStep(step=13))
KILLED = Injection(fault=Kill(), at=AtMarker(event="save.end", nth=2), name="kill")

BOUNDS = (
    Completes(),
    ExitCodes(),
    GraceConduct(),
    IntactCheckpoints(),
    ResumesFromNewestDurable(lost_steps_max=5),
    WithinRetries(attempts_max=2),
)
"""What wrong jobs are held against."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A scenario, and how it goes.

    Attributes:
        scenario: Without a promise that hangs on how fast a target is.
        outcome: Of its verdict.
        accuser: A checker that the verdict is of; empty: any.
    """

    scenario: Scenario
    outcome: Outcome = VALID
    accuser: str = ""


def _own(
    name: str, *injections: Injection, expects: tuple[Expectation, ...], job: Workload = LINEAR, platform: Platform | None = None
) -> Case:
    return Case(
        scenario=Scenario(
            name=name,
            why="a scenario means the same wherever it runs",
            workload=job,
            platform=platform or Platform(),
            injections=injections,
            expects=expects,
            deadline_s=120.0,
        )
    )


def _listed(name: str) -> Case:
    """One of the catalogue, whose job leaves a result where it can."""
    scenario = CATALOGUE[name]
    return Case(scenario=replace(scenario, workload=COUNTED) if scenario.workload == COUNTER else scenario)


def _wrong(job: str, *injections: Injection, step_s: str = "0.02") -> Case:
    name = job.replace("_", "-")
    command = ("{python}", "-m", f"workloads.broken.{job}")
    workload = replace(LINEAR, name=name, command=command, environment={**LINEAR.environment, "STEP_SECONDS": step_s})
    case = _own(f"{name}-is-caught", *injections, expects=BOUNDS, job=workload, platform=Platform(grace_s=1.0))
    return replace_case(case, outcome=INVALID, accuser=BROKEN[job].promise)


def replace_case(case: Case, *, outcome: Outcome, accuser: str) -> Case:
    """The same scenario with another verdict."""
    return Case(scenario=case.scenario, outcome=outcome, accuser=accuser)


ALONE = (Completes(), ExitCodes(), IntactCheckpoints(), SavesAtCadence(every=5), WithinRetries(attempts_max=1), SameResult())
RECOVERS = (*recovers(attempts_max=2), SameResult())

RIGHT = (
    _own("a-job-that-is-left-alone-completes", expects=ALONE),
    _own("sigterm-with-notice-is-saved-after", TOLD, expects=(*RECOVERS, GraceConduct())),
    _own("sigkill-without-notice-costs-one-interval", Injection(fault=Kill(), at=AtStep(step=13)), expects=RECOVERS),
    _own(
        "a-second-sigterm-does-not-break-the-last-save-off",
        TOLD,
        Injection(fault=Terminate(), at=AtMarker(event="save.begin", nth=3), name="again"),
        expects=(*RECOVERS, GraceConduct()),
    ),
    _own(
        "a-grace-that-is-over-before-the-commit-costs-one-interval",
        TOLD,
        Injection(fault=EndGrace(), at=AtMarker(event="save.commit", nth=3), name="end"),
        expects=RECOVERS,
    ),
    _own(
        "a-timeout-is-tried-again",
        Injection(fault=ExpireTimeout(), at=AtStep(step=13)),
        expects=RECOVERS,
        platform=Platform(timeout_s=600.0),
    ),
    _listed("maintenance-is-survived-with-a-final-save-exit-143-and-a-retry"),
    _listed("a-fourth-interruption-ends-the-execution-as-failed-with-its-checkpoint-intact"),
    _listed("a-cancelled-execution-saves-and-is-not-tried-again"),
    _listed("an-unreadable-checkpoint-is-said-and-training-starts-from-scratch"),
    _listed("each-task-keeps-its-own-checkpoint-file-and-one-death-disturbs-no-other"),
    _listed("a-truncated-file-is-noticed-and-the-older-checkpoint-is-used"),
    _listed("a-rename-that-stopped-half-way-is-not-a-checkpoint"),
    _listed("a-deleted-data-file-is-noticed-and-the-older-checkpoint-is-used"),
    _listed("a-job-that-stands-still-for-a-second-goes-on-in-the-same-attempt"),
    _listed("the-death-of-one-rank-ends-the-gang-and-all-ranks-resume-together"),
)
"""Jobs that keep their promises."""

WRONG = (
    _wrong("saves_nothing", Injection(fault=Kill(), at=AtStep(step=12))),
    _wrong("starts_from_scratch", KILLED),
    _wrong("off_by_one_on_resume", KILLED),
    _wrong("exits_zero_on_sigterm", TOLD),
    _wrong("ignores_sigterm", Injection(fault=Maintenance(), at=AtStep(step=12)), step_s="0.1"),  # the grace is over before the job is
    _wrong("restores_damaged_bytes", KILLED, Injection(fault=FlipByte(), at=OnEffect(of="kill"))),
)
"""Jobs that are wrong in one known way each."""

SAYING = """
import os
from workloads.counter import train
WORDS = {"step": "step", "save.end": "saved"}
train.emit = lambda event, step=0, **_: os.write(1, f"{WORDS[event]} {step}\\n".encode()) if event in WORDS else None
if os.environ.get("LONG_LINE"):
    os.write(1, b"x" * 300000 + b"\\n")
raise SystemExit(train.main())
"""
"""The guide's job, which says its steps and saves in its log only; a line beyond 256 KiB is cut on every target."""

FOLLOWED = replace(
    COUNTER,
    name="followed",
    speaks_protocol=False,
    command=("{python}", "-c", SAYING),
    save_every=20,
    environment={"STEPS": "40", "STEP_SECONDS": "0.1", "SAVE_EVERY": "20"},
    outside=Outside(
        logs=LogPatterns(
            step=r"^step (?P<step>\d+)", saved=r"^saved (?P<step>\d+)", resumed=r"^Resuming from checkpointed step (?P<step>\d+)"
        )
    ),
)
AT_SOME_STEP = Injection(fault=Kill(), at=AfterSeconds(seconds=2.5))
ON_ITS_WORDS = (Completes(), ResumesFromNewestDurable(lost_steps_max=40), MakesProgress(), WithinRetries(attempts_max=2))

HEARD = _own("a-job-that-is-followed-by-its-log-resumes", AT_SOME_STEP, expects=ON_ITS_WORDS, job=FOLLOWED)
UNHEARD = _own(
    "lost-lines-of-a-job-that-is-followed-by-its-log-are-lost-words",
    AT_SOME_STEP,
    expects=ON_ITS_WORDS,
    job=replace(FOLLOWED, environment={**FOLLOWED.environment, "LONG_LINE": "1"}),
)

UNPROVED = (
    replace_case(UNHEARD, outcome=UNKNOWN, accuser="resumes-from-newest-durable"),
    replace_case(
        _own("a-fault-that-never-comes-proves-nothing", Injection(fault=Kill(), at=AtStep(step=999)), expects=BOUNDS),
        outcome=UNKNOWN,
        accuser="landed",
    ),
)
"""Runs in which nothing was shown."""

CASES = {case.scenario.name: case for case in (*RIGHT, HEARD, *WRONG, *UNPROVED)}
