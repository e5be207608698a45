import pytest

from harness.incidents import JobWords, reproduce
from harness.incidents.conclusion import diagnose
from harness.incidents.reproduction import Reproduction, scenario_name
from harness.scenario import Injection, LogPatterns, Outside, Workload
from harness.scenario.expectations import GraceConduct, WithinRetries
from harness.scenario.faults import CancelExecution, EndGrace, ExpireTimeout, Kill, Maintenance
from harness.scenario.triggers import AfterSeconds, AtMarker, AtStep, OnLog
from tests.unit.incidents.logs import PREEMPTED, SIGTERM, Log

PACED = Workload(name="job", command=("true",), environment={"STEPS": "9", "STEP_SECONDS": "1", "SAVE_EVERY": "2"}, save_every=2, steps=9)
SILENT = Workload(name="job", command=("true",), speaks_protocol=False, steps=100)
KILLED = "Container terminated on signal 9."


def of(log: Log, workload: Workload = PACED, **options: float) -> Reproduction:
    timeline = log.timeline(JobWords())
    return reproduce(timeline, diagnose(timeline), workload, **options)


def steps(first: int, last: int) -> list[str]:
    return [f"Step {number}" for number in range(first, last + 1)]


def first(log: Log, workload: Workload = PACED) -> Injection:
    return of(log, workload).scenario.injections[0]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ((PREEMPTED, "Container called exit(143)."), Maintenance),
        (("Terminating task because it has reached the maximum timeout of 9 seconds.", KILLED), ExpireTimeout),
        ((KILLED,), Kill),
        (("Memory limit of 512 MiB exceeded with 529 MiB used.", KILLED), Kill),
        (("Container terminated on signal 15.",), Maintenance),
    ],
)
def test_each_end_is_played_by_its_fault_at_the_step_that_was_done_last(lines, fault):
    log = Log().lines(0, *steps(1, 7))
    for line in lines:
        log.platform(7, line)

    injection = first(log.line(9, "Step 8", attempt=1))

    assert (type(injection.fault), injection.at, injection.attempts) == (fault, AtStep(step=7), (0,))


def test_a_cancel_is_played_and_nothing_is_owed_after_it():
    log = Log().lines(0, *steps(1, 7)).platform(7, "Container called exit(143).").end(8, cancelled=1)

    made = of(log).scenario

    assert ([type(each.fault) for each in made.injections], made.within_budget) == ([CancelExecution], False)


def test_what_the_job_did_by_itself_no_fault_does():
    made = of(Log().lines(0, *steps(1, 7)).platform(7, "Container called exit(1).").line(9, "Step 1", attempt=1))

    assert made.scenario.injections == ()
    assert "exit code 1" in made.notes[0]
    assert WithinRetries(attempts_max=2, own_failures_max=1) in made.scenario.expects


def test_length_and_pace_are_those_of_the_incident_and_the_speed_scales_seconds():
    log = Log()
    for number in range(1, 61):
        log.line(number * 2.0, f"Step {number}")
        if number % 20 == 0:
            log.line(number * 2.0 + 0.1, f"Saving checkpoint at step {number}...")
    log.line(121, "Completed 60 steps.").platform(122, "Container called exit(0).").end(123, succeeded=1)

    made = of(log, speed=4.0).scenario

    assert made.workload.environment == {"STEPS": "60", "STEP_SECONDS": "0.5", "SAVE_EVERY": "20"}
    assert (made.workload.steps, made.workload.save_every) == (60, 20)
    assert made.platform.grace_s == 2.5


def test_a_job_of_weeks_is_played_with_fewer_steps_at_the_same_share():
    log = Log()
    for number in range(0, 1_000_001, 50_000):
        log.line(number * 1.0, f"Step {number}")
    log.line(1_000_001, SIGTERM).platform(1_000_002, "Container called exit(143).").line(1_000_100, "Step 1000001", attempt=1)

    made = of(log, speed=500.0)

    assert made.scenario.workload.steps == 2000
    assert made.scenario.injections[0].at == AtStep(step=1600)
    assert "1,250,001 steps are played with 2,000" in made.notes


def test_a_job_that_only_says_what_it_saves_is_hit_as_far_after_a_save_as_then():
    saves = ["No checkpoint found. Starting from scratch.", *(f"Saving checkpoint at step {number}..." for number in (5, 10, 15))]
    log = Log()
    for number, text in enumerate(saves):
        log.line(number * 5.0, text)
    log.platform(18, KILLED).line(30, "Resuming from checkpointed step 15.", attempt=1)

    assert first(log).at == AtStep(step=18)


def test_the_save_after_the_notice_says_at_which_step_it_came():
    log = Log().lines(0, "No checkpoint found. Starting from scratch.", "Saving checkpoint at step 5...")
    log.lines(3, SIGTERM, "Saving checkpoint at step 7...").platform(5, "Container called exit(143).")

    assert first(log.line(9, "Resuming from checkpointed step 7.", attempt=1)).at == AtStep(step=7)


def test_a_death_in_a_save_is_a_death_in_that_save():
    log = Log().lines(0, *steps(1, 2), "Saving checkpoint at step 2...", *steps(3, 4), "Saving checkpoint at step 4...").platform(9, KILLED)

    assert first(log.line(12, "Resuming from checkpointed step 2.", attempt=1)).at == AtMarker(event="save.begin", nth=2)


def test_a_grace_that_ended_in_a_save_ends_in_it_again():
    log = Log().lines(0, *steps(1, 2), "Saving checkpoint at step 2...", "Step 3", SIGTERM, "Saving checkpoint at step 3...")
    log.platform(14, PREEMPTED).platform(14, KILLED).line(20, "Resuming from checkpointed step 2.", attempt=1)

    notice, end = of(log).scenario.injections

    assert (type(notice.fault), notice.at) == (Maintenance, AtStep(step=3))
    assert (type(end.fault), end.at) == (EndGrace, AtMarker(event="save.begin", nth=2))
    assert of(log).scenario.platform.grace_s == 10.0  # as seen: from its word of SIGTERM to the kill
    assert len(of(log, SILENT).scenario.injections) == 1


def test_a_job_that_does_not_speak_is_hit_by_what_its_log_can_tell():
    log = Log().lines(0, "Step 1", "Saved checkpoint at step 1", "Step 2").platform(6.5, KILLED).line(9, "Step 2", attempt=1)
    by_saves = Outside(logs=LogPatterns(saved=r"Saved checkpoint at step (?P<step>\d+)"))
    by_steps = Outside(logs=LogPatterns(step=r"^Step (?P<step>\d+)"))

    assert first(log, SILENT).at == AfterSeconds(seconds=6.5)
    assert first(log, Workload(name="job", command=("true",), speaks_protocol=False, outside=by_saves)).at == OnLog(
        pattern=r"Saved checkpoint at step (?P<step>\d+)"
    )
    assert first(log, Workload(name="job", command=("true",), speaks_protocol=False, steps=100, outside=by_steps)).at == AtStep(step=2)


def test_more_faults_than_a_scenario_may_have_are_left_out_and_told():
    log = Log()
    for number in range(20):
        log.lines(number * 10, *steps(1, 3), task=number).platform(number * 10 + 4, KILLED, task=number)
        log.line(number * 10 + 6, "Step 4", task=number, attempt=1)

    made = of(log)

    assert len(made.scenario.injections) == 16
    assert made.notes == ("4 later faults are left out",)
    assert made.scenario.platform.tasks == 20


def test_a_job_that_was_told_to_go_owes_its_conduct():
    log = Log().lines(0, *steps(1, 3), SIGTERM).platform(5, "Container called exit(143).").line(9, "Step 4", attempt=1)

    assert GraceConduct() in of(log).scenario.expects


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train-x7k2p", "reproduced-train-x7k2p"),
        ("Train_X 7!", "reproduced-train-x-7"),
        ("", "reproduced-incident"),
        ("\0../..", "reproduced-incident"),
        ("a" * 500, "reproduced-" + "a" * 89),
    ],
)
def test_a_name_is_a_sentence_whatever_an_execution_is_called(name, expected):
    assert scenario_name(name) == expected
