"""The benchmarks name their rows and write their table; what they measure is no test."""

import pytest

from benchmarks.__main__ import FIGURES, main, page_of
from benchmarks.answer import Answer
from benchmarks.ckpt_chaos import REQUIREMENTS, version
from benchmarks.exploration import points_of
from benchmarks.figure import Goal, Measured, Row
from benchmarks.saving_jobs import JOBS, Job
from benchmarks.side_by_side import table_of as side_by_side_of
from benchmarks.table import outcome_of, table_of
from harness.explore.result import Moment, StateResult, Surface
from harness.explore.states import KillPoint
from harness.verdict import Outcome

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


def test_details_come_below_the_table():
    page = page_of([SLOWER, SHOWN], {"slower": Measured([1.0], details="## Jobs\n"), "shown": Measured([1.0])}, load_before=0.5)
    assert page.endswith("\n\n## Jobs\n")
    assert page.count("##") == 1


def point(nth: int) -> KillPoint:
    return KillPoint(marker="start", marker_nth=0, operation="write", path_class="f", nth=nth)


def state(name: str, outcome: Outcome | None, *nths: int) -> StateResult:
    return StateResult(state=name, moments=tuple(Moment(at=nth, point=point(nth)) for nth in nths), outcome=outcome)


def test_a_kill_point_counts_once_and_only_where_its_state_was_judged():
    states = (state("a", Outcome.VALID, 1, 2), state("b", Outcome.INVALID, 2, 3), state("c", None, 4))
    assert points_of(Surface(model="posix", scope="process", kill_points=4, states=states)) == 3


def test_what_is_said_wrongly_of_a_job_stands_out():
    right = Job(name="linear", nature="right", words=())
    hidden = Job(name="in_place by mmap", nature="hidden", words=())
    ours = Answer(kill_points=10, says="right", seconds=1.0, in_recovery=4)
    nothing = Answer(kill_points=0, says="unknown", seconds=1.0)
    lines = side_by_side_of({right: (ours, nothing), hidden: (nothing, ours)}).splitlines()
    assert lines[-2:] == [
        "| linear | right | 10 (4 in recovery) | 0 | right | **unknown** | 0.100 | – |",
        "| in place by mmap | hidden | 0 | 10 | unknown | **right** | – | 0.100 |",
    ]


def test_every_job_of_the_comparison_is_there_once():
    assert len({job.name for job in JOBS}) == len(JOBS)
    assert {job.nature for job in JOBS} == {"right", "wrong", "hidden"}


def test_the_other_tool_is_pinned_by_hashes_and_without_an_address():
    text = REQUIREMENTS.read_text()
    assert text.startswith(f"ckpt-chaos=={version()} ")
    assert "--hash=sha256:" in text
    assert "://" not in text
