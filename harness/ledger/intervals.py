"""How often to save: the interval that wastes least."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.ledger.keeping import Ledger

MEASURABLE_S = 1e-6
"""What costs less than a microsecond was not measured but rounded."""


def young_interval_s(save_s: float, mtti_s: float) -> float:
    """The interval that wastes least, to first order: the root of 2 C M. Source: Young 1974."""
    return math.sqrt(2 * save_s * mtti_s)


def daly_interval_s(save_s: float, mtti_s: float) -> float:
    """Young's interval with higher orders; M itself where saving costs twice as much as an interruption is apart. Source: Daly 2006."""
    if save_s >= 2 * mtti_s:
        return mtti_s
    ratio = save_s / (2 * mtti_s)
    return math.sqrt(2 * save_s * mtti_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_s


def waste_ratio(interval_s: float, save_s: float, mtti_s: float, restart_s: float) -> float:
    """The share of time that saving, repeating and restarting take, to first order: C/t + (t/2 + R)/M."""
    return save_s / interval_s + (interval_s / 2 + restart_s) / mtti_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What interval a platform's mean time to interruption asks for; see ``advise``."""

    mtti_s: float
    interval_s: float
    interval_steps: int
    waste: float


def advise(ledger: Ledger, *, mttis_s: Sequence[float] = (3600.0, 6 * 3600.0, 24 * 3600.0)) -> tuple[Advice, ...]:
    """Daly's interval for mean times to interruption of a platform; empty where no step was measured, or saving cost nothing.

    The interruptions of a scenario are ours, so their mean time cannot be measured here: it is a parameter, and the rows say which.
    """
    steps = [span.seconds for span in ledger.spans if span.step >= 0]
    if not ledger.save_s or not steps:
        return ()
    save_s, step_s = statistics.median(ledger.save_s), statistics.median(steps)
    restart_s = statistics.median([recovery.restart_s for recovery in ledger.recoveries] or [0.0])
    if save_s < MEASURABLE_S or step_s < MEASURABLE_S:
        return ()
    rows: list[Advice] = []
    for mtti_s in mttis_s:
        interval_s = daly_interval_s(save_s, mtti_s)
        waste = waste_ratio(interval_s, save_s, mtti_s, restart_s)
        rows.append(Advice(mtti_s=mtti_s, interval_s=interval_s, interval_steps=max(1, round(interval_s / step_s)), waste=waste))
    return tuple(rows)
