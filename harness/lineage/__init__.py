"""A history read as lives of the job: which attempt trained what, from which checkpoint, what of it was retained, and what storage held."""

from harness.lineage.charges import Charge, read_charges
from harness.lineage.lives import Attempt, Incarnation, Notice
from harness.lineage.queueing import HOLDING, Admission, Stay, StayState, state_of
from harness.lineage.storage import DAMAGE, Change, StoredStep, Survey, newest_sound
from harness.lineage.tracing import END_S, Lineage, trace

__all__ = [
    "DAMAGE",
    "END_S",
    "HOLDING",
    "Admission",
    "Attempt",
    "Change",
    "Charge",
    "Incarnation",
    "Lineage",
    "Notice",
    "Stay",
    "StayState",
    "StoredStep",
    "Survey",
    "newest_sound",
    "read_charges",
    "state_of",
    "trace",
]
