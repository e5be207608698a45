"""A lane: one life of one rank, and where in the picture it lies."""

from dataclasses import dataclass

from harness.report.timeline.scale import Scale
from harness.report.timeline.symbols import Symbol
from harness.report.timeline.tracks import Track

LABEL_ROW_PX = 12.0
SAVE_PX, STEP_PX, STRIP_PX = 5.0, 10.0, 3.0
"""Heights of what a lane is made of, from top to bottom; above them the rows of labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """How a track is drawn.

    Attributes:
        track: Who.
        scale: The axis.
        y: Top.
        end_s: The last moment that was recorded.
        symbols: What lies above its bar, each with its row from below.
        label_rows: How many rows those take.
    """

    track: Track
    scale: Scale
    y: float
    end_s: float
    symbols: tuple[tuple[Symbol, int], ...]
    label_rows: int

    @property
    def body_y(self) -> float:
        """Top of the bar."""
        return self.y + self.label_rows * LABEL_ROW_PX + 2

    @property
    def body_height(self) -> float:
        """Of the bar: saves above, steps below."""
        return SAVE_PX + STEP_PX

    @property
    def strip_y(self) -> float:
        """Top of the strip that says what the time was."""
        return self.body_y + self.body_height + 1

    @property
    def height(self) -> float:
        """From the labels to below the strip."""
        return self.strip_y + STRIP_PX - self.y

    @property
    def began_x(self) -> float:
        """Where the life begins."""
        return self.scale.x(self.track.begin_s)

    @property
    def ended_x(self) -> float:
        """Where it ends."""
        return self.scale.x(self.track.end_s(self.end_s))
