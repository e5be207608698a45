"""A history is cut into lives where the job's processes were started anew."""

from harness.history import AttemptStarted, Booted, LogLine, Marked, Restored, Started, StepDone
from harness.lineage import Lineage, trace
from tests.unit.checkers.builders import Run, resumed


def lineage_of(run: Run) -> Lineage:
    return trace(run.history().events)


def test_each_attempt_is_a_life():
    lives = lineage_of(resumed()).incarnations_of(0)
    assert [(life.attempt, life.number, life.restored_step, life.last_step()) for life in lives] == [(0, 0, 0, 7), (1, 1, 5, 20)]
    assert (lives[0].exit is not None, lives[0].done is None, lives[1].done is not None) == (True, True, True)


def test_what_the_platform_says_while_nothing_has_run_is_no_life_and_is_of_one_that_follows():
    waited = Run().add(LogLine, stream="system", text="Waited 45 s for another run on the cluster.")

    assert lineage_of(waited).attempts == ()
    assert len(lineage_of(waited.fork().add(LogLine, stream="stdout", text="a word of the job")).attempts) == 1
    (attempt,) = lineage_of(waited.add(AttemptStarted, pid=1)).attempts
    assert (attempt.task, attempt.number) == (0, 0)


def test_a_second_boot_inside_an_attempt_opens_a_life():
    lives = lineage_of(Run().attempt(0).begin().steps(1, 7).begin(5).steps(6, 9).exit(0)).incarnations_of(0)
    assert [(life.attempt, life.number, life.restored_step) for life in lives] == [(0, 0, 0), (0, 1, 5)]
    assert lives[0].exit is None
    assert lives[0].ended_s == lives[1].began_s


def test_a_second_start_without_a_boot_opens_a_life_too():
    run = Run().attempt(0).start(0).steps(1, 3).start(2).steps(3, 4)
    assert [life.restored_step for life in lineage_of(run).incarnations_of(0)] == [0, 2]


def test_what_the_driver_says_before_its_workers_boot_opens_no_life_of_its_own():
    run = Run().attempt(0).mark("ray.up").begin().begin(rank=1).steps(1, 3)
    assert len(lineage_of(run).incarnations_of(0)) == 1


def test_a_rank_that_missed_a_life_joins_the_next_one_with_the_others():
    run = Run().attempt(0).boot().boot(1).here(Booted).here(Booted).start(0).boot(1).start(0, rank=1)
    lives = lineage_of(run).incarnations_of(0)
    assert [len(life.of_type(Booted)) for life in lives] == [2, 1, 2]
    assert {event.rank for event in lives[2].of_type(Started)} == {0, 1}


def test_a_life_that_never_trained_has_no_restored_step():
    lives = lineage_of(Run().attempt(0).boot().restore(5).exit(1)).incarnations_of(0)
    assert (lives[0].restored_step, lives[0].last_step()) == (None, 0)
    assert lives[0].of_type(Restored)[0].step == 5


def test_a_job_that_does_not_say_where_it_starts_is_read_from_its_first_step():
    lives = lineage_of(Run().attempt(0).here(StepDone, step=6).here(StepDone, step=7)).incarnations_of(0)
    assert (lives[0].restored_step, lives[0].last_step()) == (5, 7)


def test_the_retained_steps_are_cut_where_each_successor_went_on():
    retained = lineage_of(resumed()).retained_steps(0)
    assert [step.step for step in retained] == list(range(1, 21))
    assert [step.attempt for step in retained] == [0] * 5 + [1] * 15


def test_the_retained_steps_of_another_rank_follow_the_same_cuts():
    run = Run().attempt(0).begin().begin(rank=1).steps(1, 7, rank=1).killed().attempt(1).begin(5).begin(5, rank=1).steps(6, 8, rank=1)
    assert [step.step for step in lineage_of(run).retained_steps(0, rank=1)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_an_attempt_is_alive_between_its_start_and_its_end():
    lineage = lineage_of(resumed())
    first = lineage.attempts_of(0)[0]
    assert first.exit is not None
    assert not lineage.is_quiet_at(0, first.exit.t_s - 0.01)
    assert lineage.is_quiet_at(0, first.exit.t_s)


def test_a_process_that_lives_on_beside_its_successor_stays_in_its_own_life():
    run = Run().attempt(0).here(Booted, pid=11).here(Started, restored_step=0, pid=11).here(StepDone, step=1, pid=11)
    run.here(Booted, pid=22).here(StepDone, step=2, pid=11).here(Started, restored_step=0, pid=22).here(StepDone, step=1, pid=22)
    lives = lineage_of(run.here(StepDone, step=3, pid=11)).incarnations_of(0)
    assert [[step.step for step in life.steps] for life in lives] == [[1, 2, 3], [1]]


def test_a_driver_speaks_in_the_life_that_its_rank_is_in():
    run = (
        Run().attempt(0).here(Marked, name="ray.up", pid=1).here(Booted, pid=11).here(Booted, pid=22).here(Marked, name="ray.again", pid=1)
    )
    assert [len(life.events) for life in lineage_of(run).incarnations_of(0)] == [2, 2]
