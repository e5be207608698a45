"""Hypothesis strategies for scenarios: every fault, trigger and promise, within the rules."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from harness.scenario import (
    Expectation,
    Fault,
    Injection,
    LogPatterns,
    Outside,
    Platform,
    Scenario,
    Schedule,
    Trigger,
    Victim,
    Workload,
    injection_name,
)
from harness.scenario.cluster_faults import (
    BreakNode,
    CordonNode,
    DeletePods,
    DrainNode,
    EvictPods,
    EvictWorkload,
    ForgetImage,
    InterruptNode,
    LimitNamespace,
    LoseNode,
    LosePool,
    LowerQuota,
    OccupyCapacity,
    PreemptWorkload,
    RestartComponent,
    RevokeCapacity,
)
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
from harness.scenario.faults import (
    AddEmptyStep,
    AddStaleTemporary,
    CancelExecution,
    DamageFault,
    DeletePath,
    DrainRayNode,
    EndGrace,
    ExpireTimeout,
    FailWrites,
    FlipByte,
    Kill,
    KillRayProcess,
    Maintenance,
    OverlapAttempts,
    Pause,
    SlowWrites,
    TearRename,
    Terminate,
    TruncateFile,
)
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, AtSubmission, OnCondition, OnEffect, OnLog
from tests.unit.strategies import POSITIVE, at_least, instances

RANKS, TASKS, RETRIES = 3, 4, 5

fractions = at_least(0.0, below=1.0)
counts = st.integers(0, 1000)
positive_counts = st.integers(1, 1000)
ranks = st.integers(0, RANKS - 1)
words = st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True)
patterns = st.sampled_from([r"step (\d+)", "^saved", "SIGTERM|kill", "", "ü+"])
step_patterns = st.sampled_from(["", r"step (?P<step>\d+)", r"^(?P<step>\d+):"])

flavors = st.lists(st.lists(st.sampled_from(["on-demand", "dws"]), max_size=3).map(tuple), min_size=1, max_size=TASKS).map(tuple)

FAULTS: dict[type[Fault], st.SearchStrategy[Fault]] = {
    Terminate: instances(Terminate),
    EndGrace: instances(EndGrace),
    Kill: instances(Kill),
    Pause: instances(Pause, {"duration_s": POSITIVE}),
    Maintenance: instances(Maintenance),
    ExpireTimeout: instances(ExpireTimeout),
    CancelExecution: instances(CancelExecution),
    OverlapAttempts: instances(OverlapAttempts, {"zombie_s": POSITIVE}),
    DrainRayNode: instances(DrainRayNode, {"deadline_s": POSITIVE}),
    KillRayProcess: instances(KillRayProcess),
    FlipByte: instances(FlipByte, {"at_fraction": fractions}),
    TruncateFile: instances(TruncateFile, {"keep_fraction": fractions}),
    DeletePath: instances(DeletePath),
    TearRename: instances(TearRename, {"moved_fraction": fractions}),
    AddEmptyStep: instances(AddEmptyStep, {"steps_ahead": positive_counts}),
    AddStaleTemporary: instances(AddStaleTemporary),
    FailWrites: instances(FailWrites, {"operations": counts, "duration_s": POSITIVE}),
    SlowWrites: instances(SlowWrites, {"delay_s": POSITIVE, "duration_s": POSITIVE}),
    DeletePods: instances(DeletePods, {"grace_s": st.none() | counts}),
    EvictPods: instances(EvictPods),
    InterruptNode: instances(InterruptNode, {"notice_s": at_least(0.0), "duration_s": POSITIVE}),
    LowerQuota: instances(LowerQuota, {"to": counts, "duration_s": POSITIVE}),
    LimitNamespace: instances(LimitNamespace, {"chips": counts, "duration_s": POSITIVE}),
    OccupyCapacity: instances(OccupyCapacity, {"chips": counts, "duration_s": POSITIVE}),
    RevokeCapacity: instances(RevokeCapacity, {"reactivate_s": at_least(0.0)}),
    RestartComponent: instances(RestartComponent),
    **{
        kind: instances(kind, {"duration_s": POSITIVE})
        for kind in (CordonNode, DrainNode, BreakNode, LoseNode, LosePool, EvictWorkload, PreemptWorkload, ForgetImage)
    },
}

operations = instances(
    AtOperation,
    {
        "path": st.sampled_from([".", "step_*/data", "latest.tmp-*"]),
        "nth": positive_counts,
        "after": st.sampled_from(["", "save.begin"]),
        "after_nth": st.just(1),
        "rank": ranks,
    },
)

TRIGGERS: dict[type[Trigger], st.SearchStrategy[Trigger]] = {
    AtStep: instances(AtStep, {"step": positive_counts, "rank": ranks}),
    AtMarker: instances(AtMarker, {"event": st.sampled_from(["step", "save.begin", "gc"]), "nth": positive_counts, "rank": ranks}),
    AtOperation: operations | operations.map(lambda at: msgspec.structs.replace(at, after="save.begin", after_nth=at.nth)),
    OnLog: instances(OnLog, {"pattern": patterns, "nth": positive_counts}),
    AfterSeconds: instances(AfterSeconds, {"seconds": at_least(0.0)}),
    OnEffect: instances(OnEffect, {"of": words}),
    AtSubmission: instances(AtSubmission),
    OnCondition: instances(OnCondition, {"condition": st.sampled_from(["Admitted", "Provisioned", "Running"]), "nth": positive_counts}),
}

EXPECTATIONS: dict[type[Expectation], st.SearchStrategy[Expectation]] = {
    Completes: instances(Completes),
    ExitCodes: instances(ExitCodes),
    IntactCheckpoints: instances(IntactCheckpoints),
    ResumesFromNewestDurable: instances(
        ResumesFromNewestDurable, {"lost_steps_max": counts, "lost_steps_after_sigterm_max": st.none() | counts}
    ),
    BitExactResume: instances(BitExactResume),
    ExactlyOnceData: instances(ExactlyOnceData),
    WithinRetries: instances(WithinRetries, {"attempts_max": positive_counts, "own_failures_max": counts}),
    GraceConduct: instances(GraceConduct, {"margin_s_min": at_least(0.0)}),
    SingleWriter: instances(SingleWriter),
    MakesProgress: instances(MakesProgress, {"cycles_max": positive_counts}),
    NoHang: instances(NoHang, {"quiet_s": POSITIVE}),
    LogOrder: instances(LogOrder, {"patterns": st.lists(patterns, min_size=1, max_size=3).map(tuple)}),
    Goodput: instances(Goodput, {"ratio_min": st.floats(0, 1), "recovery_s_max": st.none() | POSITIVE}),
    SavesAtCadence: instances(SavesAtCadence, {"every": positive_counts, "missed_max": counts}),
    SameResult: instances(SameResult),
    RanksAgree: instances(RanksAgree),
    AdmittedTo: instances(AdmittedTo, {"flavors": flavors, "within_s": at_least(0.0), "watched_s": POSITIVE}),
    SubmittedOnce: instances(SubmittedOnce),
    SameRun: instances(SameRun),
    ConsumesProvisioning: instances(ConsumesProvisioning),
    WorkloadEnds: instances(WorkloadEnds, {"message": patterns, "watched_s": POSITIVE}),
    ChargesRetries: instances(ChargesRetries, {"failed_max": counts}),
    LeavesNothing: instances(LeavesNothing),
    RecoversWithin: instances(RecoversWithin, {"total_s": POSITIVE}),
}

faults = st.one_of(list(FAULTS.values()))
triggers = st.one_of(list(TRIGGERS.values()))

outsides = instances(
    Outside,
    {
        "logs": instances(
            LogPatterns, dict.fromkeys(("step", "saved", "resumed"), step_patterns) | {"sigterm": patterns, "done": patterns}
        ),
        "inspect_timeout_s": POSITIVE,
        "recovery_timeout_s": POSITIVE,
        "result": st.sampled_from(["", "{checkpoint_dir}/final.json"]),
    },
)
platforms = st.builds(
    Platform,
    tasks=st.just(TASKS),
    parallelism=st.integers(0, TASKS),
    max_retries=st.integers(RETRIES, 10),
    timeout_s=POSITIVE,
    grace_s=POSITIVE,
)
workloads = instances(
    Workload,
    {
        "name": words,
        "command": st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=3).map(tuple),
        "steps": counts,
        "save_every": counts,
        "environment": st.dictionaries(st.sampled_from(["STEPS", "_x", "A1"]), st.text(max_size=5)),
        "checkpoints": st.sampled_from([".", "run/checkpoints"]),
        "directory": st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=9),
        "ranks": st.just(RANKS),
        "outside": outsides,
    },
).map(lambda workload: msgspec.structs.replace(workload, ranks=RANKS))


@st.composite
def injections(draw: st.DrawFn) -> tuple[Injection, ...]:
    """Up to four faults, those that wait for an effect after the one that they wait for, damage to storage after an attempt's end."""
    found: list[Injection] = []
    for number in range(draw(st.integers(0, 4))):
        fault = draw(faults)
        earlier = [injection_name(tuple(found), index) for index in range(len(found))]
        ending = [name for name, before in zip(earlier, found, strict=True) if before.fault == Kill() and before.victim.rank == "all"]
        if isinstance(fault, DamageFault) and not ending:
            fault = Kill()
        notices = [before for before in found if isinstance(before.fault, Terminate)]
        if isinstance(fault, EndGrace) and not notices:
            fault = Terminate()
        of = draw(st.sampled_from(ending if isinstance(fault, DamageFault) else ["", *earlier]))
        at = OnEffect(of=of) if of else draw(triggers.filter(lambda at: not isinstance(at, OnEffect)))
        acts_once = isinstance(at, OnEffect | AtSubmission | OnCondition)
        victim = Victim(task=draw(st.integers(0, TASKS - 1)), rank=draw(_rank_of(fault)))
        attempts = tuple(draw(st.lists(st.integers(0, RETRIES), min_size=1, max_size=1 if acts_once else None, unique=True)))
        if isinstance(fault, EndGrace):
            victim, attempts = notices[0].victim, notices[0].attempts[: 1 if acts_once else None]
        found.append(
            Injection(
                fault=fault,
                at=at,
                victim=victim,
                attempts=attempts,
                name=draw(st.sampled_from(["", f"fault-{number}"])),
            )
        )
    return tuple(found)


def _rank_of(fault: Fault) -> st.SearchStrategy[Any]:
    if isinstance(fault, OverlapAttempts | CancelExecution):
        return st.just("all")
    one: st.SearchStrategy[Any] = st.one_of(ranks, st.just("coordinator"))
    return one if isinstance(fault, KillRayProcess) and fault.component == "worker" else one | st.just("all")


schedules = injections().map(lambda found: Schedule(injections=found))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A scenario within the rules."""
    kinds = draw(st.lists(st.sampled_from(list(EXPECTATIONS)), min_size=1, max_size=5, unique=True))
    workload, found = draw(workloads), draw(injections())
    if any(isinstance(one.at, AtOperation) and one.at.after for one in found):
        workload = msgspec.structs.replace(workload, speaks_protocol=True)  # who holds operations hears no log
    return Scenario(
        name=draw(st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9}){1,4}", fullmatch=True)),
        why=draw(st.text(min_size=1, max_size=20).filter(str.strip)),
        workload=workload,
        platform=draw(platforms),
        injections=found,
        expects=tuple(draw(EXPECTATIONS[kind]) for kind in kinds),
        within_budget=draw(st.booleans()),
        deadline_s=draw(POSITIVE),
        tags=tuple(draw(st.lists(words, max_size=2))),
    )
