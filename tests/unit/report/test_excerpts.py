"""What the log said around each fault."""

from harness.history import FaultObserved, FaultRequested, LogLine
from harness.report.excerpts import AFTER, BEFORE, LAST_LINES, LINES_MAX, excerpts_of
from harness.scenario import Platform
from tests.unit.checkers.builders import Run
from tests.unit.report.records import record_of


def story(before: int, during: int, after: int) -> Run:
    run = Run().attempt(0).begin()
    for number in range(before):
        run.here(LogLine, stream="stdout", text=f"before {number}")
    run.here(FaultRequested, injection="1-kill", fault="kill")
    for number in range(during):
        run.here(LogLine, stream="system", text=f"during {number}", severity="WARNING", reason="R")
    run.here(FaultObserved, injection="1-kill", evidence="gone")
    for number in range(after):
        run.here(LogLine, stream="stdout", text=f"after {number}")
    return run


def test_a_fault_stands_among_the_lines_around_it():
    (excerpt,) = excerpts_of(record_of(story(20, 2, 20)))

    texts = [line.text for line in excerpt.lines]
    assert texts[: BEFORE + 1] == ["before 16", "before 17", "before 18", "before 19", "1-kill requested"]
    assert texts[BEFORE + 1 : BEFORE + 4] == ["during 0 [R]", "during 1 [R]", "1-kill observed"]
    assert texts[-1] == f"after {AFTER - 1}"
    assert (excerpt.title, excerpt.left_out) == ("Around 1-kill in attempt 0", 0)


def test_lines_of_the_platform_are_told_from_those_of_the_job():
    (excerpt,) = excerpts_of(record_of(story(1, 1, 1)))

    assert [line.kind for line in excerpt.lines] == ["job", "fault", "platform", "fault", "job"]
    assert [line.severity for line in excerpt.lines if line.kind == "platform"] == ["WARNING"]


def test_a_flood_of_lines_is_cut_and_the_rest_is_counted():
    (excerpt,) = excerpts_of(record_of(story(0, 500, 0)))

    assert len([line for line in excerpt.lines if line.kind != "fault"]) == LINES_MAX
    assert excerpt.left_out == 500 - LINES_MAX


def test_without_a_fault_the_end_of_the_log_is_shown():
    run = Run().attempt(0).begin()
    for number in range(30):
        run.here(LogLine, stream="stdout", text=f"line {number}")

    (excerpt,) = excerpts_of(record_of(run))

    assert [line.text for line in excerpt.lines] == [f"line {number}" for number in range(30 - LAST_LINES, 30)]


def test_without_a_fault_the_end_of_each_tasks_log_is_shown():
    run = Run(platform=Platform(tasks=2))
    for task in (0, 1):
        run.attempt(0, task=task).begin()
        for number in range(20):
            run.here(LogLine, stream="stdout", text=f"line {number} of {task}")

    first, second = excerpts_of(record_of(run))

    assert [excerpt.title for excerpt in (first, second)] == ["The end of the log of task 0", "The end of the log of task 1"]
    assert [line.text for line in first.lines] == [f"line {number} of 0" for number in range(20 - LAST_LINES, 20)]
    assert first.source_characters < second.source_characters == len("task 1 attempt 0 stdout")


def test_faults_close_together_share_an_excerpt():
    run = story(2, 0, 1)
    run.here(FaultRequested, injection="2-flip-byte", fault="flip-byte")

    (excerpt,) = excerpts_of(record_of(run))

    assert excerpt.title == "Around 1-kill, 2-flip-byte in attempt 0"


def test_without_a_log_a_fault_still_has_its_place():
    (excerpt,) = excerpts_of(record_of(story(0, 0, 0)))

    assert [line.text for line in excerpt.lines] == ["1-kill requested", "1-kill observed"]


def test_without_anything_there_is_no_excerpt():
    assert excerpts_of(record_of(Run())) == ()
