"""After SIGTERM: noticed, saved, durable, gone, with time to spare."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.grace import check
from harness.history import Done, FaultRequested, ObservationLost, SigtermSeen
from harness.scenario import LogPatterns, Outside, Platform
from harness.scenario.expectations import GraceConduct
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, TICK_S, Run, resumed, uninterrupted
from tests.unit.checkers.cluster_builders import ClusterRun

PAIR = msgspec.structs.replace(JOB, ranks=2)
SHORT = Platform(grace_s=1.0)


def judge(run: Run, *, margin_s_min: float = 0.0, saves: bool = True) -> Finding:
    return check(GraceConduct(margin_s_min=margin_s_min, saves=saves), run.evidence())


def told(run: Run | None = None) -> Run:
    """Seven steps are done, and the notice comes."""
    return (run or Run()).attempt(0).begin().steps(1, 7).signal("SIGTERM")


def resume(run: Run, step: int) -> Run:
    return run.attempt(1).begin(step).steps(step + 1, 20).complete()


def test_a_right_job_is_told_row_by_row():
    run = resume(told().here(SigtermSeen).save(7).exit(143, cause="fault"), 7)
    finding = judge(run, margin_s_min=9.0)
    assert finding.outcome is Outcome.VALID
    assert finding.reason == (
        "attempt 0 of task 0: SIGTERM at 1.60 s, seen +0.10 s, save +0.20 s, durable +0.30 s, exit +0.50 s; margin 9.50 s of 10 s"
    )
    assert finding.measures == pytest.approx(
        {"margin_s": 9.5, "signal_to_seen_s": 0.1, "seen_to_save_s": 0.1, "save_s": 0.1, "save_to_exit_s": 0.2}
    )


def test_a_job_that_the_end_of_its_grace_kills_is_broken():
    deaf = judge(resume(told().exit(signal=9, cause="grace"), 5))
    assert deaf.outcome is Outcome.INVALID
    assert deaf.reason == "attempt 0 of task 0 did not leave within its grace of 10 s and was killed; it never said that it noticed"
    late = judge(resume(told().here(SigtermSeen).exit(signal=9, cause="grace"), 5))
    assert "it noticed after 0.10 s" in late.reason


def test_a_grace_that_a_fault_made_end_early_tells_nothing_of_the_job():
    cut = told().here(SigtermSeen).here(FaultRequested, injection="2-end-grace", fault="end-grace").exit(signal=9, cause="grace")
    finding = judge(resume(cut, 5))
    assert finding.outcome is Outcome.UNKNOWN
    assert "no grace was left to the job" in finding.reason
    other = told().here(FaultRequested, injection="1-kill", fault="kill").exit(signal=9, cause="grace")
    assert judge(resume(other, 5)).outcome is Outcome.INVALID


def test_a_job_without_a_handler_is_broken_even_where_it_had_just_saved():
    run = resume(Run().attempt(0).begin().steps(1, 5).signal("SIGTERM").exit(signal=15, cause="fault"), 5)
    for saves in (True, False):
        finding = judge(run, saves=saves)
        assert finding.outcome is Outcome.INVALID
        assert "SIGTERM itself ended it" in finding.reason


def test_too_small_a_margin_is_broken():
    run = resume(told(Run(platform=SHORT)).here(SigtermSeen).save(7).exit(143, cause="fault"), 7)
    finding = judge(run, margin_s_min=0.6)
    assert finding.outcome is Outcome.INVALID
    assert "left with 0.50 s of its grace, 0.6 s are promised" in finding.reason
    assert judge(run, margin_s_min=0.5).outcome is Outcome.VALID


@pytest.mark.parametrize(("stall_s", "outcome"), [(1.75, Outcome.UNKNOWN), (1.0, Outcome.INVALID), (30.0, Outcome.INVALID)])
def test_an_end_that_was_seen_late_proves_no_small_margin(stall_s: float, outcome: Outcome):
    run = resume(told().here(SigtermSeen).save(7).exit(143, cause="fault"), 7)
    run.events.append(ObservationLost(t_s=stall_s, what="moments", count=1, detail="nobody looked"))

    assert judge(run, margin_s_min=9.9).outcome is outcome


def test_a_missing_final_save_is_broken_where_one_is_promised():
    run = resume(told().here(SigtermSeen).exit(143, cause="fault"), 5)
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert finding.reason == "attempt 0 of task 0 left with step 5 durable although it had done step 7: the final save is missing"
    assert judge(run, saves=False).outcome is Outcome.VALID


def test_a_save_that_was_acknowledged_and_is_not_there_is_missing():
    run = told().here(SigtermSeen).save(7).lose(7).exit(143, cause="fault")
    assert "left with step 5 durable" in judge(resume(run, 5)).reason


def test_a_commit_without_its_acknowledgement_is_durable():
    run = told().here(SigtermSeen).begin_save(7).commit(7).exit(143, cause="fault")
    assert judge(resume(run, 7)).outcome is Outcome.VALID


def test_a_step_that_was_done_after_the_notice_is_owed_too():
    run = told().here(SigtermSeen).step(8).save(7).exit(143, cause="fault")
    assert "although it had done step 8" in judge(resume(run, 7)).reason


def test_saves_of_two_steps_after_the_notice_are_training_on():
    run = told().here(SigtermSeen).step(8).save(8).step(9).save(9).exit(143, cause="fault")
    finding = judge(resume(run, 9))
    assert finding.outcome is Outcome.INVALID
    assert "began saves of steps [8, 9] where one final save was owed" in finding.reason


def test_a_save_under_way_when_the_notice_came_is_no_second_one():
    run = Run().attempt(0).begin().steps(1, 9).step(10).begin_save(10).signal("SIGTERM").here(SigtermSeen).step(11).save(11)
    assert judge(resume(run.exit(143, cause="fault"), 11)).outcome is Outcome.VALID


def test_a_second_notice_prolongs_nothing():
    run = told(Run(platform=SHORT)).here(SigtermSeen).signal("SIGTERM", cause="cancel").save(7).exit(143, cause="cancel")
    assert judge(run.finish(succeeded=False)).measures["margin_s"] == pytest.approx(1.0 - 6 * TICK_S)


def test_each_notice_is_judged_and_the_tightest_is_measured():
    run = told().here(SigtermSeen).save(7).exit(143, cause="fault")
    run.attempt(1).begin(7).steps(8, 12).signal("SIGTERM").here(SigtermSeen).mark("slow").save(12).exit(143, cause="timeout")
    run.attempt(2).begin(12).steps(13, 20).complete()
    finding = judge(run)
    assert finding.outcome is Outcome.VALID
    assert finding.measures["margin_s"] == pytest.approx(9.4)
    assert len(finding.evidence) == 2


def test_only_the_last_life_of_an_attempt_owes_its_steps():
    run = Run().attempt(0).begin().steps(1, 9).begin(5).steps(6, 6).signal("SIGTERM").here(SigtermSeen).save(6).exit(143, cause="fault")
    assert judge(resume(run, 6)).outcome is Outcome.VALID


def test_the_first_rank_that_notices_counts():
    run = told(Run(PAIR)).here(SigtermSeen, rank=1).here(SigtermSeen).save(7).exit(143, cause="fault")
    assert judge(resume(run, 7)).measures["signal_to_seen_s"] == pytest.approx(0.1)


def test_a_job_may_be_quicker_than_the_note_that_it_was_signalled():
    run = Run().attempt(0).begin().steps(1, 7).here(SigtermSeen).save(7).signal("SIGTERM").exit(143, cause="fault")
    finding = judge(resume(run, 7))
    assert finding.outcome is Outcome.VALID
    assert finding.measures["signal_to_seen_s"] == 0.0


def test_a_job_that_was_just_done_need_not_notice():
    run = Run().attempt(0).begin().steps(1, 20).signal("SIGTERM").here(Done, step=20).exit(0, retried=False).finish()
    assert judge(run).outcome is Outcome.VALID


def test_leaving_without_a_word_of_the_notice_is_in_doubt():
    finding = judge(resume(told().save(7).exit(143, cause="fault"), 7))
    assert (finding.outcome, finding.reason) == (Outcome.UNKNOWN, "attempt 0 of task 0 never said that it noticed SIGTERM")


def test_a_grace_that_another_fault_cut_short_proves_nothing():
    finding = judge(resume(told().here(SigtermSeen).begin_save(7).killed("2-kill"), 5))
    assert finding.outcome is Outcome.UNKNOWN
    assert "it was killed by something else" in finding.reason
    stopped = told().here(SigtermSeen).exit(signal=9, cause="stop").close("deadline")
    assert judge(stopped).outcome is Outcome.UNKNOWN


def test_writes_that_were_made_to_fail_excuse_the_save():
    run = told().here(SigtermSeen).request("2-full", "fail-writes").observe("2-full").begin_save(7).exit(74, cause="fault").heal("2-full")
    assert judge(resume(run, 5)).outcome is Outcome.VALID
    healed = told(Run()).here(SigtermSeen).exit(143, cause="fault")
    assert judge(resume(healed, 5)).outcome is Outcome.INVALID


def test_without_a_notice_or_an_end_nothing_is_known():
    assert judge(resumed()).outcome is Outcome.UNKNOWN
    assert judge(uninterrupted()).outcome is Outcome.UNKNOWN
    one_rank = Run().attempt(0).begin().steps(1, 7).signal("SIGTERM", rank=1).steps(8, 20).complete()
    assert judge(one_rank).outcome is Outcome.UNKNOWN
    assert judge(told().here(SigtermSeen)).outcome is Outcome.UNKNOWN
    ours = told(Run()).signal("SIGTERM", cause="stop")
    assert judge(ours.fork().exit(143, cause="stop").close("interrupted")).outcome is not Outcome.VALID


def test_lost_events_keep_a_missing_save_from_being_proved_and_a_broken_grace_stays_broken():
    unlooked = Run(is_surveyed=False).attempt(0).begin().steps(1, 7).signal("SIGTERM").here(SigtermSeen)
    unlooked.add(ObservationLost, what="events", count=3, detail="a line of 20 MB").exit(143, cause="fault")
    assert judge(resume(unlooked, 5)).outcome is Outcome.UNKNOWN
    late = told().add(ObservationLost, what="events", count=3, detail="x").exit(signal=9, cause="grace")
    assert judge(resume(late, 5)).outcome is Outcome.INVALID


def test_a_silent_job_is_judged_by_storage_or_not_at_all():
    logs = msgspec.structs.replace(SILENT, outside=Outside(logs=LogPatterns(step=r"(?P<step>\d+)")))
    seen = Run(logs).attempt(0).step(6).step(7).signal("SIGTERM").put(7).exit(143, cause="fault")
    assert judge(resume(seen, 7)).outcome is Outcome.VALID
    lost = Run(logs).attempt(0).step(6).step(7).signal("SIGTERM").put(5).exit(143, cause="fault")
    assert judge(resume(lost, 5)).outcome is Outcome.INVALID
    blind = Run(logs, is_surveyed=False).attempt(0).step(6).step(7).signal("SIGTERM").exit(143, cause="fault")
    assert "neither storage nor the job tells" in judge(blind.attempt(1).step(20).exit(0, retried=False).finish()).reason
    mute = Run(SILENT).attempt(0).signal("SIGTERM").exit(143, cause="fault").attempt(1).exit(0, retried=False).finish()
    assert "does not tell its steps" in judge(mute).reason


@given(
    waits=st.lists(st.integers(0, 8), min_size=3, max_size=3),
    saves=st.booleans(),
    margin_s_min=st.integers(0, 20).map(lambda ticks: ticks * TICK_S),
)
def test_the_judgement_follows_the_clock(waits: list[int], saves: bool, margin_s_min: float):
    grace_s = 2.0
    run = told(Run(platform=Platform(grace_s=grace_s)))
    sent_s = run.t_s
    for wait, act in zip(waits, ("see", "save", "leave"), strict=True):
        for _ in range(wait):
            run.mark("busy")
        if act == "see":
            run.here(SigtermSeen)
        elif act == "save" and saves:
            run.save(7)
    left_s = round(grace_s - (run.t_s + TICK_S - sent_s), 6)
    killed = left_s <= 0
    run.exit(None if killed else 143, signal=9 if killed else None, cause="grace" if killed else "fault")
    finding = judge(resume(run, 7 if saves else 5), margin_s_min=margin_s_min)
    kept = not killed and saves and left_s >= margin_s_min - 1e-9
    if abs(left_s - margin_s_min) > 1e-6:
        assert finding.outcome is (Outcome.VALID if kept else Outcome.INVALID), finding


def test_a_pod_has_the_grace_that_the_api_shows():
    run = ClusterRun().node()
    run.attempt(0).begin().steps(1, 7)
    run.pod().pod(is_terminating=True, grace_s=15.0).here(SigtermSeen).save(7).exit(143, cause="platform")
    finding = judge(run.attempt(1).begin(7).steps(8, 20).complete())
    assert finding.outcome is Outcome.VALID
    assert finding.measures["margin_s"] > 14
    assert judge(run, margin_s_min=14.9).outcome is Outcome.INVALID
