"""What is drawn, what is left out and said to be, and what is told in words."""

from harness.history import Booted
from harness.report.timeline import CLOSE_UPS_MAX, timeline_of
from harness.report.timeline.moments import MOMENTS_MAX, where
from harness.report.timeline.shapes import Label
from tests.unit.checkers.builders import Run, resumed, uninterrupted
from tests.unit.report.records import bare, record_of


def told(run: Run) -> list[str]:
    return [moment.what for moment in timeline_of(record_of(run)).moments]


def test_the_story_is_told_in_words_without_its_everyday():
    words = told(resumed())

    assert words[:6] == [
        "attempt started (process 100)",
        "starts training from scratch",
        "began its last save, of step 5",
        "acknowledged its last save, of step 5",
        "1-kill requested",
        "SIGKILL sent (cause: fault)",
    ]
    assert "goes on with training from step 5" in words
    assert words[-1] == "run ended: finished"


def test_the_moments_are_in_order_of_time():
    moments = timeline_of(record_of(resumed())).moments

    assert [moment.t_s for moment in moments] == sorted(moment.t_s for moment in moments)


def test_of_a_long_story_the_beginning_and_the_end_are_told():
    run = Run()
    for number in range(MOMENTS_MAX):
        run.attempt(number).exit(1)

    timeline = timeline_of(record_of(run))

    assert (len(timeline.moments), timeline.moments_left_out) == (MOMENTS_MAX, MOMENTS_MAX)
    assert timeline.moments[-1].where == f"attempt {MOMENTS_MAX - 1}"


def test_where_names_task_and_rank_only_where_there_are_several():
    assert where(Booted(t_s=0.0)) == "attempt 0"
    assert where(Booted(t_s=0.0, task=1, attempt=2, rank=3)) == "task 1, attempt 2, rank 3"


def long_run() -> Run:
    """Its faults are short beside it."""
    run = Run().attempt(0).begin().steps(1, 60)
    for number in range(1, 9):
        run.killed().attempt(number).begin(60).steps(61, 120)
    return run.complete()


def test_a_fault_too_short_to_be_seen_gets_a_close_up_that_counts_from_it():
    timeline = timeline_of(record_of(long_run()))

    assert len(timeline.close_ups) == CLOSE_UPS_MAX
    first = timeline.close_ups[0]
    assert first.title.startswith("Close-up of 1-kill in attempt 0, from ")
    assert "0" in [tick.label for tick in first.ticks]
    assert "SIGKILL" in [shape.text for shape in first.shapes if isinstance(shape, Label)]


def test_a_fault_that_fills_the_picture_gets_none():
    assert timeline_of(record_of(Run().attempt(0).killed())).close_ups == ()


def test_without_a_fault_there_is_no_close_up():
    assert timeline_of(record_of(uninterrupted())).close_ups == ()


def test_the_description_says_what_the_picture_shows():
    whole = timeline_of(record_of(resumed())).whole

    assert whole is not None
    assert "2 attempts, 22 steps of first ranks of which 2 were lost, 1 fault requested and 1 observed" in whole.description
    assert "durable at the end: step 20 of task 0" in whole.description


def test_what_is_not_drawn_is_said():
    run = Run(is_surveyed=False)
    for task in range(6):
        run.attempt(0, task=task)
        for rank in range(6):
            run.here(Booted, rank=rank)
        run.start(0).steps(1, 6).exit(0)

    notes = " ".join(timeline_of(record_of(run)).notes)

    assert "12 lanes more are not drawn" in notes
    assert "The progress of 2 tasks more is not drawn." in notes
    assert "the durable step is what the job acknowledged" in notes


def test_nothing_at_all_is_drawn_of_nothing():
    timeline = timeline_of(bare())

    assert (timeline.whole, timeline.close_ups, timeline.moments) == (None, (), ())
