"""JAX, optax and Orbax under the same faults: where the libraries' own state machines meet the platform's."""

from harness.scenario import Injection, Scenario, Victim
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExactlyOnceData,
    ExitCodes,
    GraceConduct,
    IntactCheckpoints,
    RanksAgree,
    ResumesFromNewestDurable,
    WithinRetries,
)
from harness.scenario.faults import AddEmptyStep, FailWrites, FlipByte, Kill, Maintenance, TearRename
from harness.scenario.triggers import AtMarker, AtOperation, AtStep, OnEffect
from scenarios.jobs import JAX_GPU, JAX_GPU_RANKS
from scenarios.promises import recovers

DEADLINE_S = 120.0
"""JAX takes seconds to import and to compile, in every attempt, and two cores may be shared."""

FIRST_IS_COMMITTED, SECOND_IS_COMMITTED = AtMarker(event="save.begin", nth=2), AtMarker(event="save.begin", nth=3)
"""A save begins when the one before it is on disk. On a busy machine it may still be under way at a step in between."""

FALLS_BACK = (
    Completes(),
    IntactCheckpoints(),
    ResumesFromNewestDurable(lost_steps_max=10),
    BitExactResume(),
    ExactlyOnceData(),
    WithinRetries(attempts_max=2),
)

SCENARIOS = (
    Scenario(
        name="jax-maintenance-on-one-process-really-saves",
        why="finding 6, case 33: without a distributed client Orbax's preemption save never fires",
        workload=JAX_GPU,
        injections=(Injection(fault=Maintenance(), at=AtStep(step=8)),),
        expects=(
            Completes(),
            IntactCheckpoints(),
            ResumesFromNewestDurable(lost_steps_max=5, lost_steps_after_sigterm_max=0),
            BitExactResume(),
            ExactlyOnceData(),
            ExitCodes(after_sigterm=(143,)),
            GraceConduct(margin_s_min=2.0),
            WithinRetries(attempts_max=2),
        ),
        deadline_s=DEADLINE_S,
        tags=("case-33", "jax"),
    ),
    Scenario(
        name="jax-sigkill-during-an-asynchronous-save-falls-back-to-the-committed-step",
        why="finding 5, case 16: latest_step names what is not committed yet",
        workload=JAX_GPU,
        injections=(Injection(fault=Kill(), at=FIRST_IS_COMMITTED),),
        expects=recovers(attempts_max=2, quiet_s=60.0),
        deadline_s=DEADLINE_S,
        tags=("case-1", "case-16", "jax"),
    ),
    Scenario(
        name="jax-sigkill-before-orbax-renames-a-step-into-place-falls-back-to-the-step-before",
        why="case 3: that one rename is the commit of a save; it is done by a thread of Orbax's own, while training goes on",
        workload=JAX_GPU,
        injections=(
            Injection(
                fault=Kill(),
                at=AtOperation(operation="rename", path="*.orbax-checkpoint-tmp", after="save.begin", after_nth=2, when="before"),
            ),
        ),
        expects=FALLS_BACK,
        deadline_s=DEADLINE_S,
        tags=("case-3", "jax"),
    ),
    Scenario(
        name="jax-a-flipped-byte-that-orbax-restores-silently-is-noticed-by-the-job",
        why="finding 4: a byte flip in an Orbax data file restores with no error and wrong values",
        workload=JAX_GPU,
        injections=(
            Injection(fault=Kill(), at=SECOND_IS_COMMITTED, name="kill"),
            Injection(fault=FlipByte(), at=OnEffect(of="kill")),
        ),
        expects=FALLS_BACK,
        deadline_s=DEADLINE_S,
        tags=("jax",),
    ),
    Scenario(
        name="jax-a-rename-torn-by-a-mounted-bucket-is-not-restored",
        why="case 3: Orbax takes a mount for a local path and renames; the torn step was chosen and the good one deleted",
        workload=JAX_GPU,
        injections=(
            Injection(fault=Kill(), at=SECOND_IS_COMMITTED, name="kill"),
            Injection(fault=TearRename(), at=OnEffect(of="kill")),
        ),
        expects=FALLS_BACK,
        deadline_s=DEADLINE_S,
        tags=("case-3", "jax"),
    ),
    Scenario(
        name="jax-an-empty-step-directory-that-orbax-calls-the-latest-is-not-restored",
        why="finding 4: an empty directory became latest_step",
        workload=JAX_GPU,
        injections=(
            Injection(fault=Kill(), at=AtStep(step=13), name="kill"),
            Injection(fault=AddEmptyStep(), at=OnEffect(of="kill")),
        ),
        expects=FALLS_BACK,
        deadline_s=DEADLINE_S,
        tags=("case-12", "jax"),
    ),
    Scenario(
        name="jax-a-full-disk-during-an-asynchronous-save-surfaces-and-costs-no-checkpoint",
        why="case 5: an asynchronous save failure was not surfaced",
        workload=JAX_GPU,
        injections=(Injection(fault=FailWrites(error="ENOSPC", duration_s=0.5), at=AtMarker(event="save.begin", nth=2)),),
        expects=(Completes(), IntactCheckpoints(), ExactlyOnceData(), WithinRetries(attempts_max=2, own_failures_max=1)),
        deadline_s=DEADLINE_S,
        tags=("case-5", "jax"),
    ),
    Scenario(
        name="jax-two-processes-save-one-step-at-sigterm-and-resume-bit-exactly",
        why="finding 6: with jax.distributed SIGTERM is swallowed by its notifier and becomes a sync point",
        workload=JAX_GPU_RANKS,
        injections=(Injection(fault=Maintenance(), at=AtStep(step=8)),),
        expects=(*recovers(attempts_max=2, quiet_s=60.0), RanksAgree(), GraceConduct(margin_s_min=0.5)),
        deadline_s=DEADLINE_S,
        tags=("jax",),
    ),
    Scenario(
        name="jax-the-death-of-one-of-two-processes-is-a-bounded-failure-and-resumes-bit-exactly",
        why="finding 7: survivors abort after the heartbeat, or hang",
        workload=JAX_GPU_RANKS,
        injections=(Injection(fault=Kill(), at=FIRST_IS_COMMITTED, victim=Victim(rank=1)),),
        expects=(*recovers(attempts_max=2, quiet_s=60.0), RanksAgree()),
        deadline_s=DEADLINE_S,
        tags=("jax", "case-34"),
    ),
)
