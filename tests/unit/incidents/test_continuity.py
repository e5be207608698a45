import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.incidents import Incident
from harness.incidents.words import JobWords, words_of
from harness.scenario import LogPatterns
from tests.unit.incidents.logs import Log, as_lines, diagnosed, kinds

PATTERNS = LogPatterns(
    step=r"^step (?P<step>\d+)",
    saved=r"saved checkpoint at step (?P<step>\d+)",
    resumed=r"resumed from step (?P<step>\d+)",
    done="training complete",
)
WORDS = words_of(PATTERNS, steps=60)
RECOVERED = {"healthy": "valid", "killed-without-notice": "valid"}


def train(log: Log, t_s: float, steps: range, *, attempt: int = 0, every: int = 1, save_every: int = 10, task: int = 0) -> float:
    """An attempt that does a step a second and tells of some; the moment after the last one."""
    for number, step in enumerate(steps):
        if step % every == 0:
            log.line(t_s + number, f"step {step}", attempt=attempt, task=task)
        if step and step % save_every == 0:
            log.line(t_s + number + 0.1, f"saved checkpoint at step {step}", attempt=attempt, task=task)
    return t_s + len(steps)


def killed(log: Log, t_s: float, attempt: int = 0) -> Log:
    return log.platform(t_s, "Container terminated on signal 9.", attempt=attempt)


def finished(log: Log, t_s: float, *, attempt: int = 1, says: bool = True, exits: bool = True) -> Log:
    if says:
        log.line(t_s, "training complete", attempt=attempt)
    if exits:
        log.platform(t_s + 0.1, "Container called exit(0).", attempt=attempt)
    return log.end(t_s + 0.2, succeeded=1)


def interrupted(*, resumed: int = 20, first: int = 0, last: int = 60, every: int = 1, restart_s: float = 1.0, **end: bool) -> Log:
    """Killed at step 24 or some after it; the next attempt says from where it goes on, and does."""
    log = Log()
    t_s = train(log, 0, range(1, 25), every=every)
    killed(log, t_s)
    log.line(t_s + 1, f"resumed from step {resumed}", attempt=1)
    t_s = train(log, t_s + 1 + restart_s, range(first or resumed + 1, last + 1), attempt=1, every=every)
    return finished(log, t_s, **end)


def told(incident: Incident, kind: str) -> tuple[str, str]:
    (found,) = [each for each in incident.diagnoses if each.kind == kind]
    assert found.evidence
    assert found.advice
    return str(found.outcome), found.says


@pytest.mark.parametrize("words", [WORDS, words_of(PATTERNS, steps=0)], ids=["steps known", "steps not known"])
def test_a_job_that_goes_on_from_its_save_is_healthy(words):
    assert kinds(interrupted().incident(words)) == RECOVERED


def test_steps_that_were_passed_over_at_a_resume_are_invalid_where_nobody_had_the_time_to_do_them():
    outcome, says = told(interrupted(first=35).incident(WORDS), "skipped-steps")

    assert outcome == "invalid"
    assert "was at step 35 1.0 s after step 20" in says
    assert "14 steps passed over" in says


def test_one_step_that_was_passed_over_is_not_healthy():
    assert kinds(interrupted(first=22, restart_s=0.5).incident(WORDS))["skipped-steps"] == "invalid"


def test_lines_of_steps_that_may_be_missing_are_unknown():
    outcome, says = told(interrupted(first=35, restart_s=15).incident(WORDS), "skipped-steps")

    assert outcome == "unknown"
    assert "entries may be missing from the export" in says


def test_steps_that_were_passed_over_in_the_middle_are_told_too():
    log = Log()
    t_s = train(log, 0, range(1, 31))
    finished(log, train(log, t_s, range(45, 61)), attempt=0)

    assert kinds(log.incident(WORDS)) == {"skipped-steps": "invalid"}
    whole = finished(Log(), train(log := Log(), 0, range(1, 61)), attempt=0).entries
    few = [each for each in [*log.entries, *whole] if not re.match(r"step 3\d", str(each.get("textPayload")))]
    assert kinds(diagnosed(as_lines(few), WORDS)) == {"skipped-steps": "unknown"}


@pytest.mark.parametrize(("resumed", "every"), [(20, 10), (20, 5), (24, 10), (21, 4), (23, 7)])
def test_a_job_that_tells_of_every_few_steps_has_passed_over_none(resumed, every):
    assert kinds(interrupted(resumed=resumed, every=every).incident(WORDS)) == RECOVERED


def test_a_job_that_tells_of_every_tenth_step_has_passed_over_a_tenth_one_that_it_does_not_tell_of():
    log = Log()
    t_s = train(log, 0, range(1, 75), every=10)
    killed(log, t_s).line(t_s + 1, "resumed from step 70", attempt=1)
    finished(log, train(log, t_s + 2, range(91, 151), attempt=1, every=10))

    assert kinds(log.incident(words_of(PATTERNS, steps=150)))["skipped-steps"] == "invalid"


def test_a_resume_from_a_step_that_nobody_had_come_to_is_invalid():
    outcome, says = told(interrupted(resumed=40).incident(WORDS), "resumed-from-an-unsaved-step")

    assert outcome == "invalid"
    assert (
        "went on from step 40, which no attempt before had done or saved: they had come to step 24, and the newest save was of step 20"
        in says
    )


def test_a_job_that_does_not_say_from_where_it_goes_on_is_judged_by_its_first_step():
    log = interrupted(resumed=40)
    log.entries = [each for each in log.entries if "resumed" not in str(each.get("textPayload"))]

    assert kinds(log.incident(WORDS))["resumed-from-an-unsaved-step"] == "invalid"


def test_where_the_attempt_before_has_no_end_in_the_export_its_last_steps_may_be_missing():
    log = interrupted(resumed=40)
    log.entries = [each for each in log.entries if "signal 9" not in str(each.get("textPayload"))]

    assert kinds(log.incident(WORDS)) == {"resumed-from-an-unsaved-step": "unknown"}


def test_an_attempt_of_which_only_the_end_is_told_may_have_saved_anything():
    log = interrupted()
    log.entries = [
        each for each in log.entries if "step" not in str(each.get("textPayload")) or 'attempt": "1' in str(each).replace("'", '"')
    ]

    assert kinds(log.incident(WORDS)) == {"resumed-from-an-unsaved-step": "unknown", "killed-without-notice": "valid"}


def test_what_another_task_has_saved_may_be_gone_on_from():
    log = interrupted(resumed=40)
    log.entries.pop()
    t_s = train(log, -30, range(1, 61), task=1)
    log.line(t_s, "training complete", task=1).platform(t_s, "Container called exit(0).", task=1).end(99, succeeded=2)

    assert kinds(log.incident(WORDS)) == RECOVERED


def test_a_first_attempt_may_go_on_from_what_an_execution_before_has_saved():
    log = Log().line(0, "resumed from step 40")
    finished(log, train(log, 1, range(41, 61)), attempt=0)

    assert kinds(log.incident(WORDS)) == {"healthy": "valid"}


def test_a_job_that_says_it_is_complete_right_after_step_35_of_60_is_not():
    outcome, says = told(interrupted(last=35).incident(WORDS), "left-unfinished")

    assert outcome == "invalid"
    assert "after step 35 of 60, though it says that it is complete" in says


@pytest.mark.parametrize(("says", "exits", "outcome"), [(False, True, "invalid"), (False, False, "unknown"), (True, False, "unknown")])
def test_a_log_that_stops_before_the_last_step_is_not_healthy_whoever_says_that_it_ended(says, exits, outcome):
    found = told(interrupted(last=45, says=says, exits=exits).incident(WORDS), "left-unfinished")

    assert found[0] == outcome
    assert "step 45 of 60" in found[1]


def test_without_its_number_of_steps_a_job_is_held_to_what_another_attempt_had_come_to():
    log = Log()
    killed(log, train(log, 0, range(1, 29))).line(30, "resumed from step 20", attempt=1)
    finished(log, train(log, 31, range(21, 25), attempt=1))

    assert kinds(log.incident(words_of(PATTERNS, steps=0)))["left-unfinished"] == "invalid"


@pytest.mark.parametrize("says", [True, False])
def test_the_last_steps_of_a_job_that_tells_of_every_tenth_are_not_owed(says):
    log = Log()
    finished(log, train(log, 0, range(1, 66), every=10), attempt=0, says=says)
    words = words_of(PATTERNS, steps=65)

    assert kinds(log.incident(words)) == ({"healthy": "valid"} if says else {"left-unfinished": "unknown"})
    assert kinds(log.incident(words_of(LogPatterns(step=PATTERNS.step), steps=65))) == {"healthy": "valid"}


def test_a_job_that_counts_from_0_has_come_to_its_last_step():
    log = Log()
    finished(log, train(log, 0, range(60)), attempt=0)

    assert kinds(log.incident(WORDS)) == {"healthy": "valid"}


def test_the_word_for_the_end_may_stand_in_the_line_of_the_last_step():
    log = Log()
    finished(log, train(log, 0, range(1, 61)), attempt=0, says=False)
    words = words_of(LogPatterns(step=PATTERNS.step, done="step 60"), steps=60)

    assert kinds(log.incident(words)) == {"healthy": "valid"}


def test_a_task_that_does_not_say_that_it_is_complete_and_has_no_end_is_unknown():
    log = Log()
    finished(log, train(log, 0, range(1, 61)), attempt=0).entries.pop()
    train(log, 0, range(1, 25), task=1)
    log.end(99, succeeded=2)

    assert kinds(log.incident(words_of(PATTERNS, steps=0))) == {"left-unfinished": "unknown"}
    assert kinds(log.incident(WORDS)) == {"left-unfinished": "unknown"}


def without_attempts(log: Log, *numbers: int) -> Log:
    names = {str(number) for number in numbers}
    kept = Log()
    kept.entries = [each for each in log.entries if dict(each["labels"]).get("run.googleapis.com/task_attempt") not in names]  # type: ignore[call-overload]
    return kept


def four_attempts() -> Log:
    log = Log()
    for attempt, begun in enumerate((0, 10, 20)):
        if attempt:
            log.line(20 * attempt, f"resumed from step {begun}", attempt=attempt)
        killed(log, train(log, 20 * attempt + 1, range(begun + 1, begun + 14), attempt=attempt), attempt)
    log.line(60, "resumed from step 30", attempt=3)
    return finished(log, train(log, 61, range(31, 61), attempt=3), attempt=3)


def test_the_log_of_all_four_attempts_is_healthy():
    assert kinds(four_attempts().incident(WORDS)) == RECOVERED


@pytest.mark.parametrize(
    ("missing", "named"), [((0,), "attempt 0"), ((1, 2), "attempts 1, 2"), ((0, 1, 2), "attempts 0, 1, 2"), ((2,), "attempt 2")]
)
def test_attempts_of_which_there_is_no_entry_are_missed(missing, named):
    incident = without_attempts(four_attempts(), *missing).incident(WORDS)

    assert str(incident.outcome) == "unknown"
    assert f"the export has no entry of {named} of task 0" in {each.says for each in incident.diagnoses}
    assert incident.losses[0].lost_steps is None


def test_a_success_after_an_attempt_that_did_not_end_well_has_another_attempt():
    incident = without_attempts(four_attempts(), 2, 3).incident(WORDS)

    assert str(incident.outcome) == "unknown"
    assert "the export has no entry of attempt 2" in told(incident, "unknown")[1]


def test_retries_that_the_platform_has_counted_are_missed():
    log = Log()
    finished(log, train(log, 0, range(1, 61)), attempt=0).entries.pop()
    log.end(99, succeeded=1, retried=1)

    assert kinds(log.incident(WORDS)) == {"unknown": "unknown"}
    assert "1 retry, and the export tells of 0" in log.incident(WORDS).diagnoses[0].says


def killed_after(deaths: list[int], *, every: int, save_every: int) -> Log:
    """Killed after so many steps each time, it goes on from its newest save, and tells of every few steps and of all saves."""
    log, t_s, saved = Log(), 0.0, 0
    for attempt, lived in enumerate([*deaths, None]):
        if saved:
            log.line(t_s, f"resumed from step {saved}", attempt=attempt)
        else:
            log.line(t_s, "Starting from scratch", attempt=attempt)
        last = 60 if lived is None else min(saved + lived, 59)
        t_s = train(log, t_s + 1, range(saved + 1, last + 1), attempt=attempt, every=every, save_every=save_every)
        if lived is not None:
            killed(log, t_s, attempt)
        saved = last // save_every * save_every
    return finished(log, t_s, attempt=len(deaths))


def see_that_it_is_healthy(log: Log) -> None:
    found = kinds(log.incident(WORDS))
    assert set(found) <= {"healthy", "killed-without-notice", "restarted-from-scratch"}, found
    assert set(found.values()) == {"valid"}


@settings(max_examples=60)
@given(data=st.data(), every=st.integers(1, 12), save_every=st.integers(1, 9), deaths=st.lists(st.integers(1, 40), max_size=3))
def test_a_right_job_is_healthy_at_any_cadence_and_never_when_an_attempt_is_missing(data, every, save_every, deaths):
    log = killed_after(deaths, every=every, save_every=save_every)

    see_that_it_is_healthy(log)
    if deaths:
        lost = data.draw(st.sets(st.integers(0, len(deaths)), min_size=1))
        assert str(without_attempts(log, *lost).incident(WORDS).outcome) in ("unknown", "invalid")


def test_steps_and_saves_have_a_cadence_each():
    see_that_it_is_healthy(killed_after([7, 28, 7], every=8, save_every=7))


@settings(max_examples=60)
@given(resumed=st.integers(1, 24), over=st.integers(1, 30), every=st.integers(1, 3))
def test_whole_strides_that_are_passed_over_are_never_healthy(resumed, over, every):
    log = interrupted(resumed=resumed, first=resumed + 1 + over * every, every=every, last=60 + over * every)

    assert str(log.incident(words_of(PATTERNS, steps=60 + over * every)).outcome) in ("invalid", "unknown")


def test_an_excerpt_of_a_few_lines_has_no_cadence():
    log = Log().lines(0, "step 1", "step 2", "step 60")

    assert kinds(finished(log, 4, attempt=0).incident(WORDS)) == {"healthy": "valid"}
    assert JobWords().has_own_done is False
