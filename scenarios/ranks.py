"""Several processes train together: one dies, all die, the coordinator dies, one stands still."""

from harness.scenario import Injection, Scenario, Victim
from harness.scenario.expectations import GraceConduct, RanksAgree
from harness.scenario.faults import Kill, Pause, Terminate
from harness.scenario.triggers import AtStep
from scenarios.jobs import LINEAR_RANKS
from scenarios.promises import recovers

GANG_RECOVERS = (*recovers(attempts_max=2), RanksAgree())

SCENARIOS = (
    Scenario(
        name="the-death-of-one-rank-ends-the-gang-and-all-ranks-resume-together",
        why="finding 7: survivors must not wait for a dead rank for ever",
        workload=LINEAR_RANKS,
        injections=(Injection(fault=Kill(), at=AtStep(step=13), victim=Victim(rank=1)),),
        expects=GANG_RECOVERS,
    ),
    Scenario(
        name="the-death-of-the-coordinator-ends-the-gang-and-all-ranks-resume-together",
        why="finding 7: the coordinator is a rank like any other to the platform, and not to the others",
        workload=LINEAR_RANKS,
        injections=(Injection(fault=Kill(), at=AtStep(step=13), victim=Victim(rank="coordinator")),),
        expects=GANG_RECOVERS,
    ),
    Scenario(
        name="the-death-of-all-ranks-at-once-resumes-together",
        why="a host dies with every process on it",
        workload=LINEAR_RANKS,
        injections=(Injection(fault=Kill(), at=AtStep(step=13)),),
        expects=GANG_RECOVERS,
    ),
    Scenario(
        name="sigterm-to-a-gang-is-one-save-of-one-step-by-all-ranks",
        why="the Cloud Run guide on several processes: all leave at the same step",
        workload=LINEAR_RANKS,
        injections=(Injection(fault=Terminate(), at=AtStep(step=13)),),
        expects=(*GANG_RECOVERS, GraceConduct(margin_s_min=3.0)),
    ),
    Scenario(
        name="a-rank-that-stands-still-for-a-second-delays-the-gang-and-ends-nothing",
        why="case 34 in small: alive but silent; recovery is owed only when it lasts",
        workload=LINEAR_RANKS,
        injections=(Injection(fault=Pause(duration_s=1.0), at=AtStep(step=13), victim=Victim(rank=1)),),
        expects=tuple(
            promise
            for promise in recovers(attempts_max=1)
            if promise.__struct_config__.tag in ("completes", "exactly-once-data", "within-retries", "no-hang")
        ),
        tags=("case-34",),
    ),
)
