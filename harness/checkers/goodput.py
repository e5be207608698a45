"""The ledger of time adds up, and keeps within the bounds of the scenario."""

from harness.checkers.evidence import Evidence, Ruling
from harness.ledger import CATEGORIES, Ledger, keep
from harness.scenario.expectations import Goodput
from harness.verdict import Finding

CHECKER = "goodput"


def check(expectation: Goodput, evidence: Evidence) -> Finding:
    """Judge every task; the worst one is measured. A task that never did a step has been productive for no second of its time."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost_words())
    ledgers = [ledger for task in evidence.lineage.tasks if (ledger := keep(evidence.lineage, task)) is not None and ledger.wall_s > 0]
    if not any(span.step >= 0 for ledger in ledgers for span in ledger.spans):
        return ruling.conclude(CHECKER, "", nothing="no step was recorded, so no time can be called productive")
    for ledger in ledgers:
        _judge_ratio(ledger, expectation, evidence, ruling)
        _judge_recoveries(ledger, expectation, evidence, ruling)
    worst = min(ledgers, key=lambda ledger: ledger.goodput)
    ruling.measures = _measures(worst)
    ruling.measures["recovery_s"] = max((recovery.seconds for ledger in ledgers for recovery in ledger.recoveries), default=0.0)
    return ruling.conclude(CHECKER, f"{worst.goodput:.0%} of the wall time was productive")


def _judge_ratio(ledger: Ledger, expectation: Goodput, evidence: Evidence, ruling: Ruling) -> None:
    totals = ", ".join(f"{category} {ledger.total(category):.2f} s" for category in CATEGORIES if ledger.total(category) > 0)
    ruling.facts.append(f"task {ledger.task}: {ledger.wall_s:.2f} s wall time: {totals}")
    if not ledger.adds_up:
        ruling.doubts.append(
            f"the ledger of task {ledger.task} does not add up: {ledger.unaccounted_s:.3f} s of {ledger.wall_s:.3f} s are in no span"
        )
    if ledger.goodput < expectation.ratio_min:
        low = f"task {ledger.task}: {ledger.goodput:.1%} of the wall time was productive, {expectation.ratio_min:.1%} are promised"
        (ruling.doubts if evidence.lost_words() else ruling.broken).append(low)  # steps that were not recorded would count


def _judge_recoveries(ledger: Ledger, expectation: Goodput, evidence: Evidence, ruling: Ruling) -> None:
    for recovery in ledger.recoveries:
        parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in recovery.parts.items() if seconds > 0)
        told = f"task {ledger.task} attempt {recovery.attempt}: recovered in {recovery.seconds:.2f} s ({parts})"
        ruling.facts.append(told)
        if expectation.recovery_s_max is not None and recovery.seconds > expectation.recovery_s_max:
            late = f"{told}, {expectation.recovery_s_max:g} s are promised"
            (ruling.doubts if evidence.lost_words() else ruling.broken).append(late)
    if expectation.recovery_s_max is None or not evidence.scenario.within_budget:
        return
    for fault_s in ledger.unrecovered_s:
        waited_s = ledger.end_s - fault_s
        told = f"task {ledger.task} was hit at {fault_s:.2f} s and had not recovered {waited_s:.2f} s later, at its end"
        is_late = waited_s > expectation.recovery_s_max and not evidence.lost_words()
        (ruling.broken if is_late else ruling.doubts).append(told)


def _measures(ledger: Ledger) -> dict[str, float]:
    return {
        "goodput": ledger.goodput,
        "wall_s": ledger.wall_s,
        "lost_s": ledger.total("lost"),
        "save_stall_s": ledger.total("save"),
        "mtti_s": ledger.wall_s / ledger.interruptions if ledger.interruptions else ledger.wall_s,
    }
