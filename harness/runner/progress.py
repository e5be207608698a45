"""Who is told of a run while it plays."""

from collections.abc import Sequence
from typing import Protocol

from harness.history import Event
from harness.scenario import Scenario


class Progress(Protocol):
    """Told of every event when it is recorded; must return quickly and must not raise."""

    def saw(self, scenario: Scenario, events: Sequence[Event]) -> None:
        """These events were recorded for a run of ``scenario``; golden runs have a scenario of their own."""
        ...

    def waits(self, scenario: Scenario, why: str) -> None:
        """A run of ``scenario`` does not begin yet."""
        ...
