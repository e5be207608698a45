"""What became of each notice that the platform gave."""

import pytest

from harness.history import SigtermSeen
from harness.report.notices import notices_of
from tests.unit.checkers.builders import Run, resumed
from tests.unit.report.records import bare, record_of


def test_the_moments_after_a_notice_are_told_in_order():
    run = Run().attempt(0).begin().steps(1, 3).terminated(143, saves=3)

    (notice,) = notices_of(record_of(run))

    assert (notice.task, notice.attempt, notice.cause, notice.is_killed) == (0, 0, "fault", False)
    moments = [notice.seen_s, notice.save_s, notice.durable_s, notice.exit_s]
    assert [round(moment - notice.sent_s, 6) for moment in moments] == [0.2, 0.3, 0.4, 0.6]
    assert notice.last_step_s is None
    assert notice.margin_s == pytest.approx(9.4)


def test_a_job_that_ignored_it_was_killed_at_the_end_of_its_grace():
    run = Run().attempt(0).begin().steps(1, 3).signal("SIGTERM").step(4).exit(signal=9, cause="grace")

    (notice,) = notices_of(record_of(run))

    assert notice.is_killed
    assert (notice.seen_s, notice.save_s, notice.durable_s) == (None, None, None)
    assert notice.last_step_s == pytest.approx(notice.sent_s + 0.1)


def test_a_job_may_speak_before_the_sending_of_the_signal_is_recorded():
    run = Run().attempt(0).begin().steps(1, 3).signal("SIGTERM")
    sent = run.events[-1]
    run.events.insert(-1, SigtermSeen(t_s=sent.t_s - 0.0001))

    (notice,) = notices_of(record_of(run))

    assert notice.seen_s == pytest.approx(sent.t_s - 0.0001)


@pytest.mark.parametrize(("cause", "rank"), [("stop", -1), ("fault", 1)])
def test_a_signal_without_a_grace_is_no_notice(cause, rank):
    run = Run().attempt(0).begin().signal("SIGTERM", cause=cause, rank=rank).exit(143)

    assert notices_of(record_of(run)) == ()


def test_a_kill_is_no_notice():
    assert notices_of(record_of(resumed())) == ()


def test_without_header_and_scenario_the_usual_grace_is_assumed():
    run = Run().attempt(0).begin().signal("SIGTERM")

    (notice,) = notices_of(bare(*run.events[2:]))

    assert (notice.grace_s, notice.margin_s) == (10.0, None)
