"""What one tool said of one job."""

from dataclasses import dataclass
from typing import Literal

Says = Literal["right", "wrong", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of it.

    Attributes:
        kill_points: Different moments of a crash that were judged.
        says: What it ended with.
        seconds: All that it took.
        in_recovery: How many of the kill points are crashes of a recovery.
    """

    kill_points: int
    says: Says
    seconds: float
    in_recovery: int = 0

    @property
    def seconds_each(self) -> float:
        """For one kill point; where there is none, for nothing."""
        return self.seconds / max(1, self.kill_points)
