import pytest

from harness.incidents import cloud_run
from harness.incidents.words import words_of
from harness.scenario import LogPatterns
from harness.targets.gcp import log_reading
from tests.unit.incidents.logs import PREEMPTED, SIGTERM, Log, as_lines, diagnosed, kinds

DONE = ("Step 9", "Completed 9 steps.")


def started() -> Log:
    return Log().lines(0, "No checkpoint found. Starting from scratch.", "Step 1", "Saving checkpoint at step 1...", "Step 2")


def completed(log: Log, t_s: float, attempt: int) -> Log:
    return log.lines(t_s, *DONE, attempt=attempt).platform(t_s + 2, "Container called exit(0).", attempt=attempt).end(t_s + 3, succeeded=1)


def test_nothing_at_all_is_unknown():
    assert kinds(diagnosed(b"[]")) == {"unknown": "unknown"}


def test_of_a_success_the_end_alone_does_not_say_what_it_has_cost():
    (found,) = Log().end(0, succeeded=1).incident().diagnoses

    assert (found.kind, str(found.outcome)) == ("unknown", "unknown")
    assert "no entry of any attempt" in found.says


def test_the_end_alone_says_how_it_went_wrong():
    assert kinds(Log().end(0, failed=1).incident()) == {"retries-exhausted": "invalid"}
    assert kinds(Log().end(0, cancelled=1).incident()) == {"cancelled": "invalid"}


def test_an_execution_that_runs_on_is_unknown_and_not_healthy():
    assert kinds(started().incident()) == {"unknown": "unknown"}


def test_a_job_in_words_that_nobody_knows_is_not_judged():
    log = Log().line(0, "bonjour").line(1, "au revoir").platform(2, PREEMPTED).platform(2, "Container called exit(143).")
    log.line(60, "bonjour", attempt=1).platform(90, "Container called exit(0).", attempt=1).end(91, succeeded=1)

    assert kinds(log.incident()) == {"unknown": "unknown", "preempted": "valid"}


def test_the_same_job_is_judged_when_its_words_are_given():
    log = Log().lines(0, "pas 1", "pas 2", SIGTERM).platform(3, PREEMPTED).platform(3, "Container called exit(143).")
    log.lines(60, "reprise au pas 1", "pas 2", "pas 3", "fini", attempt=1).platform(90, "Container called exit(0).", attempt=1)
    words = words_of(LogPatterns(step=r"^pas (?P<step>\d+)", resumed=r"reprise au pas (?P<step>\d+)", done="fini"), steps=3)

    assert kinds(log.incident(words)) == {"no-save-after-sigterm": "invalid", "preempted": "valid"}
    assert log.incident(words).losses[0].lost_steps == 1


def test_a_job_that_dies_of_sigterm_itself_saved_nothing():
    log = started().platform(5, "Container terminated on signal 15.")
    completed(log.lines(9, "Resuming from checkpointed step 1.", attempt=1), 10, 1)

    assert kinds(log.incident()) == {"no-save-after-sigterm": "invalid", "terminated": "valid"}


def test_a_job_that_sigterm_has_killed_had_no_grace_to_save_in():
    log = started().platform(5, PREEMPTED).platform(5, "Container terminated on signal 15.")
    completed(log.lines(9, "Resuming from checkpointed step 1.", attempt=1), 10, 1)

    found = {each.kind: (str(each.outcome), each.certainty) for each in log.incident().diagnoses}
    assert found == {"no-save-after-sigterm": ("invalid", "seen"), "preempted": ("valid", "assumed")}


def test_a_job_that_has_saved_everything_already_owes_no_save():
    log = started().lines(4, "Saving checkpoint at step 2...", SIGTERM).platform(6, PREEMPTED).platform(6, "Container called exit(143).")
    completed(log.lines(9, "Resuming from checkpointed step 2.", attempt=1), 10, 1)

    assert kinds(log.incident()) == {"healthy": "valid", "preempted": "valid"}


@pytest.mark.parametrize(
    ("end", "resumed", "found"),
    [
        ("Container terminated on signal 9.", 1, {"save-did-not-fit-the-grace": "invalid"}),
        ("Container terminated on signal 9.", 2, {"healthy": "valid"}),
        ("Container called exit(137).", 1, {"save-did-not-fit-the-grace": "invalid"}),
        ("Container called exit(143).", 1, {"resumed-from-an-older-checkpoint": "invalid"}),
        ("Container called exit(143).", 2, {"healthy": "valid"}),
    ],
)
def test_a_last_save_held_where_the_next_attempt_goes_on_from_it(end, resumed, found):
    log = started().lines(4, SIGTERM, "Saving checkpoint at step 2...").platform(16, PREEMPTED).platform(16, end)
    completed(log.lines(20, f"Resuming from checkpointed step {resumed}.", attempt=1), 21, 1)

    assert kinds(log.incident()) == {**found, "preempted": "valid"}


def test_a_save_in_which_sigterm_comes_has_not_ended_by_that():
    log = started().lines(4, "Saving checkpoint at step 2...", SIGTERM).platform(16, PREEMPTED)
    log.platform(16, "Container terminated on signal 9.")
    completed(log.lines(20, "Resuming from checkpointed step 1.", attempt=1), 21, 1)

    assert "resumed-from-an-older-checkpoint" not in kinds(log.incident())


def test_without_the_word_sigterm_a_save_before_the_line_of_the_platform_counts():
    log = started().line(11, "Saving checkpoint at step 2...").platform(15, PREEMPTED).platform(15, "Container called exit(143).")
    completed(log.lines(20, "Resuming from checkpointed step 2.", attempt=1), 21, 1)

    assert kinds(log.incident()) == {"healthy": "valid", "preempted": "valid"}


def test_starting_from_scratch_before_the_first_save_is_no_fault_of_the_job():
    log = Log().lines(0, "No checkpoint found. Starting from scratch.", "Step 1").platform(3, "Container terminated on signal 9.")
    log.lines(5, "No checkpoint found. Starting from scratch.", "Step 1", "Saving checkpoint at step 1...", attempt=1)
    completed(log, 20, 1)

    assert kinds(log.incident()) == {"restarted-from-scratch": "valid", "killed-without-notice": "valid", "healthy": "valid"}


def test_a_job_that_never_saves_loses_everything_and_that_is_its_fault():
    log = Log().lines(0, "Step 1", "Step 2").platform(3, "Container terminated on signal 9.")
    completed(log.lines(5, "Step 1", "Step 2", attempt=1), 20, 1)

    assert kinds(log.incident()) == {"restarted-from-scratch": "invalid", "killed-without-notice": "valid"}
    assert [each.certainty for each in log.incident().diagnoses if each.kind == "restarted-from-scratch"] == ["inferred"]


def test_a_preemption_rests_on_an_assumed_shape_and_says_so():
    log = completed(started().platform(5, PREEMPTED).platform(5, "Container called exit(143)."), 10, 1)

    assert [each.certainty for each in log.incident().diagnoses if each.kind == "preempted"] == ["assumed"]


def test_a_preemption_is_known_by_its_reason_whatever_its_text_is():
    log = started().platform(5, "The instance goes away.").platform(5.1, "Container called exit(143).")
    labels = log.entries[-2]["labels"]
    assert isinstance(labels, dict)
    labels["reason"] = "INSTANCE_PREEMPTED"

    assert kinds(completed(log, 10, 1).incident())["preempted"] == "valid"


def test_of_a_job_that_only_says_what_it_saves_nobody_knows_that_all_was_saved():
    log = Log().lines(0, "No checkpoint found. Starting from scratch.", "Saving checkpoint at step 5...")
    log.line(30, SIGTERM).platform(40, PREEMPTED).platform(40, "Container terminated on signal 9.")
    completed(log.lines(50, "Resuming from checkpointed step 5.", attempt=1), 60, 1)

    assert kinds(log.incident()) == {"no-save-after-sigterm": "invalid", "preempted": "valid"}


def test_a_timeout_is_told_from_a_preemption_by_the_platform_s_own_line():
    log = started().platform(5, "Terminating task because it has reached the maximum timeout of 7.5 seconds.").line(5.1, SIGTERM)
    log.line(5.2, "Saving checkpoint at step 2...").platform(6, "Container called exit(143).")
    completed(log.lines(9, "Resuming from checkpointed step 2.", attempt=1), 10, 1)

    (found,) = log.incident().diagnoses
    assert (found.kind, "7.5 s" in found.says) == ("timed-out", True)


def test_exit_0_before_the_last_step_is_not_success():
    log = started().platform(6, "Container called exit(0).").end(7, succeeded=1)
    words = words_of(LogPatterns(step=r"^Step (?P<step>\d+)"), steps=9)

    assert kinds(log.incident(words)) == {"left-unfinished": "invalid"}
    assert kinds(log.incident()) == {"healthy": "valid"}


@pytest.mark.parametrize(("spare_s", "outcome"), [(5.0, "unknown"), (3600.0, "invalid")])
def test_a_missing_attempt_is_missing_only_when_somebody_looked_long_enough(spare_s, outcome):
    log = started().platform(5, "Container called exit(1).").line(5 + spare_s, "Step 1", task=1)

    assert kinds(log.incident()) == {"failed-by-itself": "invalid", "never-resumed": outcome}


def test_an_attempt_that_says_nothing_of_its_training_never_resumed():
    log = started().platform(5, "Container terminated on signal 9.").line(6, "loading", attempt=1).line(4000, "Step 3", task=1)

    assert kinds(log.incident())["never-resumed"] == "invalid"


def test_the_word_cancel_comes_from_the_end_of_the_execution_too():
    log = started().line(5, SIGTERM).platform(6, "Container called exit(143).").end(7, cancelled=1)

    assert kinds(log.incident())["cancelled"] == "invalid"
    assert "never-resumed" not in kinds(log.incident())


def test_the_code_of_a_shell_that_was_killed_is_a_signal():
    log = started().platform(5, "Container called exit(137).").end(6, failed=1)

    assert kinds(log.incident()) == {"killed-without-notice": "valid", "retries-exhausted": "invalid"}


def test_tasks_that_nobody_has_seen_are_not_healthy():
    log = completed(started(), 10, 0)
    status = log.entries[-1]["protoPayload"]
    assert isinstance(status, dict)
    status["response"] = {"spec": {"taskCount": 3}, "status": {"conditions": [{"type": "Completed", "status": "Unknown"}]}}
    status["status"] = {}

    assert kinds(log.incident()) == {"healthy": "valid"}  # the entry is no end, and says nothing of tasks
    status["response"]["status"]["conditions"][0]["status"] = "True"
    assert kinds(log.incident()) == {"unknown": "unknown"}
    assert "nothing is known of 2 tasks of 3" in log.incident().diagnoses[0].says


def test_entries_that_nobody_knows_are_counted_with_a_sample():
    log = started().platform(5, "Something new that the platform says").add(6, "run.googleapis.com%2Frequests", {}, textPayload="GET /")
    log.add(
        7,
        "cloudaudit.googleapis.com%2Factivity",
        {},
        protoPayload={"methodName": "Jobs.Juggle", "resourceName": "x/executions/train-x7k2p"},
    )
    log.line(8, "?", task=-1).line(9, "?", attempt=10**9).line(10, "?", task=10**4)

    incident = log.incident()

    assert incident.counts.unknown == 6
    assert {each.what: each.count for each in incident.unknown} == {
        "a line of the platform's log that is not known": 1,
        "of no execution": 1,
        "cloudaudit.googleapis.com/activity: Jobs.Juggle": 1,
        "run.googleapis.com/stdout without a task and an attempt": 3,
    }
    assert incident.unknown[0].sample == "?"


def cancelled(log: Log, t_s: float, code: int) -> Log:
    name = f"namespaces/p/executions/{log.execution}"
    status = {"code": code, "message": "refused"} if code else {}
    payload = {"methodName": "google.cloud.run.v2.Executions.CancelExecution", "resourceName": name, "status": status}
    return log.add(t_s, "cloudaudit.googleapis.com%2Factivity", {}, protoPayload=payload)


@pytest.mark.parametrize("code", [7, 9])
def test_a_cancel_that_was_refused_has_cancelled_nothing(code):
    log = completed(cancelled(started(), 5, code), 10, 0)

    assert kinds(log.incident()) == {"healthy": "valid"}


def test_a_cancel_that_came_too_late_for_an_execution_that_completed_has_cancelled_nothing():
    assert kinds(cancelled(completed(started(), 10, 0), 13.5, 0).incident()) == {"healthy": "valid"}


def test_a_cancel_that_was_granted_is_told_though_the_end_is_not_in_the_export():
    assert kinds(cancelled(started(), 5, 0).incident())["cancelled"] == "invalid"


def failing(*, failed: int, succeeded: int, message: str = "") -> Log:
    """Task 0 has no end in the log; task 1 has failed as often as is granted."""
    log = started().platform(5, "Container called exit(1).", task=1).line(5, "boom", task=1, log="stderr")
    log.end(9, failed=failed, succeeded=succeeded)
    payload = log.entries[-1]["protoPayload"]
    assert isinstance(payload, dict)
    payload["response"]["status"]["conditions"] = [{"type": "Completed", "status": "False", "message": message}]
    payload["status"] = {"code": 10}
    return log


def told_of(log: Log, task: int) -> dict[str, str]:
    return {each.kind: str(each.outcome) for each in log.incident().diagnoses if each.task == task}


def test_a_task_without_an_end_did_not_fail_where_those_that_did_are_all_known():
    assert told_of(failing(failed=1, succeeded=1), 0) == {}
    assert told_of(failing(failed=1, succeeded=1), 1) == {"failed-by-itself": "invalid", "retries-exhausted": "invalid"}


def test_a_task_without_an_end_may_have_failed_where_more_failed_than_are_known():
    assert told_of(failing(failed=2, succeeded=1), 0) == {"unknown": "unknown"}


def test_a_task_without_an_end_has_failed_where_the_end_names_it_or_all_have():
    named = failing(failed=2, succeeded=1, message="Task train-x7k2p-task0 failed with message: The container exited with an error.")

    assert told_of(named, 0) == told_of(failing(failed=2, succeeded=0), 0) == {"retries-exhausted": "invalid"}


@pytest.mark.parametrize("log", ["varlog%2Fsystem", "%2Fvar%2Flog%2Fsystem"])
def test_the_log_of_the_platform_is_read_by_both_of_its_names(log):
    lines = started().line(5, "Out-of-memory event detected in container", log=log).line(5, "Container terminated on signal 9.", log=log)
    completed(lines.lines(9, "Resuming from checkpointed step 2.", attempt=1), 10, 1)

    assert kinds(lines.incident()) == {"out-of-memory": "invalid"}


def test_a_sigterm_that_only_the_exit_code_tells_of_is_told():
    log = completed(started().platform(5, "Container called exit(143)."), 10, 1)

    assert kinds(log.incident())["terminated"] == "valid"


def test_what_the_harness_has_played_is_told_as_played():
    log = started().line(5, SIGTERM)
    labels = {"run.googleapis.com/execution_name": log.execution, "harness/played": "platform", "reason": "INSTANCE_PREEMPTED"}
    labels |= {"run.googleapis.com/task_index": "0", "run.googleapis.com/task_attempt": "0"}
    log.add(6, "harness", labels, textPayload=PREEMPTED).platform(6, "Container called exit(143).")
    completed(log, 10, 1)

    (preempted,) = [each for each in log.incident().diagnoses if each.kind == "preempted"]
    assert (preempted.certainty, str(preempted.outcome)) == ("seen", "valid")
    assert "played" in preempted.says


def test_what_is_played_is_known_by_the_names_under_which_it_is_written():
    assert (cloud_run.PLAYED_LOG, cloud_run.PLAYED_LABEL) == (log_reading.PLAYED_LOG, log_reading.PLAYED_LABEL)


def test_a_line_of_the_harness_that_plays_nothing_is_not_known():
    log = started()
    labels = {"run.googleapis.com/execution_name": log.execution}
    labels |= {"run.googleapis.com/task_index": "0", "run.googleapis.com/task_attempt": "0"}

    assert [each.what for each in log.add(6, "harness", labels, textPayload=PREEMPTED).incident().unknown] == ["harness of cloud_run_job"]


@pytest.mark.parametrize("played_s", [5.0, 7.0])
def test_how_a_job_died_under_the_agent_is_read_from_the_line_of_the_harness(played_s: float):
    log = started()
    labels = {"run.googleapis.com/execution_name": log.execution, "harness/played": "container-end"}
    labels |= {"run.googleapis.com/task_index": "0", "run.googleapis.com/task_attempt": "0"}
    log.add(played_s, "harness", labels, textPayload="Container terminated on signal 15.").platform(6, "Container called exit(143).")
    incident = completed(log.lines(9, "Resuming from checkpointed step 1.", attempt=1), 10, 1).incident()

    assert incident.unknown == ()
    assert any(moment.what == "signal 15" for moment in incident.moments)
    assert not any("143" in moment.what for moment in incident.moments)


def test_an_end_whose_line_is_not_known_leaves_what_was_lost_untold():
    log = started().lines(4, "Step 3", "Step 4").platform(6, "\x1b[31mContainer called exit(143).")
    incident = completed(log.lines(9, "Resuming from checkpointed step 1.", attempt=1), 10, 1).incident()

    assert kinds(incident) == {"unknown": "unknown"}
    assert incident.diagnoses[0].says == (
        "attempt 0 of task 0 ended, and no entry that is understood says how: what it lost by that is not told"
    )
    assert [each.what for each in incident.unknown] == ["a line of the platform's log that is not known"]


def torn(*entries: dict[str, object]) -> list[dict[str, object]]:
    """The same, of no moment that can be read."""
    return [{**entry, "timestamp": "never"} for entry in entries]


def test_where_nothing_was_interrupted_as_many_parts_as_an_attempt_has_entries_may_hide_one():
    log = Log().lines(0, *DONE).platform(2, "Container called exit(0).").end(3, succeeded=1)
    whole = log.entries[:]
    nameless = [{**entry, "labels": {}, "insertId": f"n{place}"} for place, entry in enumerate(whole[:1])]

    few = diagnosed(as_lines([*whole, *torn(*whole[:1]), *nameless]))
    assert kinds(few) == {"healthy": "valid"}
    assert "2 parts of the export beside 4 of its entries cannot be read or placed, too few to hide an attempt" in few.diagnoses[0].says
    found = diagnosed(as_lines([*whole, *torn(*whole[:2]), *nameless]))
    assert kinds(found) == {"unknown": "unknown"}
    assert "3 parts of the export beside 4 of its entries" in found.diagnoses[0].says
    assert "another attempt may be told there" in found.diagnoses[0].says


def test_after_an_interruption_one_part_that_cannot_be_read_may_tell_what_it_has_cost():
    log = started().lines(4, "Saving checkpoint at step 2...", SIGTERM).platform(6, PREEMPTED).platform(6, "Container called exit(143).")
    completed(log.lines(9, "Resuming from checkpointed step 2.", attempt=1), 10, 1)
    assert kinds(log.incident()) == {"healthy": "valid", "preempted": "valid"}

    found = diagnosed(as_lines([*log.entries, *torn(log.entries[1])]))
    assert kinds(found) == {"unknown": "unknown", "preempted": "valid"}
    assert "1 part of the export" in found.diagnoses[0].says
    assert "what an interruption has cost may be told there" in found.diagnoses[0].says


def test_what_somebody_did_to_the_job_is_no_word_of_an_attempt():
    log = started().lines(4, "Saving checkpoint at step 2...", SIGTERM).platform(6, PREEMPTED).platform(6, "Container called exit(143).")
    completed(log.lines(9, "Resuming from checkpointed step 2.", attempt=1), 10, 1)
    made = {"methodName": "google.cloud.run.v2.Jobs.CreateJob", "resourceName": "namespaces/p/jobs/train"}
    log.add(0, "cloudaudit.googleapis.com%2Factivity", {}, protoPayload=made)

    assert kinds(log.incident()) == {"healthy": "valid", "preempted": "valid"}


def test_a_job_that_failed_by_itself_has_something_to_mend_also_where_a_later_attempt_completed():
    log = completed(started().platform(5, "Container called exit(1)."), 10, 1)

    (failed,) = [each for each in log.incident().diagnoses if each.kind == "failed-by-itself"]
    assert failed.says == "attempt 0 of task 0 ended by itself with exit code 1; attempt 1 completed"
    assert str(log.incident().outcome) == "invalid"
