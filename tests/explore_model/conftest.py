"""Draws the matrix of wrong checkpointers when all have been hunted."""

import msgspec
import pytest

from tests.explore_model.hunt import Row, draw

PROPERTY = "wrong-checkpointer"
"""How rows come from the tests, which xdist runs in other processes, to the summary."""


@pytest.fixture
def report(record_property):
    """Puts a row into the matrix."""

    def report(row: Row) -> None:
        record_property(PROPERTY, msgspec.json.encode(row).decode())

    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Draw the matrix, where there is one."""
    reports = [report for of_kind in terminalreporter.stats.values() for report in of_kind if isinstance(report, pytest.TestReport)]
    texts = [text for report in reports if report.when == "call" for name, text in report.user_properties if name == PROPERTY]
    if texts:
        terminalreporter.section("wrong checkpointers")
        for line in draw(msgspec.json.decode(text, type=Row) for text in texts):
            terminalreporter.write_line(line)
