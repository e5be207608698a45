"""What is to be drawn of each life of each rank."""

from harness.history import Booted, FaultRequested, SaveBegun
from harness.report.timeline.tracks import TRACKS_MAX, cuts_of, tracks_of
from tests.unit.checkers.builders import Run, resumed
from tests.unit.report.records import record_of


def tracks(run: Run):
    return tracks_of(record_of(run))[0]


def test_an_attempt_of_one_rank_is_one_lane():
    assert [(track.label, track.detail) for track in tracks(resumed())] == [("attempt 0", ""), ("attempt 1", "")]


def test_ranks_share_the_label_of_their_attempt():
    run = Run().attempt(0).boot(0).boot(1).start(0).start(0, rank=1).steps(1, 2).steps(1, 2, rank=1).exit(0)

    found = tracks(run)

    assert [(track.label, track.detail, track.is_first, track.is_last) for track in found] == [
        ("attempt 0", "rank 0", True, False),
        ("", "rank 1", False, True),
    ]
    assert [len(track.steps()) for track in found] == [2, 2]


def test_a_second_life_inside_an_attempt_is_a_lane_of_its_own():
    run = Run().attempt(0).begin().steps(1, 3).begin().steps(1, 2).exit(0)

    found = tracks(run)

    assert [(track.detail, len(track.steps())) for track in found] == [("life 1", 3), ("life 2", 2)]
    assert found[0].end_s(99.0) == found[1].begin_s


def test_tasks_are_named_where_there_are_several():
    run = Run().attempt(0).begin().steps(1, 2).exit(0).attempt(0, task=1).begin().steps(1, 2).exit(0)

    assert [(track.label, track.detail, track.name) for track in tracks(run)] == [
        ("task 0", "attempt 0", "task 0, attempt 0"),
        ("task 1", "attempt 0", "task 1, attempt 0"),
    ]


def test_an_attempt_that_never_spoke_has_a_lane_all_the_same():
    (track,) = tracks(Run().attempt(0).exit(1))

    assert (track.steps(), track.saves(), track.signals(), track.life) == ((), (), (), None)


def test_steps_that_a_later_life_did_again_are_lost():
    first, second = tracks(resumed())

    assert [step.step for step in first.steps() if first.is_lost(step)] == [6, 7]
    assert not any(second.is_lost(step) for step in second.steps())


def test_no_step_is_lost_behind_the_lowest_point_that_anyone_went_back_to():
    run = Run().attempt(0).begin().steps(1, 7).killed().attempt(1).begin(5).steps(6, 8).killed().attempt(2).begin().steps(1, 3)

    assert cuts_of(record_of(run).lineage.incarnations_of(0)) == {0: 0, 1: 0, 2: -1}


def test_a_save_is_a_span_from_its_decision_to_its_acknowledgement():
    run = Run().attempt(0).begin().steps(1, 5).begin_save(6).exit(signal=9)

    saves = tracks(run)[0].saves()

    assert [(save.step, save.end_s is None) for save in saves] == [(5, False), (6, True)]


def test_of_two_decisions_to_save_a_step_the_second_is_acknowledged():
    run = Run().attempt(0).begin().begin_save(5)
    begun_s = run.t_s
    run.save(5)

    assert [(save.begin_s == begun_s, save.end_s is None) for save in tracks(run)[0].saves()] == [(True, True), (False, False)]


def test_a_signal_to_the_whole_attempt_is_shown_once_and_one_to_a_rank_with_it():
    run = Run().attempt(0).boot(0).boot(1).signal("SIGTERM").signal("SIGKILL", rank=1).exit(signal=9)

    assert [[sent.signal for sent in track.signals()] for track in tracks(run)] == [["SIGTERM"], ["SIGKILL"]]


def test_a_signal_belongs_to_the_life_in_which_it_came():
    run = Run().attempt(0).begin().signal("SIGSTOP").signal("SIGCONT").begin().signal("SIGTERM").exit(143)

    assert [[sent.signal for sent in track.signals()] for track in tracks(run)] == [["SIGSTOP", "SIGCONT"], ["SIGTERM"]]


def test_of_a_crowd_those_that_were_hit_are_drawn_first():
    run = Run().attempt(0)
    for rank in range(60):
        run.here(Booted, rank=rank)
    run.attempt(1)
    for rank in range(5):
        run.here(Booted, rank=rank)
    run.here(FaultRequested, injection="1-kill", fault="kill")

    shown, hidden = tracks_of(record_of(run))

    assert (len(shown), hidden) == (TRACKS_MAX, 65 - TRACKS_MAX)
    assert [track.rank for track in shown if track.attempt.number == 1] == [0, 1, 2, 3, 4]
    assert next(track.rank for track in shown) == 0


def test_a_save_of_another_rank_is_not_drawn_twice():
    run = Run().attempt(0).boot(0).boot(1)
    run.here(SaveBegun, step=5, rank=1)

    assert [len(track.saves()) for track in tracks(run)] == [0, 1]
