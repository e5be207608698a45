"""A Ray Train job on a cluster of its own: its workers, nodes and head die, its node is drained, its checkpoints and its snapshot are hurt.

Ray restarts workers inside an attempt, from the last report that its controller has committed; what takes the cluster away ends the
attempt, and the retry goes on from that same report, found by the name of the run.
"""

import msgspec

from harness.scenario import Expectation, Fault, Injection, Platform, Scenario, Victim, Workload
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExactlyOnceData,
    ExitCodes,
    GraceConduct,
    IntactCheckpoints,
    LogOrder,
    MakesProgress,
    NoHang,
    RanksAgree,
    ResumesFromNewestDurable,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import (
    AddStaleTemporary,
    DeletePath,
    DrainRayNode,
    FlipByte,
    Kill,
    KillRayProcess,
    Pause,
    Terminate,
    TruncateFile,
)
from harness.scenario.triggers import AtMarker, AtStep, OnEffect
from scenarios.jobs import JAX_TPU

DEADLINE_S = 400.0
"""A JaxTrainer run costs 15 to 40 s on two cores, by what else they do; only a hang takes this long."""

EVERY = JAX_TPU.save_every
COMMITTED = AtMarker(event="save.end", nth=2)
"""The controller has just written the second report into its snapshot, and waits: a kill here tears no file, which step 6 proves."""


def _variant(*, steps: int = JAX_TPU.steps, save_every: int = EVERY, **environment: str) -> Workload:
    environment = {**JAX_TPU.environment, "STEPS": str(steps), "SAVE_EVERY": str(save_every), **environment}
    return msgspec.structs.replace(JAX_TPU, steps=steps, save_every=save_every, environment=environment)


LONG_STEPS = _variant(steps=20, save_every=10, STEP_SECONDS="1")
"""Ray gives up a dead head after five seconds and then ends its controller: not while that writes its snapshot, so the next save is far."""

PACED = _variant(STEP_SECONDS="0.4")
"""Three seconds of training are left after step 4: the driver must stop it, it does not just end."""

LATE_COMMITS = _variant(STEP_SECONDS="0.5", RAY_TRAIN_HEALTH_CHECK_INTERVAL_S="5")
"""The controller commits the report of step 3 when it lets that of step 6 in, and that one five seconds later: long after step 8."""

TWO_NODES = _variant(steps=24, STEP_SECONDS="0.5", RAY_NODES="2", MAX_FAILURES="1")
"""One failure is the budget: the death of a node must cost no more."""

DRAINED = _variant(steps=60, save_every=60, STEP_SECONDS="0.5", RAY_NODES="2", MAX_FAILURES="0")
"""Saves when it is told of a preemption, and else at its end alone. Long enough for Ray's command line, which announces one in seconds."""


DRAINED_STEP = 16
"""Eight seconds into the training: more than Ray needs from the save to the end of the workers, so a job that did not save loses more."""


def _resumes(*, attempts_max: int, lost_steps_max: int = 2 * EVERY) -> tuple[Expectation, ...]:
    """What is owed after every death: the report before the last may have been committed late, so up to two intervals may be lost."""
    return (
        Completes(),
        IntactCheckpoints(),
        ResumesFromNewestDurable(lost_steps_max=lost_steps_max),
        WithinRetries(attempts_max=attempts_max),
        RanksAgree(),
    )


EXACTLY = (BitExactResume(), ExactlyOnceData())
"""Compared with two uninterrupted runs, which take their time: not in the fast set."""


def _slow(
    name: str, why: str, *injections: Injection, expects: tuple[Expectation, ...], workload: Workload = JAX_TPU, tags: tuple[str, ...] = ()
) -> Scenario:
    return Scenario(
        name=name, why=why, workload=workload, injections=injections, expects=expects, deadline_s=DEADLINE_S, tags=("ray", "slow", *tags)
    )


def _hurt_at_rest(fault: Fault) -> tuple[Injection, ...]:
    """All processes die right after a commit, and before the retry starts the checkpoints are hurt."""
    return (Injection(fault=Kill(), at=COMMITTED, name="kill"), Injection(fault=fault, at=OnEffect(of="kill")))


def _unstartable(name: str, why: str, fault: Fault) -> Scenario:
    return Scenario(
        name=name,
        why=why,
        workload=JAX_TPU,
        platform=Platform(max_retries=2),
        injections=_hurt_at_rest(fault),
        expects=(
            Completes(),
            WithinRetries(attempts_max=3, own_failures_max=2),
            LogOrder(patterns=("Ray cannot start the run", "Ray cannot start the run")),
            NoHang(quiet_s=120.0),
        ),
        within_budget=False,
        deadline_s=DEADLINE_S,
        tags=("ray", "slow"),
    )


WORKERS = (
    Scenario(
        name="ray-a-killed-train-worker-is-restarted-from-the-last-committed-report",
        why="finding 2: report returning is not commit; FailureConfig restarts the worker group inside the attempt",
        workload=JAX_TPU,
        injections=(Injection(fault=KillRayProcess(component="worker"), at=AtStep(step=8), victim=Victim(rank=1)),),
        expects=(*_resumes(attempts_max=1), SavesAtCadence(every=EVERY)),
        deadline_s=DEADLINE_S,
        tags=("ray",),
    ),
    _slow(
        "ray-two-worker-groups-that-die-in-one-attempt-cost-no-retry-and-no-bit",
        "the GKE guide with FailureConfig: the second resume is where a data order goes wrong that the first one got right",
        Injection(fault=KillRayProcess(component="worker"), at=AtStep(step=5), victim=Victim(rank="coordinator")),
        Injection(fault=KillRayProcess(component="worker"), at=AtStep(step=10), victim=Victim(rank=1)),
        expects=(*_resumes(attempts_max=1), *EXACTLY, SavesAtCadence(every=EVERY)),
    ),
    _slow(
        "ray-a-rank-that-stands-still-for-a-second-delays-the-others-and-ends-nothing",
        "case 34 in small: Ray must not take a worker for dead that is only slow",
        Injection(fault=Pause(duration_s=1.0), at=AtStep(step=8), victim=Victim(rank=1)),
        expects=(Completes(), IntactCheckpoints(), WithinRetries(attempts_max=1), ExactlyOnceData(), NoHang(quiet_s=120.0)),
        tags=("case-34",),
    ),
)

DRIVERS = (
    Scenario(
        name="ray-sigterm-to-the-driver-is-retried-under-the-same-run-name",
        why="finding 13, case 41: without a fixed run name a retry starts from scratch",
        workload=PACED,
        injections=(Injection(fault=Terminate(), at=AtStep(step=4)),),
        expects=(*_resumes(attempts_max=2), ExitCodes(after_sigterm=(143,)), MakesProgress()),
        deadline_s=DEADLINE_S,
        tags=("ray", "case-41"),
    ),
    _slow(
        "ray-sigterm-ends-the-driver-and-its-cluster-within-the-grace",
        "ray 2.60.0: Ray's driver handles SIGINT only, so the job must stop its workers and its cluster by itself",
        Injection(fault=Terminate(), at=AtStep(step=4)),
        expects=(*_resumes(attempts_max=2), *EXACTLY, ExitCodes(after_sigterm=(143,)), GraceConduct(saves=False)),
        workload=PACED,
    ),
    _slow(
        "ray-a-retry-that-is-killed-while-its-cluster-starts-costs-a-retry-and-nothing-else",
        "kill during recovery: what a half started cluster leaves behind must not stop the next one",
        Injection(fault=Kill(), at=COMMITTED),
        Injection(fault=Kill(), at=AtMarker(event="ray.up"), attempts=(1,)),
        expects=(*_resumes(attempts_max=3), *EXACTLY),
    ),
)

NODES = (
    _slow(
        "ray-the-death-of-a-raylet-moves-its-workers-to-the-other-node-within-the-attempt",
        "a node is lost without notice: FailureConfig restarts the worker group on what is left of the cluster",
        Injection(fault=KillRayProcess(component="raylet"), at=AtStep(step=8)),
        expects=_resumes(attempts_max=1, lost_steps_max=4 * EVERY),  # a rank may train on until the death of its node is noticed
        workload=TWO_NODES,
    ),
    _slow(
        "ray-the-death-of-the-only-raylet-ends-the-attempt-and-the-retry-resumes",
        "a cluster of one node has nowhere to go: the attempt must end by itself, for the platform to try again",
        Injection(fault=KillRayProcess(component="raylet"), at=AtStep(step=LONG_STEPS.save_every + 1)),
        expects=(*_resumes(attempts_max=2, lost_steps_max=2 * LONG_STEPS.save_every), MakesProgress()),
        workload=LONG_STEPS,
    ),
    _slow(
        "ray-the-death-of-the-head-ends-the-attempt-and-the-retry-finds-its-checkpoints",
        "case 41: the head is killed and the new driver ignored the checkpoints",
        Injection(fault=KillRayProcess(component="head"), at=AtStep(step=LONG_STEPS.save_every + 1)),
        expects=(*_resumes(attempts_max=2, lost_steps_max=2 * LONG_STEPS.save_every), MakesProgress()),
        workload=LONG_STEPS,
        tags=("case-41",),
    ),
    _slow(
        "ray-a-drained-node-is-left-with-a-save-and-charged-to-no-failure",
        "ray 2.60.0: get_preemption_info tells the ranks, they save, and a preemption does not use up FailureConfig",
        Injection(fault=DrainRayNode(deadline_s=2.0), at=AtStep(step=DRAINED_STEP)),
        expects=_resumes(attempts_max=1, lost_steps_max=DRAINED_STEP),
        workload=DRAINED,
    ),
)

STORAGE = (
    _slow(
        "ray-an-attempt-killed-between-a-report-and-its-commit-resumes-from-the-report-before",
        "finding 2: a report that returned and was not committed leaves an orphan, which nobody may resume from",
        Injection(fault=Kill(), at=AtStep(step=8)),
        expects=(*_resumes(attempts_max=2), MakesProgress()),
        workload=LATE_COMMITS,
    ),
    _slow(
        "ray-an-orphan-directory-of-a-cut-report-is-never-resumed-from",
        "finding 2: what the snapshot does not name is no checkpoint, however new it is",
        *_hurt_at_rest(AddStaleTemporary()),
        expects=(*_resumes(attempts_max=2), *EXACTLY),
    ),
    _slow(
        "ray-a-flipped-byte-in-a-checkpoint-is-noticed-and-the-older-one-is-used",
        "finding 4: Ray hands over what lies there; only the job can tell that it is not what was saved",
        *_hurt_at_rest(FlipByte()),
        expects=(*_resumes(attempts_max=2), *EXACTLY),
    ),
    _unstartable(
        "ray-a-truncated-snapshot-ends-the-run-in-bounded-time-and-says-so",
        "finding 3: one file, written in place, without which Ray starts nothing; no retry mends it",
        TruncateFile(path_class="snapshot"),
    ),
    _unstartable(
        "ray-a-lost-checkpoint-that-the-snapshot-names-ends-the-run-in-bounded-time",
        "finding 3: one directory that is gone, and Ray refuses the run, an older checkpoint notwithstanding",
        DeletePath(path_class="step"),
    ),
)

SCENARIOS = (*WORKERS, *DRIVERS, *NODES, *STORAGE)
