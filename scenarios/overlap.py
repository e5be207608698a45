"""The platform loses sight of an attempt and starts the next one beside it: two writers on one directory."""

from harness.scenario import Injection, Scenario
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExactlyOnceData,
    IntactCheckpoints,
    ResumesFromNewestDurable,
    SingleWriter,
    WithinRetries,
)
from harness.scenario.faults import OverlapAttempts
from harness.scenario.triggers import AtMarker, AtStep
from scenarios.jobs import LINEAR

PROMISES = (
    Completes(),
    SingleWriter(),
    IntactCheckpoints(),
    ResumesFromNewestDurable(lost_steps_max=5),
    BitExactResume(),
    ExactlyOnceData(),
    WithinRetries(attempts_max=2),
)

SCENARIOS = (
    Scenario(
        name="a-zombie-attempt-between-saves-never-writes-beside-its-successor",
        why="cases 36, 42: a retry overlaps what is left of the first try; fencing by attempt",
        workload=LINEAR,
        injections=(Injection(fault=OverlapAttempts(zombie_s=2.0), at=AtStep(step=13)),),
        expects=PROMISES,
        tags=("case-36", "case-42"),
    ),
    Scenario(
        name="a-zombie-attempt-in-the-middle-of-a-save-does-not-commit-it",
        why="case 64: two writers of one object; the first flush must not win over the newer attempt",
        workload=LINEAR,
        injections=(Injection(fault=OverlapAttempts(zombie_s=2.0), at=AtMarker(event="save.begin", nth=3)),),
        expects=PROMISES,
        tags=("case-42", "case-64"),
    ),
)
