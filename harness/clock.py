"""Time, injected: the only module that sleeps or reads a clock."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds for durations, UTC for names and log entries."""

    def monotonic_s(self) -> float:
        """Seconds of CLOCK_MONOTONIC: shared by all processes of one machine, so events of a job can be placed among ours."""

    def utc(self) -> datetime:
        """The time of day, timezone-aware."""

    def sleep(self, seconds: float) -> None:
        """Wait at least ``seconds``."""


class SystemClock:
    """The machine's clocks."""

    def monotonic_s(self) -> float:
        """See ``Clock``."""
        return time.monotonic()

    def utc(self) -> datetime:
        """See ``Clock``."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """See ``Clock``."""
        time.sleep(seconds)


class ManualClock:
    """A clock that a test moves by hand; sleeping moves it too."""

    def __init__(self, *, monotonic_s: float = 0.0, utc: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now_s = monotonic_s
        self._utc = utc

    def monotonic_s(self) -> float:
        """See ``Clock``."""
        return self._now_s

    def utc(self) -> datetime:
        """See ``Clock``."""
        return self._utc

    def sleep(self, seconds: float) -> None:
        """Advance by ``seconds`` at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Move both clocks forward.

        Raises:
            ValueError: When that would be backwards, as the real one does.
        """
        if seconds < 0:
            raise ValueError(f"a clock does not go back: {seconds} s")
        self._now_s += seconds
        self._utc += timedelta(seconds=seconds)
