"""The benchmarks name their rows and write their table; what they measure is no test."""

import pytest

from benchmarks.__main__ import FIGURES, main, page_of
from benchmarks.figure import Goal, Measured, Row
from benchmarks.table import outcome_of, table_of

SLOWER = Row(name="slower", what="harness over bare", goal=Goal(limit=1.15))
FASTER = Row(name="faster", what="two workers over one", goal=Goal(limit=1.7, kind="at least"))
SHOWN = Row(name="shown", what="size of the page", unit="MB", decimals=1)


def test_the_list_names_every_row_once(capsys: pytest.CaptureFixture[str]):
    assert main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [row.name for figure in FIGURES for row in figure.rows]
    assert len(set(listed)) == len(listed)


def test_a_figure_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["speed"]) == 64
    assert "'speed'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "samples", "outcome"),
    [
        (SLOWER, [1.0, 1.1, 9.0], "met"),
        (SLOWER, [1.0, 1.2, 1.3], "not met"),
        (FASTER, [1.8, 1.75, 1.6], "met"),
        (FASTER, [1.6], "not met"),
        (SHOWN, [3.0], "–"),
    ],
)
def test_the_median_decides(row: Row, samples: list[float], outcome: str):
    assert outcome_of(row, Measured(samples)) == outcome


def test_a_row_says_its_goal_its_median_and_its_spread():
    measured = {"slower": Measured([1.0, 1.1, 1.3]), "shown": Measured([2.04, 2.0], note="one run")}
    assert table_of([SLOWER, SHOWN], measured).splitlines() == [
        "| figure | goal | median | min to max | rounds |  |",
        "| --- | --- | --- | --- | --- | --- |",
        "| harness over bare | ≤ 1.15 | 1.10 | 1.00 to 1.30 | 3 | met |",
        "| size of the page | – | 2.0 MB | 2.0 MB to 2.0 MB | 2 | – |",
        "",
        "- size of the page: one run.",
    ]


def test_the_page_says_on_what_it_was_measured():
    page = page_of([SLOWER], {"slower": Measured([1.0])}, load_before=0.5)
    assert page.startswith("# Figures\n")
    assert "cores" in page
    assert "Python" in page
    assert "load 0.5 before" in page
