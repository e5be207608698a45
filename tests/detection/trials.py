"""The experiment as data: disturbances, the jobs that are wrong under them, and the right jobs that they must not hurt.

A trial is one disturbance with every promise that applies under it. All of its jobs run with the same steps, the same faults and the same
promises: the wrong ones must be caught by the checker that their table names, the right ones are the control.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from harness.scenario import Expectation, Injection, Outside, Platform, Scenario, Victim, Workload
from harness.scenario.expectations import (
    AdmittedTo,
    BitExactResume,
    ChargesRetries,
    Completes,
    ConsumesProvisioning,
    ExactlyOnceData,
    ExitCodes,
    Goodput,
    GraceConduct,
    IntactCheckpoints,
    LeavesNothing,
    LogOrder,
    MakesProgress,
    NoHang,
    RanksAgree,
    RecoversWithin,
    ResumesFromNewestDurable,
    SameResult,
    SameRun,
    SavesAtCadence,
    SingleWriter,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.scenario.faults import FailWrites, FlipByte, Kill, OverlapAttempts, Terminate
from harness.scenario.triggers import AtMarker, AtStep, OnEffect
from scenarios.jobs import COUNTER, JAX_GPU, LINEAR, LINEAR_RANKS

SAVE_EVERY = 5

QUIET_S = 4.0
"""Silence that is a hang: the one job that hangs costs as much, and on a busy machine two ranks need a second or two to start."""

QUIET_S_JAX = 60.0
"""JAX is imported and compiled in silence, for seconds."""

DEADLINE_S = 90.0
"""Every trial is over in six seconds on two quiet cores; the rest is for a loaded machine."""

KILLED = r"^Container terminated on signal 9"
TOLD = r"Received SIGTERM"
RESUMED = r"^Resuming from"

RIGHT: dict[str, Workload] = {
    "counter": replace(COUNTER, outside=Outside(result="{checkpoint_dir}/counter-task-0-checkpoint.txt")),
    "linear": replace(LINEAR, outside=Outside(result="{checkpoint_dir}/final.json")),
    "linear-ranks": replace(LINEAR_RANKS, outside=Outside(result="{checkpoint_dir}/final.json")),
    "jax-gpu": JAX_GPU,
}
"""Jobs that keep every promise."""

OF_CLUSTERS: frozenset[type[Expectation]] = frozenset(
    {AdmittedTo, ChargesRetries, ConsumesProvisioning, LeavesNothing, SubmittedOnce, WorkloadEnds}
)
"""Promises that speak of queues and nodes: their trials are in ``cluster_trials``."""

DOES_NOT_APPLY: dict[str, frozenset[type[Expectation]]] = {
    "counter": OF_CLUSTERS | {RanksAgree, SingleWriter},
    "linear": OF_CLUSTERS | {RanksAgree},
    "linear-ranks": OF_CLUSTERS,
    "jax-gpu": OF_CLUSTERS | {RanksAgree, SameResult, LogOrder, SingleWriter},
}
"""Promises that a right job does not make: it has one rank, leaves no result beside its checkpoints, prints nothing for an operator,
or has no fence against an older attempt that lives on, as the guide's job has none."""

NEEDS_NODE_LOSS = {
    "renames_without_fsync": "SIGKILL is not power loss: the page cache outlives the process, and with it what was never fsynced",
}
"""Wrong jobs that no death of a process can reveal, and why."""

LAYOUTS = {"saves_in_place": "files"}
RANKS = {"rank_hangs": 2, "ranks_restore_different_steps": 2}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One disturbance.

    Attributes:
        name: A clause: the end of its scenarios' names.
        wrong: Jobs that it reveals, each with the checkers that may accuse it beside its own: of what follows from the same mistake.
        right: Jobs that it must not hurt.
        expects: The promises that apply under it.
        injections, platform: As of a scenario.
        steps, step_s: As small as the disturbance allows.
    """

    name: str
    wrong: dict[str, tuple[str, ...]]
    right: tuple[str, ...]
    expects: tuple[Expectation, ...]
    injections: tuple[Injection, ...] = ()
    platform: Platform = field(default_factory=Platform)
    steps: int = 20
    step_s: float = 0.01

    def scenario(self, workload: Workload) -> Scenario:
        """The trial of one job."""
        skipped = DOES_NOT_APPLY.get(workload.name, frozenset() if workload.ranks > 1 else frozenset({RanksAgree}))
        own = {"STEPS": str(self.steps), "STEP_SECONDS": str(self.step_s), "SAVE_EVERY": str(SAVE_EVERY)}
        return Scenario(
            name=f"{workload.name}-{self.name}",
            why="an instrument is worth what it says where the answer is known",
            workload=replace(workload, steps=self.steps, environment={**workload.environment, **own}),
            platform=self.platform,
            injections=self.injections,
            expects=tuple(promise for promise in self.expects if type(promise) not in skipped),
            deadline_s=DEADLINE_S,
        )


# ---- promises --------------------------------------------------------------------------------------------------------


def _ends(
    *, attempts_max: int, own_failures_max: int = 0, missed_max: int = 0, quiet_s: float = QUIET_S, log: tuple[str, ...] = ()
) -> tuple[Expectation, ...]:
    """What every run owes."""
    return (
        Completes(),
        ExitCodes(),
        IntactCheckpoints(),
        SavesAtCadence(every=SAVE_EVERY, missed_max=missed_max),
        WithinRetries(attempts_max=attempts_max, own_failures_max=own_failures_max),
        MakesProgress(),
        NoHang(quiet_s=quiet_s),
        Goodput(),
        LogOrder(patterns=(r"(?i)starting from scratch", *log, r"^Completed \d+ steps")),
    )


def _resumes(lost_steps_max: int = SAVE_EVERY, *, after_sigterm_max: int | None = None) -> tuple[Expectation, ...]:
    """What a run owes besides that was interrupted, compared with one that was not."""
    return (
        ResumesFromNewestDurable(lost_steps_max=lost_steps_max, lost_steps_after_sigterm_max=after_sigterm_max),
        BitExactResume(),
        ExactlyOnceData(),
        SameResult(),
        RanksAgree(),
        SameRun(),
        RecoversWithin(total_s=60.0),
    )


KILLED_ONCE = (*_ends(attempts_max=2, log=(KILLED, RESUMED)), *_resumes())
LOST_A_PART = ("intact-checkpoints", "same-result")
"""What was loaded is not what was saved, and what comes of it is not what would have come of that."""
NEVER_CAME_BACK = ("completes", "log-order", "same-result")

# ---- trials, the longest first ---------------------------------------------------------------------------------------

TRIALS = (
    Trial(
        name="when-jax-is-given-notice",
        wrong={},
        right=("jax-gpu",),
        injections=(Injection(fault=Terminate(), at=AtStep(step=13)),),
        expects=(*_ends(attempts_max=2, quiet_s=QUIET_S_JAX), *_resumes(after_sigterm_max=0), GraceConduct()),
        step_s=0.05,
    ),
    Trial(
        name="when-nothing-happens-for-a-while",
        wrong={"stalls_in_saves": ()},
        right=("counter", "linear", "linear-ranks"),
        expects=(Completes(), Goodput(ratio_min=0.25)),
        step_s=0.05,
    ),
    Trial(
        name="when-given-notice-in-a-step-longer-than-the-grace",
        wrong={"reads_flag_between_long_steps": ("log-order",)},
        right=("linear",),
        injections=(Injection(fault=Terminate(), at=AtStep(step=1)),),
        platform=Platform(grace_s=1.0),
        expects=(
            *(promise for promise in _ends(attempts_max=2, log=(TOLD, RESUMED)) if not isinstance(promise, SavesAtCadence)),
            ResumesFromNewestDurable(lost_steps_max=1, lost_steps_after_sigterm_max=0),
            GraceConduct(),
        ),
        steps=2,
        step_s=1.3,
    ),
    Trial(
        name="when-given-notice-long-before-the-end",
        wrong={"ignores_sigterm": ("log-order",)},
        right=("counter", "linear", "linear-ranks"),
        injections=(Injection(fault=Terminate(), at=AtStep(step=6)),),
        platform=Platform(grace_s=1.0),
        expects=(
            *_ends(attempts_max=2, log=(TOLD, RESUMED)),
            ResumesFromNewestDurable(lost_steps_max=20, lost_steps_after_sigterm_max=0),
            GraceConduct(),
        ),
        step_s=0.15,
    ),
    Trial(
        name="when-an-attempt-lives-on-beside-the-next",
        wrong={"two_writers": ()},
        right=("linear", "linear-ranks"),
        injections=(Injection(fault=OverlapAttempts(zombie_s=4.0), at=AtStep(step=3)),),
        expects=(*_ends(attempts_max=2), ResumesFromNewestDurable(lost_steps_max=SAVE_EVERY), SingleWriter()),
        step_s=0.15,
    ),
    Trial(
        name="when-nothing-happens",
        wrong={
            "async_save_without_drain": ("saves-at-cadence",),
            "crash_loop": ("completes", "log-order", "within-retries"),
            "rank_hangs": ("completes", "log-order"),
        },
        right=("counter", "linear", "linear-ranks"),
        expects=_ends(attempts_max=1),
    ),
    Trial(
        name="when-killed-between-saves",
        wrong={
            "crashes_on_stale_lock": (),
            "forgets_average": (),
            "forgets_optimizer": LOST_A_PART,
            "forgets_rng": LOST_A_PART,
            "keeps_log_in_memory": (),
            "names_its_run_by_time": ("completes", "intact-checkpoints", "log-order", "resumes-from-newest-durable"),
            "off_by_one_on_resume": ("bit-exact-resume", "exactly-once-data", "same-result"),
            "renames_without_fsync": (),
            "saves_nothing": ("completes", "log-order", "saves-at-cadence"),
            "restarts_data_order": ("bit-exact-resume", *LOST_A_PART),
            "stale_learning_rate": ("same-result",),
            "starts_from_scratch": ("log-order", "same-run"),
        },
        right=("counter", "linear", "linear-ranks"),
        injections=(Injection(fault=Kill(), at=AtStep(step=13)),),
        expects=KILLED_ONCE,
    ),
    Trial(
        name="when-killed-at-the-end-of-an-epoch",
        wrong={"skips_epoch_at_boundary": ("same-result",)},
        right=("counter", "linear", "linear-ranks"),
        injections=(Injection(fault=Kill(), at=AtMarker(event="save.end", nth=2)),),
        expects=KILLED_ONCE,
    ),
    Trial(
        name="when-killed-twice",
        wrong={"data_order_wrong_on_second_resume": ("bit-exact-resume", *LOST_A_PART)},
        right=("counter", "linear", "linear-ranks"),
        injections=(Injection(fault=Kill(), at=AtMarker(event="step", nth=7), attempts=(0, 1)),),
        expects=(*_ends(attempts_max=3, log=(KILLED, RESUMED, KILLED, RESUMED)), *_resumes()),
    ),
    Trial(
        name="when-killed-as-a-save-begins",
        wrong={
            "deletes_old_before_new": ("log-order", "resumes-from-newest-durable"),
            "latest_before_data": ("log-order", "same-run"),
            "latest_names_a_path": ("log-order", "same-run"),
        },
        right=("counter", "linear", "linear-ranks"),
        injections=(Injection(fault=Kill(), at=AtMarker(event="save.begin", nth=2)),),
        expects=KILLED_ONCE,
    ),
    Trial(
        name="when-killed-while-a-checkpoint-is-written",
        wrong={
            "picks_incomplete_checkpoint": ("resumes-from-newest-durable",),
            "saves_in_place": ("log-order", "resumes-from-newest-durable", "same-run"),
        },
        right=("linear", "linear-ranks"),
        injections=(Injection(fault=Kill(), at=AtMarker(event="save.write", nth=4)),),
        expects=KILLED_ONCE,
    ),
    Trial(
        name="when-killed-before-a-commit",
        wrong={"crashes_on_stale_temporary": ("within-retries", *NEVER_CAME_BACK), "skips_saves_after_resume": ()},
        right=("counter", "linear", "linear-ranks"),
        injections=(Injection(fault=Kill(), at=AtMarker(event="save.commit", nth=2)),),
        expects=KILLED_ONCE,
    ),
    Trial(
        name="when-killed-before-the-pointer-moves",
        wrong={
            "ranks_restore_different_steps": ("bit-exact-resume", "exactly-once-data", "exit-codes", "same-result", "within-retries"),
        },
        right=("linear", "linear-ranks"),
        injections=(Injection(fault=Kill(), at=AtMarker(event="save.latest", nth=2)),),
        expects=KILLED_ONCE,
    ),
    Trial(
        name="when-one-rank-dies",
        wrong={},
        right=("linear-ranks",),
        injections=(Injection(fault=Kill(), at=AtStep(step=13), victim=Victim(rank=1)),),
        expects=(*_ends(attempts_max=2, log=(RESUMED,)), *_resumes()),
    ),
    Trial(
        name="when-given-notice",
        wrong={"exits_zero_on_sigterm": NEVER_CAME_BACK},
        right=("counter", "linear", "linear-ranks"),
        injections=(Injection(fault=Terminate(), at=AtStep(step=13)),),
        expects=(*_ends(attempts_max=2, log=(TOLD, RESUMED)), *_resumes(after_sigterm_max=0), GraceConduct()),
    ),
    Trial(
        name="when-the-disk-is-full-in-the-last-save",
        wrong={"swallows_save_error": ("log-order",)},
        right=("linear", "linear-ranks"),
        injections=(Injection(fault=FailWrites(error="ENOSPC", operations=1), at=AtMarker(event="save.begin", nth=4)),),
        expects=(*_ends(attempts_max=2, own_failures_max=1, missed_max=1, log=(RESUMED,)), *_resumes()),
    ),
    Trial(
        name="when-a-byte-flips",
        wrong={"restores_damaged_bytes": ("bit-exact-resume", "resumes-from-newest-durable", "same-result")},
        right=("linear", "linear-ranks"),
        injections=(Injection(fault=Kill(), at=AtStep(step=13), name="kill"), Injection(fault=FlipByte(), at=OnEffect(of="kill"))),
        expects=(*_ends(attempts_max=2, log=(KILLED, RESUMED)), *_resumes(2 * SAVE_EVERY)),
    ),
)


# ---- jobs ------------------------------------------------------------------------------------------------------------


def wrong_job(name: str) -> Workload:
    """A job of ``workloads/broken`` as the harness sees it."""
    return replace(
        RIGHT["linear"],
        name=name.replace("_", "-"),
        command=("{python}", "-m", f"workloads.broken.{name}"),
        layout=LAYOUTS.get(name, "step-directories"),
        ranks=RANKS.get(name, 1),
        sources=(f"workloads/broken/{name}.py", "workloads/linear", "workloads/protocol.py"),
    )


def wrong_trials() -> Iterator[tuple[str, Trial]]:
    """Each wrong job by name with the trial that reveals it."""
    yield from ((name, trial) for trial in TRIALS for name in trial.wrong)


def right_trials() -> Iterator[tuple[str, Trial]]:
    """Each right job by name with each trial that must not hurt it."""
    yield from ((name, trial) for trial in TRIALS for name in trial.right)
