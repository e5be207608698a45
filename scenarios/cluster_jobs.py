"""Jobs, places and promises that scenarios of clusters share."""

from collections.abc import Sequence

import msgspec

from harness.scenario import Cluster, Expectation, Injection, Phase, Platform, ProvisioningScript, Scenario, Workload
from harness.scenario.cluster_faults import OccupyCapacity
from harness.scenario.expectations import (
    AdmittedTo,
    ChargesRetries,
    Completes,
    IntactCheckpoints,
    LeavesNothing,
    ResumesFromNewestDurable,
    SameRun,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.scenario.triggers import AtSubmission
from scenarios.jobs import COUNTER

EVERY = 5
"""Steps between the periodic saves of all jobs here."""

DEADLINE_S = 180.0
"""A pod starts within seconds, one that replaces a failed one ten seconds later, and after the loss of a node a minute passes."""

KEPT_S = 300.0
"""Longer than any of these runs: healed at its end."""


def paced(workload: Workload, *, steps: int, step_s: float, **environment: str) -> Workload:
    """A job that lasts about ``steps`` times ``step_s``."""
    own = {"STEPS": str(steps), "STEP_SECONDS": str(step_s), **environment}
    return msgspec.structs.replace(workload, steps=steps, environment={**workload.environment, **own})


POD = paced(COUNTER, steps=40, step_s=0.2)
"""One host, eight seconds."""

LONG_POD = paced(COUNTER, steps=100, step_s=0.2)
"""Twenty seconds: something of it is left when what happens to it takes a while to be seen."""

ON_DEMAND, DWS = "on-demand", "dws"

TAKEN = Injection(fault=OccupyCapacity(duration_s=KEPT_S), at=AtSubmission(), name="on-demand-taken")
"""Another job has all on-demand chips before ours is submitted, and keeps them."""


def script(*phases: Phase) -> ProvisioningScript:
    """What becomes of a request."""
    return ProvisioningScript(phases=phases)


def runs_through(*flavors: str, attempts_max: int = 1, failed_max: int = 0) -> tuple[Expectation, ...]:
    """What a job owes on a cluster that nothing ends: to the end, submitted once, on the queue's flavors, and nothing left behind."""
    return (
        Completes(),
        IntactCheckpoints(),
        WithinRetries(attempts_max=attempts_max),
        SubmittedOnce(),
        AdmittedTo(flavors=(flavors,)),
        ChargesRetries(failed_max=failed_max),
        WorkloadEnds(state="finished"),
        LeavesNothing(),
    )


def goes_on(
    *flavors: str, attempts_max: int, failed_max: int = 0, lost_steps_max: int = EVERY, after_sigterm_max: int | None = None
) -> tuple[Expectation, ...]:
    """What it owes when something does: all that, in the run that it began, from what it had saved."""
    return (
        *runs_through(*flavors, attempts_max=attempts_max, failed_max=failed_max),
        ResumesFromNewestDurable(lost_steps_max=lost_steps_max, lost_steps_after_sigterm_max=after_sigterm_max),
        SameRun(),
    )


SHORT = frozenset(
    {
        "the-guides-two-rayjobs-run-on-demand-and-on-dws-and-both-complete",
        "a-rayjob-with-checkpoints-runs-on-a-slice-and-leaves-nothing",
        "a-deleted-pod-saves-in-its-grace-and-its-replacement-loses-no-step",
        "the-death-of-one-host-of-two-ends-the-other-and-both-resume-bit-exactly",
        "a-host-error-costs-a-pod-and-one-interval",
        "a-spot-node-that-is-taken-away-leaves-fifteen-seconds-which-are-enough",
        "the-guides-queue-does-not-fall-back-when-its-pool-is-lost-and-the-job-resumes-when-it-returns",
        "a-queue-that-knows-its-nodes-falls-back-to-dws-when-its-pool-is-lost",
        "a-job-that-finds-the-on-demand-quota-taken-falls-back-to-dws-by-itself",
        "a-stockout-of-on-demand-nodes-does-not-fall-back-and-the-job-starts-when-nodes-come",
        "a-request-that-waits-out-a-stockout-is-granted-without-being-made-again",
        "capacity-that-is-revoked-stops-the-job-for-good-with-its-checkpoint-intact",
        "a-job-that-kueue-evicts-saves-and-goes-on-when-it-is-active-again-uncharged",
        "a-restart-of-kueue-evicts-nobody",
    }
)
"""The guide's proof, its four outcomes, and one scenario of each kind of failure: what `make chaos-kind` runs."""


def on_cluster(
    name: str,
    why: str,
    *injections: Injection,
    expects: Sequence[Expectation],
    workload: Workload = POD,
    cluster: Cluster | None = None,
    platform: Platform | None = None,
    within_budget: bool = True,
    deadline_s: float = DEADLINE_S,
    tags: tuple[str, ...] = (),
) -> Scenario:
    """A scenario that runs where there is a cluster."""
    return Scenario(
        name=name,
        why=why,
        workload=workload,
        platform=platform or Platform(grace_s=10.0),
        cluster=cluster or Cluster(),
        injections=injections,
        expects=tuple(expects),
        within_budget=within_budget,
        deadline_s=deadline_s,
        tags=("cluster", *(("short",) if name in SHORT else ()), *tags),
    )
