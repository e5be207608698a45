"""Storage refuses or drags its feet while the job saves; the last good checkpoint stays, and saving goes on when storage does."""

from harness.scenario import Injection, Scenario
from harness.scenario.expectations import (
    Completes,
    ExactlyOnceData,
    IntactCheckpoints,
    NoHang,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import FailWrites, Fault, SlowWrites
from harness.scenario.triggers import AtMarker
from scenarios.jobs import LINEAR


def _during_a_save(name: str, why: str, fault: Fault, *, missed_max: int, tags: tuple[str, ...] = ()) -> Scenario:
    return Scenario(
        name=name,
        why=why,
        workload=LINEAR,
        injections=(Injection(fault=fault, at=AtMarker(event="save.begin", nth=3)),),
        expects=(
            Completes(),
            IntactCheckpoints(),
            ExactlyOnceData(),
            SavesAtCadence(every=5, missed_max=missed_max),
            WithinRetries(attempts_max=1),
            NoHang(quiet_s=20.0),
        ),
        tags=tags,
    )


SCENARIOS = (
    _during_a_save(
        "a-full-disk-costs-a-save-but-no-checkpoint-and-no-training",
        "cases 5, 14, 62: no space in a save",
        FailWrites(error="ENOSPC", duration_s=0.05),
        missed_max=1,
        tags=("case-5", "case-14", "case-62"),
    ),
    _during_a_save(
        "an-io-error-costs-a-save-but-no-checkpoint-and-no-training",
        "case 5: a save failure must surface",
        FailWrites(error="EIO", operations=1),
        missed_max=1,
        tags=("case-5",),
    ),
    _during_a_save(
        "read-only-storage-for-a-moment-costs-a-save-but-no-training",
        "a volume remounted read-only after an error",
        FailWrites(error="EROFS", duration_s=0.05),
        missed_max=1,
    ),
    _during_a_save(
        "a-stale-handle-costs-a-save-but-no-checkpoint",
        "case 64: two mounts of one object give ESTALE",
        FailWrites(error="ESTALE", operations=1),
        missed_max=1,
        tags=("case-64",),
    ),
    _during_a_save(
        "slow-storage-delays-saves-and-loses-none",
        "a throttled bucket: each operation takes longer",
        SlowWrites(delay_s=0.01, duration_s=0.5),
        missed_max=0,
    ),
)
