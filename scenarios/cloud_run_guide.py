"""Each sentence of the Cloud Run guide's contract: a long GPU job that survives maintenance."""

from harness.scenario import Injection, Platform, Scenario, Victim
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExitCodes,
    Goodput,
    GraceConduct,
    IntactCheckpoints,
    LogOrder,
    ResumesFromNewestDurable,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import CancelExecution, ExpireTimeout, Kill, Maintenance, TruncateFile
from harness.scenario.triggers import AtMarker, AtStep, OnEffect, OnLog
from scenarios.jobs import COUNTER

MAINTENANCE_LINES = LogOrder(
    patterns=(
        r"^Received SIGTERM signal from platform\. Initiating graceful shutdown\.\.\.$",
        r"^Saving checkpoint",
        r"^Container instance preemption initiated by the platform due to underlying hardware maintenance\.$",
        r"^Resuming from checkpointed step \d+\.$",
    )
)
"""What an operator sees, in the guide's order."""

UNINTERRUPTED = Scenario(
    name="an-uninterrupted-job-saves-every-fifth-step-and-exits-zero",
    why="the Cloud Run guide: the step is saved every 5 steps; completion exits 0",
    workload=COUNTER,
    expects=(Completes(), ExitCodes(), SavesAtCadence(every=5), WithinRetries(attempts_max=1), Goodput()),
    tags=("cloud-run-guide",),
)

MAINTENANCE = Scenario(
    name="maintenance-is-survived-with-a-final-save-exit-143-and-a-retry",
    why="the Cloud Run guide: SIGTERM sets a flag, the loop leaves at the next step, saves and exits 143 so that the platform retries",
    workload=COUNTER,
    injections=(Injection(fault=Maintenance(), at=AtStep(step=12)),),
    expects=(
        Completes(),
        ExitCodes(after_sigterm=(143,)),
        GraceConduct(margin_s_min=5.0),
        IntactCheckpoints(),
        ResumesFromNewestDurable(lost_steps_max=5, lost_steps_after_sigterm_max=0),
        BitExactResume(),
        WithinRetries(attempts_max=2),
        MAINTENANCE_LINES,
    ),
    tags=("cloud-run-guide",),
)

MAINTENANCE_IN_A_SAVE = Scenario(
    name="maintenance-that-comes-with-a-periodic-save-loses-no-step",
    why="the Cloud Run guide: the periodic checkpoint is the real protection, the final save best effort; here both fall together",
    workload=COUNTER,
    injections=(Injection(fault=Maintenance(), at=OnLog(pattern=r"^Saving checkpoint at step 10\b")),),
    expects=(
        Completes(),
        ExitCodes(),
        GraceConduct(margin_s_min=5.0),
        IntactCheckpoints(),
        ResumesFromNewestDurable(lost_steps_max=5, lost_steps_after_sigterm_max=0),
        BitExactResume(),
        WithinRetries(attempts_max=2),
    ),
    tags=("cloud-run-guide",),
)

EVERY_RETRY_SPENT = Scenario(
    name="three-interruptions-use-three-retries-and-the-fourth-attempt-completes",
    why="the Cloud Run guide: three retries, one for maintenance and others for application faults",
    workload=COUNTER,
    injections=(Injection(fault=Maintenance(), at=AtMarker(event="step", nth=8), attempts=(0, 1, 2)),),
    expects=(
        Completes(),
        ExitCodes(),
        ResumesFromNewestDurable(lost_steps_max=5, lost_steps_after_sigterm_max=0),
        WithinRetries(attempts_max=4),
    ),
    tags=("cloud-run-guide",),
)

RETRIES_EXHAUSTED = Scenario(
    name="a-fourth-interruption-ends-the-execution-as-failed-with-its-checkpoint-intact",
    why="the Cloud Run guide: exposure is bounded; a truncated final save must never replace the last good checkpoint",
    workload=COUNTER,
    injections=(Injection(fault=Maintenance(), at=AtMarker(event="step", nth=6), attempts=(0, 1, 2, 3)),),
    expects=(Completes(), ExitCodes(), IntactCheckpoints(), WithinRetries(attempts_max=4)),
    within_budget=False,
    tags=("cloud-run-guide",),
)

NO_RETRIES = Scenario(
    name="without-retries-a-single-interruption-is-a-clean-failure",
    why="the Cloud Run guide: retries 3, never 0",
    workload=COUNTER,
    platform=Platform(max_retries=0),
    injections=(Injection(fault=Maintenance(), at=AtStep(step=12)),),
    expects=(Completes(), ExitCodes(), GraceConduct(), IntactCheckpoints(), WithinRetries(attempts_max=1)),
    within_budget=False,
    tags=("cloud-run-guide",),
)

TIMEOUT_REACHED = Scenario(
    name="the-timeout-counts-per-attempt-so-a-job-longer-than-it-completes",
    why="the Cloud Run guide: the timeout is per attempt; exposure is timeout x (retries + 1)",
    workload=COUNTER,
    platform=Platform(timeout_s=0.7, max_retries=10),
    injections=(Injection(fault=ExpireTimeout(), at=AtStep(step=9)),),
    expects=(
        Completes(),
        ExitCodes(),
        ResumesFromNewestDurable(lost_steps_max=5, lost_steps_after_sigterm_max=0),
        WithinRetries(attempts_max=11),
    ),
    tags=("cloud-run-guide",),
)

CANCELLED = Scenario(
    name="a-cancelled-execution-saves-and-is-not-tried-again",
    why="Cloud Run: cancel has no retry; SIGTERM and grace are unverified for jobs",
    workload=COUNTER,
    injections=(Injection(fault=CancelExecution(), at=AtStep(step=12)),),
    expects=(Completes(), ExitCodes(), GraceConduct(), IntactCheckpoints(), WithinRetries(attempts_max=1)),
    within_budget=False,
    tags=("cloud-run-guide",),
)

CPU_MAINTENANCE = Scenario(
    name="a-cpu-task-lives-through-migration-in-the-same-attempt",
    why="finding 10: CPU tasks are migrated with SIGTSTP before and SIGCONT after, the process lives",
    workload=COUNTER,
    injections=(Injection(fault=Maintenance(profile="cloudrun-job-cpu-maintenance"), at=AtStep(step=12)),),
    expects=(Completes(), WithinRetries(attempts_max=1), SavesAtCadence(every=5)),
    tags=("cloud-run-guide",),
)

NO_CHECKPOINT_YET = Scenario(
    name="a-job-killed-before-its-first-save-starts-from-scratch-and-says-so",
    why="the Cloud Run guide: a missing checkpoint is said, and training starts from scratch",
    workload=COUNTER,
    injections=(Injection(fault=Kill(), at=AtStep(step=3)),),
    expects=(
        Completes(),
        ResumesFromNewestDurable(lost_steps_max=5),
        BitExactResume(),
        WithinRetries(attempts_max=2),
        LogOrder(patterns=(r"(?i)scratch", r"^Container terminated on signal 9", r"(?i)scratch")),
    ),
    tags=("cloud-run-guide",),
)

UNREADABLE_CHECKPOINT = Scenario(
    name="an-unreadable-checkpoint-is-said-and-training-starts-from-scratch",
    why="the Cloud Run guide: an unreadable checkpoint is said, and training starts from scratch; case 14: a 0-byte checkpoint",
    workload=COUNTER,
    injections=(
        Injection(fault=Kill(), at=AtStep(step=12), name="kill"),
        Injection(fault=TruncateFile(keep_fraction=0.0), at=OnEffect(of="kill")),
    ),
    expects=(
        Completes(),
        ResumesFromNewestDurable(lost_steps_max=12),
        BitExactResume(),
        WithinRetries(attempts_max=2),
        LogOrder(patterns=(r"^Container terminated on signal 9", r"(?i)scratch")),
    ),
    tags=("cloud-run-guide", "case-14"),
)

FINAL_SAVE_CUT = Scenario(
    name="a-final-save-cut-by-sigkill-leaves-the-last-good-checkpoint",
    why="the Cloud Run guide: a truncated final save must never replace the last good checkpoint; case 17: grace overrun in a save",
    workload=COUNTER,
    injections=(
        Injection(fault=Maintenance(), at=AtStep(step=12)),
        Injection(fault=Kill(), at=AtMarker(event="save.commit", nth=3)),
    ),
    expects=(Completes(), IntactCheckpoints(), ResumesFromNewestDurable(lost_steps_max=5), BitExactResume(), WithinRetries(attempts_max=2)),
    tags=("cloud-run-guide", "case-17"),
)

TASKS_APART = Scenario(
    name="each-task-keeps-its-own-checkpoint-file-and-one-death-disturbs-no-other",
    why="the Cloud Run guide: the file carries the job's name and the task's index",
    workload=COUNTER,
    platform=Platform(tasks=3, parallelism=2),
    injections=(Injection(fault=Kill(), at=AtStep(step=12), victim=Victim(task=1)),),
    expects=(Completes(), IntactCheckpoints(), ResumesFromNewestDurable(lost_steps_max=5), BitExactResume(), WithinRetries(attempts_max=2)),
    tags=("cloud-run-guide",),
)

SCENARIOS = (
    UNINTERRUPTED,
    MAINTENANCE,
    MAINTENANCE_IN_A_SAVE,
    EVERY_RETRY_SPENT,
    RETRIES_EXHAUSTED,
    NO_RETRIES,
    TIMEOUT_REACHED,
    CANCELLED,
    CPU_MAINTENANCE,
    NO_CHECKPOINT_YET,
    UNREADABLE_CHECKPOINT,
    FINAL_SAVE_CUT,
    TASKS_APART,
)
