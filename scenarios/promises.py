"""Expectations that many scenarios share."""

from harness.scenario import Expectation
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExactlyOnceData,
    IntactCheckpoints,
    MakesProgress,
    NoHang,
    ResumesFromNewestDurable,
    SavesAtCadence,
    WithinRetries,
)


def recovers(*, attempts_max: int, save_every: int = 5, quiet_s: float = 20.0, own_failures_max: int = 0) -> tuple[Expectation, ...]:
    """What a job owes that keeps the whole promise: nothing torn, nothing skipped, the same bits, the same samples, to the end."""
    return (
        Completes(),
        IntactCheckpoints(),
        ResumesFromNewestDurable(lost_steps_max=save_every),
        BitExactResume(),
        ExactlyOnceData(),
        WithinRetries(attempts_max=attempts_max, own_failures_max=own_failures_max),
        SavesAtCadence(every=save_every),
        MakesProgress(),
        NoHang(quiet_s=quiet_s),
    )
