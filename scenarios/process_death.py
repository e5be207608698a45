"""A process dies without notice: between saves, in every phase of a save, while it recovers, again and again."""

from harness.scenario import Injection, Scenario
from harness.scenario.expectations import (
    Completes,
    ExactlyOnceData,
    Goodput,
    GraceConduct,
    NoHang,
    SameResult,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import Kill, Pause, Terminate
from harness.scenario.triggers import AfterSeconds, AtMarker, AtStep, OnLog
from scenarios.jobs import LINEAR
from scenarios.promises import recovers


def _killed(name: str, why: str, event: str, *, nth: int = 1, when: str = "after", tags: tuple[str, ...] = ()) -> Scenario:
    at = AtMarker(event=event, nth=nth, when="before" if when == "before" else "after")
    return Scenario(
        name=name, why=why, workload=LINEAR, injections=(Injection(fault=Kill(), at=at),), expects=recovers(attempts_max=2), tags=tags
    )


BETWEEN_SAVES = Scenario(
    name="sigkill-between-saves-costs-no-more-than-one-interval",
    why="design: the periodic checkpoint is the real protection; a host error gives no grace",
    workload=LINEAR,
    injections=(Injection(fault=Kill(), at=AtStep(step=13)),),
    expects=(*recovers(attempts_max=2), SameResult(), Goodput()),
    tags=("case-23",),
)

PHASES_OF_A_SAVE = (
    _killed(
        "sigkill-when-a-save-begins-resumes-from-the-previous-checkpoint", "case 1: killed mid-save", "save.begin", nth=2, tags=("case-1",)
    ),
    _killed(
        "sigkill-while-files-are-written-leaves-no-step-that-is-picked",
        "case 12: an incomplete folder",
        "save.write",
        nth=4,
        tags=("case-12",),
    ),
    _killed(
        "sigkill-before-the-commit-leaves-a-temporary-that-blocks-no-later-save",
        "case 9: stale temporary",
        "save.commit",
        nth=2,
        tags=("case-9",),
    ),
    _killed(
        "sigkill-after-the-commit-but-before-its-acknowledgement-keeps-the-step",
        "case 13: durable first",
        "save.end",
        nth=2,
        when="before",
        tags=("case-13",),
    ),
    _killed(
        "sigkill-during-garbage-collection-never-costs-the-last-good-step",
        "case 13: clean-up may delete the last good",
        "gc.begin",
        nth=2,
        tags=("case-13",),
    ),
)

START_UP = _killed("sigkill-at-start-up-costs-nothing", "a preemption can come before the first step", "boot")
FIRST_STEP = _killed("sigkill-at-the-first-step-starts-over-bit-exactly", "nothing durable yet: the same run again", "step", nth=1)
LAST_STEP = _killed(
    "sigkill-at-the-last-step-repeats-only-the-last-interval",
    "case 25: a boundary is where steps are skipped",
    "step",
    nth=40,
    tags=("case-25",),
)
BEFORE_DONE = _killed(
    "sigkill-after-the-last-save-leaves-nothing-to-train", "complete but for its exit: the retry must see it", "done", when="before"
)

EPOCH_BOUNDARY = Scenario(
    name="sigkill-at-an-epoch-boundary-skips-no-epoch-and-repeats-no-sample",
    why="case 25: a resume at the epoch boundary skipped an epoch and exited 0",
    workload=LINEAR,
    injections=(
        Injection(fault=Kill(), at=AtMarker(event="save.end", nth=2)),
        Injection(fault=Kill(), at=AtMarker(event="save.end", nth=2), attempts=(1,), name="again"),
    ),
    expects=recovers(attempts_max=3),
    tags=("case-25",),
)

WHILE_RESTORING = Scenario(
    name="a-job-killed-in-each-of-two-recoveries-still-recovers",
    why="recovery is interrupted like anything else, and must be idempotent",
    workload=LINEAR,
    injections=(
        Injection(fault=Kill(), at=AtStep(step=13)),
        Injection(fault=Kill(), at=AtMarker(event="restore.begin"), attempts=(1,), name="at-restore"),
        Injection(fault=Kill(), at=AtMarker(event="restore"), attempts=(2,), name="after-restore"),
    ),
    expects=recovers(attempts_max=4),
)

SECOND_RESUME = Scenario(
    name="a-second-and-a-third-resume-are-as-exact-as-the-first",
    why="data order wrong only on the second resume; case 1: saves skipped after a resume",
    workload=LINEAR,
    injections=(Injection(fault=Kill(), at=AtMarker(event="step", nth=8), attempts=(0, 1, 2)),),
    expects=recovers(attempts_max=4),
    tags=("case-1", "case-19", "case-26"),
)

FIRST_SAVE_AFTER_RESUME = Scenario(
    name="sigkill-in-the-first-save-after-a-resume-still-resumes",
    why="case 9: the step that was being saved is saved again",
    workload=LINEAR,
    injections=(
        Injection(fault=Kill(), at=AtMarker(event="save.commit", nth=2)),
        Injection(fault=Kill(), at=AtMarker(event="save.commit", nth=1), attempts=(1,), name="again"),
    ),
    expects=recovers(attempts_max=3),
    tags=("case-9",),
)


def _terminated(name: str, why: str, at: AtMarker | AtStep | OnLog | AfterSeconds, tags: tuple[str, ...] = ()) -> Scenario:
    return Scenario(
        name=name,
        why=why,
        workload=LINEAR,
        injections=(Injection(fault=Terminate(), at=at),),
        expects=(*recovers(attempts_max=2), GraceConduct(margin_s_min=5.0)),
        tags=tags,
    )


NOTICE = (
    _terminated(
        "sigterm-between-saves-saves-the-step-it-interrupted",
        "the Cloud Run guide: on SIGTERM the job saves and exits 143",
        AtStep(step=13),
    ),
    _terminated(
        "sigterm-during-a-save-finishes-one-save-and-leaves",
        "a second save must not begin in the grace",
        AtMarker(event="save.begin", nth=2),
    ),
    _terminated("sigterm-during-garbage-collection-leaves-a-good-step", "the handler runs in any phase", AtMarker(event="gc.begin", nth=2)),
    _terminated(
        "sigterm-half-a-second-into-an-attempt-is-noticed-in-time",
        "seconds are the weakest trigger, and users' first",
        AfterSeconds(seconds=0.5),
    ),
)

SIGTERM_WHILE_RESTORING = Scenario(
    name="sigterm-during-recovery-leaves-the-checkpoint-it-recovers-from",
    why="case 31: the flag must be read in every phase",
    workload=LINEAR,
    injections=(
        Injection(fault=Kill(), at=AtStep(step=13)),
        Injection(fault=Terminate(), at=AtMarker(event="restore.begin"), attempts=(1,), name="notice"),
    ),
    expects=recovers(attempts_max=3),
    tags=("case-31",),
)

PAUSED = Scenario(
    name="a-job-that-stands-still-for-a-second-goes-on-in-the-same-attempt",
    why="SIGSTOP and SIGCONT: a live migration, a debugger, a frozen cgroup",
    workload=LINEAR,
    injections=(Injection(fault=Pause(duration_s=1.0), at=AtStep(step=13)),),
    expects=(Completes(), WithinRetries(attempts_max=1), SavesAtCadence(every=5), ExactlyOnceData(), NoHang(quiet_s=20.0)),
)

SCENARIOS = (
    BETWEEN_SAVES,
    *PHASES_OF_A_SAVE,
    START_UP,
    FIRST_STEP,
    LAST_STEP,
    BEFORE_DONE,
    EPOCH_BOUNDARY,
    WHILE_RESTORING,
    SECOND_RESUME,
    FIRST_SAVE_AFTER_RESUME,
    *NOTICE,
    SIGTERM_WHILE_RESTORING,
    PAUSED,
)
