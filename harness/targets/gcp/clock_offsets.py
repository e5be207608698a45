"""What a moment on another machine's clock is on ours, and how sure that is.

Every exchange bounds the difference of the two clocks: what they stamped was before we saw it, and after the order that it answers. Clocks
drift, so old bounds are widened as they age; where bounds contradict each other a clock was set, and the newest is believed.

Source: RFC 5905, section 8 (the bounds of an exchange); K. Marzullo, Maintaining the Time in a Distributed System (intersection).
"""

import math
from dataclasses import dataclass, field

DRIFT = 200e-6
"""Of two clocks against each other. Source: RFC 5905, section 7 (15 ppm for a disciplined clock; quartz does worse)."""


@dataclass(slots=True, kw_only=True)
class ClockOffset:
    """Ours minus theirs, in seconds.

    Attributes:
        jumps: How often bounds contradicted each other.
    """

    jumps: int = 0
    _low_s: float = -math.inf
    _high_s: float = math.inf
    _bounded_s: float = 0.0
    _estimate_s: float | None = None

    def seen(self, theirs_s: float, ours_s: float) -> None:
        """They stamped something that we saw at ``ours_s``: it was not later than that."""
        self._bound(-math.inf, ours_s - theirs_s, ours_s)

    def answered(self, asked_s: float, theirs_s: float, ours_s: float) -> None:
        """They stamped something after we asked for it at ``asked_s``, and we have seen it by ``ours_s``."""
        self._bound(asked_s - theirs_s, ours_s - theirs_s, ours_s)

    @property
    def uncertainty_s(self) -> float:
        """How far the estimate can be from the truth; infinite while one side has no bound."""
        return (self._high_s - self._low_s) / 2

    def to_ours(self, theirs_s: float) -> float:
        """Their moment on our clock: the estimate moves no further than new bounds make it."""
        return theirs_s + self._estimate()

    def _bound(self, low_s: float, high_s: float, ours_s: float) -> None:
        age_s = max(0.0, ours_s - self._bounded_s)
        self._bounded_s = ours_s
        self._low_s = max(low_s, self._low_s - DRIFT * age_s)
        self._high_s = min(high_s, self._high_s + DRIFT * age_s)
        if self._low_s > self._high_s:
            self.jumps += 1
            self._low_s, self._high_s = low_s, high_s
        estimate_s = self._estimate_s
        if math.isfinite(self._low_s) and math.isfinite(self._high_s):
            middle_s = (self._low_s + self._high_s) / 2
            self._estimate_s = middle_s if estimate_s is None else min(max(estimate_s, self._low_s), self._high_s)

    def _estimate(self) -> float:
        if self._estimate_s is not None:
            return self._estimate_s
        if math.isfinite(self._high_s):
            return self._high_s
        return self._low_s if math.isfinite(self._low_s) else 0.0


@dataclass(slots=True, kw_only=True)
class SourceTimes:
    """Moments of one source in the history: in its own order, never negative, never to come.

    Attributes:
        epoch_s: The zero of the history, on our monotonic clock.
        offset: What the source's clock is to ours.
    """

    epoch_s: float
    offset: ClockOffset = field(default_factory=ClockOffset)
    _last_s: float = 0.0

    def place(self, theirs_s: float, now_s: float) -> float:
        """``Event.t_s`` of a moment on the source's clock, seen now."""
        t_s = min(self.offset.to_ours(theirs_s), now_s) - self.epoch_s
        self._last_s = max(self._last_s, t_s) if math.isfinite(t_s) else self._last_s
        return self._last_s
