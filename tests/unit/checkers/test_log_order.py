"""The promised lines appear in the promised order."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.log_order import check
from harness.history import LogLine, ObservationLost
from harness.scenario import Injection, Platform, Victim
from harness.scenario.expectations import LogOrder
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run

KILL = Injection(fault=Kill(), at=AtStep(step=7))


def say(run: Run, *texts: str, stream: str = "stdout") -> Run:
    for text in texts:
        run.here(LogLine, stream=stream, text=text)
    return run


def judge(run: Run, *patterns: str, injections: tuple[Injection, ...] = ()) -> Finding:
    return check(LogOrder(patterns=patterns), run.evidence(injections=injections))


def maintained() -> Run:
    run = say(Run().attempt(0), "starting", "received SIGTERM", "saving").killed()
    return say(say(run, "terminated by maintenance", stream="system").attempt(1), "resuming from step 5").exit(0).finish()


def test_a_line_is_searched_as_far_as_a_person_would_read():
    def told(text: str) -> Outcome:
        return judge(say(Run().attempt(0), text, "the end").exit(0).finish(), "needle", "end").outcome

    assert told("x" * 4000 + "needle") is Outcome.VALID
    assert told("x" * 4096 + "needle") is Outcome.INVALID


def test_lines_in_order_are_right_whoever_says_them():
    finding = judge(maintained(), "SIGTERM", "^saving", "maintenance", r"step \d+")
    assert finding.outcome is Outcome.VALID
    assert finding.reason == "all 4 lines appear in order in the log of task 0"
    assert finding.evidence[2] == "1.30 s, attempt 0, system: terminated by maintenance"


def test_a_missing_line_is_named_with_what_stood_there_instead():
    finding = judge(maintained(), "SIGTERM", "flushing", "maintenance")
    assert finding.outcome is Outcome.INVALID
    assert finding.reason == "line 2 of 3, 'flushing', does not appear in the log of task 0 after 'received SIGTERM'"
    assert "instead: 0.60 s, attempt 0, stdout: saving" in finding.evidence
    assert "does not appear in the log of task 0 at all" in judge(maintained(), "never").reason


def test_lines_in_another_order_are_broken():
    assert judge(maintained(), "saving", "SIGTERM").outcome is Outcome.INVALID


def test_a_line_serves_one_pattern_only():
    assert judge(maintained(), "saving", "saving").outcome is Outcome.INVALID


def test_only_the_task_that_was_hit_owes_its_lines():
    run = say(Run(platform=Platform(tasks=2)).attempt(0), "working").exit(0).end_task()
    say(run.attempt(0, task=1), "working").killed()
    say(run.attempt(1, task=1), "resuming").exit(0).finish()
    hit = (Injection(fault=Kill(), at=AtStep(step=7), victim=Victim(task=1)),)
    assert judge(run, "working", "resuming", injections=hit).outcome is Outcome.VALID
    assert judge(run, "working").outcome is Outcome.VALID
    finding = judge(run, "working", "resuming")
    assert finding.outcome is Outcome.INVALID
    assert "in the log of task 0 after 'working'" in finding.reason


def test_lines_about_the_execution_belong_to_every_task():
    run = say(Run(platform=Platform(tasks=2)).attempt(0), "working").exit(0).end_task()
    say(run.attempt(0, task=1), "working").exit(0).finish().add(LogLine, stream="audit", text="Execution job-1 has completed")
    assert judge(run, "working", "completed$").outcome is Outcome.VALID


@pytest.mark.parametrize("why", ["interrupted", "error", ""])
def test_what_was_broken_off_might_have_come_yet(why: str):
    run = say(Run().attempt(0), "starting").exit(signal=9, cause="stop")
    finding = judge(run.close(why) if why else run, "starting", "done")
    assert finding.outcome is Outcome.UNKNOWN
    assert "the run was broken off" in finding.reason
    assert any("'done', does not appear" in line for line in finding.evidence)


def test_what_a_deadline_or_a_hang_ended_had_its_time():
    for why in ("deadline", "hang"):
        assert judge(say(Run().attempt(0), "starting").exit(signal=9, cause="stop").close(why), "done").outcome is Outcome.INVALID


def test_a_missing_line_may_be_owed_to_a_fault_that_did_not_land():
    run = say(Run().attempt(0), "starting").exit(0).finish()
    finding = judge(run, "starting", "SIGTERM", injections=(KILL,))
    assert finding.outcome is Outcome.UNKNOWN
    assert judge(run, "starting", injections=(KILL,)).outcome is Outcome.VALID
    assert judge(maintained(), "never", injections=(KILL,)).outcome is Outcome.INVALID


def test_lost_lines_leave_what_is_missing_in_doubt_and_what_was_found_proved():
    run = say(Run().attempt(0).add(ObservationLost, what="logs", count=7, detail="over the limit"), "starting").exit(0).finish()
    assert judge(run, "starting", "done").outcome is Outcome.UNKNOWN
    assert judge(run, "starting").outcome is Outcome.VALID


def test_what_is_missing_may_stand_where_something_is_masked():
    run = Run().attempt(0).here(LogLine, stream="stdout", text="loss_per_token:[redacted]", is_masked=True).exit(0).finish()
    assert judge(run, "step:7").outcome is Outcome.UNKNOWN
    assert judge(run, "^loss_per").outcome is Outcome.VALID


def test_without_a_line_nothing_is_known():
    assert judge(Run().attempt(0).exit(0).finish(), "x").outcome is Outcome.UNKNOWN
    assert judge(Run(), "x").outcome is Outcome.UNKNOWN


@given(lines=st.lists(st.sampled_from("abc"), min_size=1, max_size=10), patterns=st.lists(st.sampled_from("abc"), min_size=1, max_size=5))
def test_a_subsequence_is_what_counts(lines: list[str], patterns: list[str]):
    run = say(Run().attempt(0), *lines).exit(0).finish()
    is_there = re.search(".*".join(patterns), "".join(lines)) is not None
    assert judge(run, *patterns).outcome is (Outcome.VALID if is_there else Outcome.INVALID)
