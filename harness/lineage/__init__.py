"""A history read as lives of the job: which attempt trained what, from which checkpoint, what of it was retained, and what storage held."""

from harness.lineage.lives import Attempt, Incarnation
from harness.lineage.storage import DAMAGE, Change, StoredStep, Survey, newest_sound
from harness.lineage.tracing import END_S, Lineage, trace

__all__ = ["DAMAGE", "END_S", "Attempt", "Change", "Incarnation", "Lineage", "StoredStep", "Survey", "newest_sound", "trace"]
