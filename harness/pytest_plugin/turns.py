"""A scenario that waits for its turn on a cluster says so on the terminal, at once and with pytest-xdist too."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.clock import Clock
    from harness.history import Event
    from harness.scenario import Scenario


class Announcer:
    """Writes to the terminal what is told while a scenario runs; a worker of xdist has none, so it sends the line in a report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Such a report says nothing to others: a setup that has passed, of no duration."""
        line = getattr(report, "chaos_line", "")
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if not line or terminal is None:
            return
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture is not None else contextlib.nullcontext():
            terminal.write_line(line)
            terminal.flush()


class WaitTeller:
    """Says that a scenario waits for its turn, for whom, and that it goes on; see ``harness.runner.progress.Progress``."""

    def __init__(self, item: pytest.Item, clock: "Clock") -> None:
        self._item = item
        self._clock = clock
        self._since_s: float | None = None

    def waits(self, scenario: "Scenario", why: str) -> None:
        """It begins to wait, or waits for another."""
        if self._since_s is None:
            self._since_s = self._clock.monotonic_s()
            self._tell(f"chaos: {scenario.name}: {why}")

    def saw(self, scenario: "Scenario", events: "Sequence[Event]") -> None:
        """What happens happens after the wait."""
        del events
        if self._since_s is not None:
            self._tell(f"chaos: {scenario.name}: goes on after {self._clock.monotonic_s() - self._since_s:.0f} s")
            self._since_s = None

    def _tell(self, line: str) -> None:
        item = self._item
        report = pytest.TestReport(
            nodeid=item.nodeid, location=item.location, keywords={}, outcome="passed", longrepr=None, when="setup", chaos_line=line
        )
        item.ihook.pytest_runtest_logreport(report=report)
