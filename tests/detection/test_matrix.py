"""The matrix shows what was found, and does not hide what was not."""

import pytest

from tests.detection.matrix import COLUMNS, LEGEND, NODE_LOSS, Row, draw

CHECKED = {"landed": "valid", "recording": "valid"}


def drawn(*rows: Row) -> list[str]:
    return list(draw(rows))


def cell(row: Row, column: str) -> str:
    """What a matrix of one row shows in a column."""
    lines = drawn(row)
    line = next(line for line in lines if line.startswith(row.job))
    return line.ljust(len(lines[-1]))[lines[COLUMNS.index(column)].index(column)]


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [("invalid", "✗"), ("valid", "!"), ("unknown", "!"), (NODE_LOSS, "n")],
    ids=["caught", "missed", "unproved", "hidden"],
)
def test_the_intended_checker_has_a_mark_of_its_own(outcome: str, shown: str) -> None:
    row = Row(job="wrong_job", promise="no-hang", outcomes={"no-hang": outcome} | CHECKED)

    assert cell(row, "no-hang") == shown


@pytest.mark.parametrize(("outcome", "shown"), [("invalid", "x"), ("valid", "·"), ("unknown", "?")])
def test_other_checkers_of_a_wrong_job_are_shown_too(outcome: str, shown: str) -> None:
    row = Row(job="wrong_job", promise="no-hang", outcomes={"no-hang": "invalid", "goodput": outcome} | CHECKED)

    assert cell(row, "goodput") == shown
    assert cell(row, "completes") == " "


def test_the_worst_trial_of_a_right_job_is_shown() -> None:
    rows = [Row(job="right", promise="", outcomes={"no-hang": outcome} | CHECKED) for outcome in ("valid", "unknown")]

    assert cell(rows[0], "no-hang") == "·"
    assert "right (2 trials)" in "\n".join(drawn(*rows))
    assert "!" in next(line for line in drawn(*rows) if line.startswith("right"))


def test_the_last_line_counts() -> None:
    caught = Row(job="a", promise="no-hang", outcomes={"no-hang": "invalid"} | CHECKED)
    missed = Row(job="b", promise="no-hang", outcomes={"no-hang": "valid"} | CHECKED)
    hidden = Row(job="c", promise="no-hang", outcomes={"no-hang": NODE_LOSS} | CHECKED, note="because")
    right = Row(job="d", promise="", outcomes={"no-hang": "valid"} | CHECKED)
    *_, legend, note, count = drawn(caught, missed, hidden, right)

    assert (legend, note) == (LEGEND, "n c: because")
    assert count == (
        "1 of 2 wrong jobs caught by the checker of their table, 1 needs the loss of a node; "
        "1 of 1 trials of right jobs valid by every checker"
    )


def test_a_row_survives_the_way_through_a_report() -> None:
    row = Row(job="a", promise="no-hang", outcomes={"no-hang": "invalid"} | CHECKED)

    assert Row.read(str(row)) == row
