"""Judges runs: each expectation by its own checker, what every run owes by two more, and the worst of them decides."""

import traceback
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import cast

from harness.checkers import (
    admission,
    cadence,
    charging,
    completion,
    consumption,
    continuation,
    data_order,
    exactness,
    exit_codes,
    fencing,
    goodput,
    grace,
    hang,
    integrity,
    landed,
    leftovers,
    log_order,
    progress,
    ranks,
    recording,
    recovery,
    result,
    resume,
    retries,
    standing,
    submission,
)
from harness.checkers.evidence import Evidence, gather, unknown
from harness.history import History
from harness.scenario import Expectation, Scenario, name_of
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
from harness.verdict import Finding, Verdict, merge

__all__ = ["ALWAYS", "CHECKERS", "Evidence", "gather", "judge"]

Checker = Callable[[Expectation, Evidence], Finding]

ALWAYS: Mapping[str, Callable[[Evidence], Finding]] = MappingProxyType({landed.CHECKER: landed.check, recording.CHECKER: recording.check})
"""What every run owes: that its faults landed, and that it was recorded."""

CHECKERS: Mapping[type[Expectation], Checker] = MappingProxyType(
    {
        kind: cast("Checker", check)
        for kind, check in (
            (Completes, completion.check),
            (ExitCodes, exit_codes.check),
            (IntactCheckpoints, integrity.check),
            (ResumesFromNewestDurable, resume.check),
            (BitExactResume, exactness.check),
            (ExactlyOnceData, data_order.check),
            (WithinRetries, retries.check),
            (GraceConduct, grace.check),
            (SingleWriter, fencing.check),
            (MakesProgress, progress.check),
            (NoHang, hang.check),
            (LogOrder, log_order.check),
            (Goodput, goodput.check),
            (SavesAtCadence, cadence.check),
            (SameResult, result.check),
            (RanksAgree, ranks.check),
            (AdmittedTo, admission.check),
            (SubmittedOnce, submission.check),
            (SameRun, continuation.check),
            (ConsumesProvisioning, consumption.check),
            (WorkloadEnds, standing.check),
            (ChargesRetries, charging.check),
            (LeavesNothing, leftovers.check),
            (RecoversWithin, recovery.check),
        )
    }
)
"""Who checks what."""


def judge(scenario: Scenario, history: History, golden: History | None) -> Verdict:
    """Judge a run by what was recorded of it, and the uninterrupted run where there is one."""
    evidence = gather(scenario, history, golden)
    findings = [_safely(name, partial(check, evidence)) for name, check in ALWAYS.items()]
    for expectation in scenario.expects:
        check = CHECKERS[type(expectation)]
        findings.append(_safely(name_of(expectation), partial(check, expectation, evidence)))
    return merge(findings)


def _safely(name: str, check: Callable[[], Finding]) -> Finding:
    """A checker that crashes has proved nothing; what it would have said is unknown, and the traceback says why."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001  whatever a checker raises, the others are still to be heard
        return unknown(name, f"the checker itself failed: {type(error).__name__}: {error}", *traceback.format_exc().splitlines())
