"""How far a task came: executed, durable, lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.lineage import newest_sound, trace
from harness.report.timeline.progress import progress_of
from tests.unit.checkers.builders import Run, resumed, uninterrupted


def progress(run: Run, *, steps: int = 0):
    return progress_of(trace(run.events), 0, steps=steps)


def test_an_uninterrupted_run_goes_up_and_loses_nothing():
    found = progress(uninterrupted())

    assert [step for _, step in found.executed[0]] == list(range(21))
    assert [step for _, step in found.durable] == [5, 10, 15, 20]
    assert (found.losses, found.final_step, found.top_step) == ((), 20, 20)


def test_a_resume_goes_on_from_the_checkpoint_and_what_was_beyond_it_is_lost():
    found = progress(resumed())

    assert [points[0][1] for points in found.executed] == [0, 5]
    (loss,) = found.losses
    assert (loss.base_step, loss.steps) == (5, 2)
    assert [step for _, step in loss.points] == [5, 6, 7]


def test_a_save_is_durable_from_its_acknowledgement_and_not_from_when_it_was_looked_at():
    run = Run().attempt(0).begin().steps(1, 5)
    ended_s = next(event.t_s for event in run.events if type(event).__name__ == "SaveEnded")

    assert progress(run).durable == ((ended_s, 5),)


def test_a_save_that_was_never_acknowledged_is_durable_from_when_storage_showed_it():
    run = Run().attempt(0).begin().steps(1, 3).begin_save(3).commit(3).exit(signal=9)

    assert [step for _, step in progress(run).durable] == [3]


def test_damage_takes_the_durable_step_down_again():
    run = Run().attempt(0).begin().steps(1, 12).killed()
    run.put(10, content="other").damaged()

    assert [step for _, step in progress(run).durable] == [5, 10, 5]


def test_where_storage_was_not_looked_at_the_acknowledged_step_is_shown_and_said():
    run = Run(is_surveyed=False).attempt(0).begin().steps(1, 12)
    found = progress(run)

    assert ([step for _, step in found.durable], found.is_surveyed) == ([5, 10], False)


def test_the_scenario_says_the_final_step_before_the_job_does():
    assert progress(uninterrupted(), steps=40).final_step == 40


def test_a_job_that_never_trained_has_no_line():
    found = progress(Run().attempt(0).boot().exit(1))

    assert (found.executed, found.losses, found.durable, found.top_step) == ((), (), (), 1)


@pytest.mark.parametrize("resumed_from", [0, 5, 10])
def test_the_steps_lost_are_those_between_the_death_and_the_resume(resumed_from):
    run = Run().attempt(0).begin().steps(1, 13).killed().attempt(1).begin(resumed_from).steps(resumed_from + 1, 20).complete()

    assert sum(loss.steps for loss in progress(run).losses) == 13 - resumed_from


@given(st.lists(st.sampled_from(["save", "lose", "spoil", "look", "flip"]), max_size=25), st.data())
def test_the_stair_ends_where_storage_itself_says(moves, data):
    run = Run().attempt(0).begin()
    saved = 0
    for move in moves:
        if move == "save":
            saved += 5
            run.save(saved)
        elif move == "lose" and run.stored:
            run.lose(data.draw(st.sampled_from(sorted(run.stored))))
        elif move == "spoil" and run.stored:
            run.put(data.draw(st.sampled_from(sorted(run.stored))), state="incomplete")
        elif move == "flip" and run.stored:
            run.put(max(run.stored), content=f"flipped {saved}").damaged()
        else:
            run.survey("attempt-end")
    held = list(trace(run.events).surveys(0))
    newest = newest_sound(held[-1].held) if held else 0

    found = progress(run)

    assert (found.durable[-1][1] if found.durable else 0) == newest
    assert [t_s for t_s, _ in found.durable] == sorted(t_s for t_s, _ in found.durable)
