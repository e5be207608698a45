"""Where the time went: a ledger of each task's wall time that adds up, recovery times, and advice on the checkpoint interval.

The categories follow the goodput ledger of ml-goodput-measurement 0.2.3 (start-up, program start-up, checkpoint save and restore, wasted
progress, infrastructure recovery). Unlike it, short steps are not filtered, the last step of a segment counts, and a resume that skips
steps is seen.
"""

from harness.ledger.intervals import Advice, advise, daly_interval_s, waste_ratio, young_interval_s
from harness.ledger.keeping import Ledger, keep
from harness.ledger.recoveries import Recovery
from harness.ledger.spans import CATEGORIES, Category, Span

__all__ = [
    "CATEGORIES",
    "Advice",
    "Category",
    "Ledger",
    "Recovery",
    "Span",
    "advise",
    "daly_interval_s",
    "keep",
    "waste_ratio",
    "young_interval_s",
]
