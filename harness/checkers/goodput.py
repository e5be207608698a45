"""The ledger of time adds up, and keeps within the bounds of the scenario."""

from harness.checkers.evidence import Evidence, Ruling
from harness.ledger import CATEGORIES, Ledger, keep
from harness.scenario.expectations import Goodput
from harness.verdict import Finding

CHECKER = "goodput"

UNACCOUNTED_S_MAX = 0.001
"""Rounding of times in the history; more than a millisecond means that the ledger is wrong, and then it proves nothing."""


def check(expectation: Goodput, evidence: Evidence) -> Finding:
    """Judge the worst task."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("events"))
    ledgers = [ledger for task in evidence.lineage.tasks if (ledger := keep(evidence.lineage, task)) is not None and ledger.wall_s > 0]
    measured = [ledger for ledger in ledgers if any(span.step >= 0 for span in ledger.spans)]
    for ledger in measured:
        _judge(ledger, expectation, ruling)
    if measured:
        worst = min(measured, key=lambda ledger: ledger.goodput)
        ruling.measures = _measures(worst)
        ruling.measures["recovery_s"] = max((recovery.seconds for ledger in measured for recovery in ledger.recoveries), default=0.0)
    nothing = "" if measured else "no step was recorded, so no time can be called productive"
    kept = f"{ruling.measures.get('goodput', 0.0):.0%} of the wall time was productive" if measured else ""
    return ruling.conclude(CHECKER, kept, nothing=nothing)


def _judge(ledger: Ledger, expectation: Goodput, ruling: Ruling) -> None:
    totals = ", ".join(f"{category} {ledger.total(category):.2f} s" for category in CATEGORIES if ledger.total(category) > 0)
    ruling.facts.append(f"task {ledger.task}: {ledger.wall_s:.2f} s wall time: {totals}")
    if abs(ledger.unaccounted_s) > UNACCOUNTED_S_MAX:
        ruling.doubts.append(
            f"the ledger of task {ledger.task} does not add up: {ledger.unaccounted_s:.3f} s of {ledger.wall_s:.3f} s are in no span"
        )
    if ledger.goodput < expectation.ratio_min:
        ruling.broken.append(
            f"task {ledger.task}: {ledger.goodput:.1%} of the wall time was productive, {expectation.ratio_min:.1%} are promised"
        )
    for recovery in ledger.recoveries:
        parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in recovery.parts.items() if seconds > 0)
        ruling.facts.append(f"task {ledger.task} attempt {recovery.attempt}: recovered in {recovery.seconds:.2f} s ({parts})")
        if expectation.recovery_s_max is not None and recovery.seconds > expectation.recovery_s_max:
            ruling.broken.append(
                f"recovery from the death of attempt {recovery.attempt} took {recovery.seconds:.2f} s, {expectation.recovery_s_max:g} s are promised"
            )


def _measures(ledger: Ledger) -> dict[str, float]:
    return {
        "goodput": ledger.goodput,
        "wall_s": ledger.wall_s,
        "lost_s": ledger.total("lost"),
        "save_stall_s": ledger.total("save"),
        "mtti_s": ledger.wall_s / ledger.interruptions if ledger.interruptions else ledger.wall_s,
    }
