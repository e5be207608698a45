"""A Ray Train job on a cluster of its own: its workers, nodes and head die, its node is drained, its snapshot is cut."""

from harness.scenario import Injection, Scenario, Victim
from harness.scenario.expectations import (
    Completes,
    IntactCheckpoints,
    RanksAgree,
    ResumesFromNewestDurable,
    WithinRetries,
)
from harness.scenario.faults import KillRayProcess, Terminate
from harness.scenario.triggers import AtStep
from scenarios.jobs import JAX_TPU

DEADLINE_S = 180.0
"""A JaxTrainer run costs 24 to 40 s on two cores; each restart of its workers a third of that again."""

SCENARIOS = (
    Scenario(
        name="ray-a-killed-train-worker-is-restarted-from-the-last-committed-report",
        why="training-stack T2: report returning is not commit; FailureConfig restarts the worker group inside the attempt",
        workload=JAX_TPU,
        injections=(Injection(fault=KillRayProcess(component="worker"), at=AtStep(step=8), victim=Victim(rank=1)),),
        expects=(
            Completes(),
            IntactCheckpoints(),
            ResumesFromNewestDurable(lost_steps_max=6),
            WithinRetries(attempts_max=1),
            RanksAgree(),
        ),
        deadline_s=DEADLINE_S,
        tags=("ray",),
    ),
    Scenario(
        name="ray-sigterm-to-the-driver-is-retried-under-the-same-run-name",
        why="training-stack T13, case 41: without a fixed run name a retry starts from scratch",
        workload=JAX_TPU,
        injections=(Injection(fault=Terminate(), at=AtStep(step=8)),),
        expects=(
            Completes(),
            IntactCheckpoints(),
            ResumesFromNewestDurable(lost_steps_max=6),
            WithinRetries(attempts_max=2),
            RanksAgree(),
        ),
        deadline_s=DEADLINE_S,
        tags=("ray", "case-41"),
    ),
)
