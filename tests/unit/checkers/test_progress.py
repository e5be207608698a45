"""Attempts lead on, or are called a loop."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.progress import check
from harness.history import LogLine, SaveEnded
from harness.scenario import LogPatterns, Outside, Workload
from harness.scenario.expectations import MakesProgress
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted


def judge(run: Run, *, cycles_max: int = 2) -> Finding:
    return check(MakesProgress(cycles_max=cycles_max), run.evidence())


def silent(**patterns: str) -> Workload:
    return msgspec.structs.replace(SILENT, outside=Outside(logs=LogPatterns(**patterns)))


def crashing(run: Run, times: int, *, first: int = 1, restored: int = 5, last: int = 7) -> Run:
    """Attempts that die of themselves after the same step."""
    for number in range(first, first + times):
        run.attempt(number).begin(restored).steps(restored + 1, last).exit(1)
    return run


def test_a_run_that_gets_on_is_right():
    finding = judge(resumed())
    assert finding.outcome is Outcome.VALID
    assert finding.measures == {"cycles_without_progress": 0.0}
    assert finding.evidence[0] == "task 0 attempt 0: newest durable step 0 before, 5 after"
    assert finding.evidence[1] == "task 0 attempt 1: newest durable step 5 before, 20 after, and it owed none"
    assert judge(uninterrupted()).outcome is Outcome.VALID


def test_attempts_in_a_row_without_progress_are_broken_beyond_what_is_allowed():
    run = Run().attempt(0).begin().steps(1, 7).killed()
    for number, code in enumerate((1, 2, 3), start=1):  # each dies in another way: no crash loop
        run.attempt(number).begin(5).steps(6, 7).exit(code)
    assert judge(run.fork().finish(succeeded=False), cycles_max=3).outcome is Outcome.VALID
    finding = judge(run.finish(succeeded=False))
    assert finding.outcome is Outcome.INVALID
    assert "3 attempts of task 0 in a row ended without a higher durable step, 2 may" in finding.reason
    assert finding.measures == {"cycles_without_progress": 3.0}


def test_progress_in_between_starts_the_count_anew():
    run = crashing(Run().attempt(0).begin().steps(1, 7).killed(), 2)
    run.attempt(3).begin(5).steps(6, 12).exit(2)
    crashing(run, 2, first=4, restored=10, last=12)
    assert judge(run.attempt(6).begin(10).steps(11, 20).complete()).outcome is Outcome.VALID


def test_the_same_death_at_the_same_step_is_a_crash_loop_with_its_last_words():
    run = crashing(Run().attempt(0).begin().steps(1, 7).killed(), 2)
    run.attempt(3).begin(5).steps(6, 7).here(LogLine, stream="stderr", text="ArithmeticError: nan").exit(1).finish(succeeded=False)
    finding = judge(run)
    assert finding.outcome is Outcome.INVALID
    assert finding.reason == "crash loop: 3 attempts in a row ended with exit code 1 after step 7; the last said: ArithmeticError: nan"


def test_what_libraries_say_at_exit_does_not_talk_over_the_traceback():
    run = crashing(Run().attempt(0).begin().steps(1, 7).killed(), 2).attempt(3).begin(5).steps(6, 7)
    for text in ("Traceback (most recent call last):", "    raise EOFError", "EOFError: Ran out of input", "I1129 cache_misses: 0"):
        run.here(LogLine, stream="stderr", text=text)

    assert judge(run.exit(1).finish(succeeded=False)).reason.endswith("the last said: EOFError: Ran out of input")


def test_another_death_or_another_step_is_no_crash_loop():
    run = Run(msgspec.structs.replace(JOB, save_every=1)).attempt(0).begin()
    for number in range(1, 5):
        run.step(number).save(number).exit(1)
        run.attempt(number).begin(number)
    assert judge(run.steps(5, 20).complete()).outcome is Outcome.VALID


def test_an_attempt_killed_before_a_save_was_due_owes_no_progress():
    run = Run().attempt(0).begin().steps(1, 7).killed()
    for number in range(1, 5):
        run.attempt(number).boot().killed(f"{number + 1}-kill")
    finding = judge(run.attempt(5).begin(5).steps(6, 20).complete(), cycles_max=1)
    assert finding.outcome is Outcome.VALID
    assert finding.measures == {"cycles_without_progress": 0.0}


def test_an_attempt_killed_long_after_a_save_was_due_owes_one():
    wrong = msgspec.structs.replace(JOB, save_every=0)  # tells of no save, whatever it does
    run = Run(wrong)
    run.workload = JOB
    for number in range(2):
        run.attempt(number).begin()
        for step in range(1, 8):
            run.step(step)
        run.killed(f"{number + 1}-kill")
    assert judge(run.finish(succeeded=False), cycles_max=1).outcome is Outcome.INVALID


def test_damage_between_attempts_is_not_their_loss():
    run = Run().attempt(0).begin().steps(1, 12).killed().put(10, content="x").damaged()
    run.attempt(1).begin(5).steps(6, 12).exit(1)
    run.attempt(2).begin(10).steps(11, 20).complete()
    finding = judge(run, cycles_max=1)
    assert finding.evidence[1] == "task 0 attempt 1: newest durable step 5 before, 10 after"
    assert finding.outcome is Outcome.VALID


def test_tasks_have_series_of_their_own():
    text = msgspec.structs.replace(JOB, layout="text-file")
    run = Run(text).attempt(0).begin().steps(1, 20).done().exit(0).end_task()
    for number, code in enumerate((1, 2, 3)):
        run.attempt(number, task=1).begin().step(1).exit(code)
    finding = judge(run.finish(succeeded=False))
    assert "3 attempts of task 1 in a row" in finding.reason


def test_what_the_harness_ended_is_no_failure():
    run = crashing(Run().attempt(0).begin().steps(1, 7).killed(), 2)
    finding = judge(run.attempt(3).begin(5).exit(signal=9, cause="stop").close("deadline"))
    assert (finding.outcome, finding.measures) == (Outcome.VALID, {"cycles_without_progress": 2.0})


def test_without_surveys_what_was_acknowledged_counts():
    run = Run(is_surveyed=False).attempt(0).begin().steps(1, 7).exit(1).attempt(1).begin(5).steps(6, 20).complete()
    assert judge(run).outcome is Outcome.VALID
    stuck = Run(is_surveyed=False).attempt(0).begin().steps(1, 7).exit(1)
    for number in (1, 2, 3):
        stuck.attempt(number).begin(5).steps(6, 7).exit(1 + number)
    assert judge(stuck.finish(succeeded=False)).outcome is Outcome.INVALID


def test_a_silent_job_is_judged_by_what_it_resumed_from():
    workload = silent(resumed=r"resumed from (?P<step>\d+)", step=r"step (?P<step>\d+)")
    run = Run(workload, is_surveyed=False).attempt(0).step(6).step(7).exit(1)
    run.attempt(1).restore(5).start(5).step(6).exit(2).attempt(2).restore(5).start(5).step(6).exit(3)
    finding = judge(run.fork().attempt(3).restore(5).start(5).step(6).done().exit(0).finish(), cycles_max=1)
    assert finding.outcome is Outcome.INVALID
    assert finding.measures == {"cycles_without_progress": 2.0}
    on = run.fork().attempt(3).restore(6).start(6).step(7).done().exit(0).finish()
    assert judge(on, cycles_max=1).outcome is Outcome.VALID
    anew = run.attempt(3).step(1).step(2).done().exit(0).finish()
    assert "attempt 2: newest durable step 5 before, 0 after" in " ".join(judge(anew, cycles_max=1).evidence)


def test_a_silent_job_is_judged_by_the_saves_that_its_log_tells():
    run = Run(silent(saved=r"saved (?P<step>\d+)"), is_surveyed=False).attempt(0).here(SaveEnded, step=5).exit(1)
    run.attempt(1).here(SaveEnded, step=10).exit(0, retried=False)
    assert judge(run.finish()).outcome is Outcome.VALID


def test_where_nothing_tells_what_was_durable_nothing_is_known():
    run = Run(silent(step=r"step (?P<step>\d+)"), is_surveyed=False).attempt(0).step(7).exit(1)
    finding = judge(run.attempt(1).step(8).exit(0, retried=False).finish())
    assert finding.outcome is Outcome.UNKNOWN
    assert "nothing tells whether there was progress: task 0 attempt 0" in finding.reason
    assert judge(Run()).outcome is Outcome.UNKNOWN
    assert judge(Run(SILENT, is_surveyed=False).attempt(0).exit(0).finish()).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("number", [3, 4])
def test_a_crash_loop_is_seen_where_nothing_else_is(number: int):
    run = Run(silent(step=r"step (?P<step>\d+)"), is_surveyed=False)
    for attempt in range(number):
        run.attempt(attempt).step(7).exit(1)
    assert judge(run.finish(succeeded=False)).outcome is Outcome.INVALID


@given(rises=st.lists(st.booleans(), min_size=1, max_size=8), cycles_max=st.integers(1, 4))
def test_the_longest_series_decides(rises: list[bool], cycles_max: int):
    run = Run(msgspec.structs.replace(JOB, steps=50))
    durable = series = longest = 0
    for number, is_up in enumerate(rises):
        run.attempt(number).begin(durable).step(durable + 1)
        if is_up:
            durable += 1
            run.save(durable)
        run.exit(10 + number)  # each death is another one: no crash loop
        series = 0 if is_up else series + 1
        longest = max(longest, series)
    finding = judge(run.attempt(len(rises)).begin(durable).complete(), cycles_max=cycles_max)
    assert finding.measures == {"cycles_without_progress": float(longest)}
    assert finding.outcome is (Outcome.INVALID if longest > cycles_max else Outcome.VALID)
