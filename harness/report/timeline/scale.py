"""Time to pixels."""

import math
from dataclasses import dataclass
from functools import cached_property

TICK_GAP_PX = 84.0
"""Labels of an axis closer than this touch."""

_STEPS = (1.0, 2.0, 5.0, 10.0)
_STEPS_S = (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0)
"""Beyond a minute, people count in minutes, hours and days."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled moment of an axis."""

    x: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A straight axis from ``begin_s`` at ``left`` to ``end_s`` at ``left + width``.

    Attributes:
        zero_s: The moment that labels count from; None: the run's own beginning, labels without a sign.
    """

    begin_s: float
    end_s: float
    left: float
    width: float
    zero_s: float | None = None

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.left + self.width

    @cached_property
    def span_s(self) -> float:
        """Its length; never nothing, so that a run of one moment can be drawn."""
        return max(self.end_s - self.begin_s, 1e-6)

    def x(self, t_s: float) -> float:
        """Where a moment lies; one outside lies on the nearer border."""
        ratio = (t_s - self.begin_s) / self.span_s
        return self.left if ratio <= 0 else self.right if ratio >= 1 else self.left + self.width * ratio

    def holds(self, begin_s: float, end_s: float) -> bool:
        """Whether any of a span lies inside."""
        return end_s >= self.begin_s and begin_s <= self.begin_s + self.span_s

    def ticks(self) -> tuple[Tick, ...]:
        """Round moments with their labels, as many as there is room for."""
        zero_s = self.zero_s or 0.0
        finest_s = 8 * math.ulp(self.begin_s - zero_s)  # far from zero no two moments lie closer together
        step_s = round_step(max(self.span_s * TICK_GAP_PX / self.width, finest_s))
        first = math.ceil((self.begin_s - zero_s) / step_s - 1e-9)
        last = math.floor((self.begin_s + self.span_s - zero_s) / step_s + 1e-9)
        return tuple(
            Tick(x=self.x(zero_s + number * step_s), label=_label(number * step_s, step_s, is_signed=self.zero_s is not None))
            for number in range(first, last + 1)
        )


def round_step(least_s: float) -> float:
    """The smallest round length that is not below ``least_s``."""
    if least_s > 30:
        return next((step_s for step_s in _STEPS_S if step_s >= least_s), math.ceil(least_s / _STEPS_S[-1]) * _STEPS_S[-1])
    magnitude = 10.0 ** math.floor(math.log10(least_s))
    return next(magnitude * step for step in _STEPS if magnitude * step >= least_s * (1 - 1e-9))


def _label(t_s: float, step_s: float, *, is_signed: bool) -> str:
    sign = ("−" if t_s < -step_s / 2 else "+" if t_s > step_s / 2 else "") if is_signed else ("−" if t_s < -step_s / 2 else "")
    length = abs(t_s)
    if length < step_s / 2:
        return "0"
    if step_s >= 60:
        hours, minutes = divmod(round(length / 60), 60)
        told = [f"{hours} h"] if hours else []
        return sign + " ".join([*told, f"{minutes} min"] if minutes else told)
    if is_signed and step_s < 0.1:
        return f"{sign}{length * 1000:.{max(0, -math.floor(math.log10(step_s * 1000) + 1e-9))}f} ms"
    return f"{sign}{length:.{max(0, -math.floor(math.log10(step_s) + 1e-9))}f} s"
