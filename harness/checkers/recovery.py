"""From each fault to the first new step it takes no longer than promised, told in parts that add up."""

from harness.checkers.evidence import Evidence, Ruling
from harness.history import TaskFinished
from harness.ledger import Ledger, Recovery, keep
from harness.scenario.expectations import RecoversWithin
from harness.verdict import Finding

CHECKER = "recovers-within"

UNACCOUNTED_S_MAX = 0.001
"""Rounding of times in the history."""


def check(expectation: RecoversWithin, evidence: Evidence) -> Finding:
    """Judge every recovery, and every fault that nothing new has followed."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost_words())
    ledgers = [ledger for task in evidence.lineage.tasks if (ledger := keep(evidence.lineage, task)) is not None]
    recoveries = [(ledger.task, recovery) for ledger in ledgers for recovery in ledger.recoveries]
    for task, recovery in recoveries:
        _judge(task, recovery, expectation, evidence=evidence, ruling=ruling)
    for ledger in ledgers:
        _judge_unrecovered(ledger, expectation, evidence, ruling)
    worst = max((recovery for _, recovery in recoveries), key=lambda recovery: recovery.seconds, default=None)
    if worst is not None:
        parts = {f"{name.replace('-', '_')}_s": worst.parts[name] for name in sorted(worst.parts)}
        ruling.measures = {"recovery_s": worst.seconds, **parts}
    nothing = "" if recoveries else "nothing was interrupted and went on again, so no recovery was measured"
    kept = f"each of {len(recoveries)} recoveries took at most {expectation.total_s:g} s; the longest {_parts(worst) if worst else ''}"
    return ruling.conclude(CHECKER, kept, nothing=nothing)


def _parts(recovery: Recovery) -> str:
    told = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in recovery.parts.items() if seconds > 0)
    return f"{recovery.seconds:.2f} s ({told})"


def _judge(task: int, recovery: Recovery, expectation: RecoversWithin, *, evidence: Evidence, ruling: Ruling) -> None:
    told = f"task {task} attempt {recovery.attempt}: hit at {recovery.fault_s:.2f} s, recovered in {_parts(recovery)}"
    ruling.facts.append(told)
    missing_s = recovery.seconds - sum(recovery.parts.values())
    if abs(missing_s) > UNACCOUNTED_S_MAX:
        ruling.doubts.append(f"{told}: the parts do not add up, {missing_s:.3f} s are in none of them")
    if recovery.seconds > expectation.total_s:
        (ruling.doubts if evidence.lost_words() else ruling.broken).append(f"{told}, {expectation.total_s:g} s are promised")


def _judge_unrecovered(ledger: Ledger, expectation: RecoversWithin, evidence: Evidence, ruling: Ruling) -> None:
    """Outside the budget no recovery is owed; a fault shortly before the end may have been recovered from yet."""
    if not evidence.scenario.within_budget:
        return
    for fault_s in ledger.unrecovered_s:
        waited_s = _over_s(ledger, evidence) - fault_s
        told = f"task {ledger.task} was hit at {fault_s:.2f} s and had not recovered {waited_s:.2f} s later, at its end"
        is_late = waited_s > expectation.total_s and not evidence.lost_words()
        (ruling.broken if is_late else ruling.doubts).append(told)


def _over_s(ledger: Ledger, evidence: Evidence) -> float:
    """When no more was to come of a task: its end as the platform saw it, else that of the run."""
    ended = [event.t_s for event in evidence.of_type(TaskFinished) if event.task == ledger.task]
    ended = ended or ([evidence.closed.t_s] if evidence.closed is not None else [])
    return max([*ended, ledger.end_s])
