"""What the platform does for reasons of its own counts by the platform's own records."""

import os

import pytest

from harness.errors import HealError, InjectionError
from harness.faults.maintenance import MAINTENANCE_MESSAGE, MIGRATION_S
from harness.history import AttemptAbandoned, AttemptExited, AttemptStarted, Event, ExecutionFinished, LogLine, SignalSent
from harness.scenario.faults import CancelExecution, ExpireTimeout, Maintenance, OverlapAttempts
from harness.undo import ContinueProcesses, KillProcesses, identify

CPU = Maintenance(profile="cloudrun-job-cpu-maintenance")


def sent(signal: str, cause: str) -> Event:
    return SignalSent(t_s=1.0, task=1, attempt=2, signal=signal, cause=cause, pids=(101,))


def exited(cause: str, *, attempt: int = 2, code: int = 143) -> Event:
    return AttemptExited(t_s=2.0, task=1, attempt=attempt, exit_code=code, cause=cause)


def line(text: str = MAINTENANCE_MESSAGE, *, stream: str = "system", attempt: int = 2) -> Event:
    return LogLine(t_s=2.0, task=1, attempt=attempt, stream=stream, text=text)


# ---- maintenance of a GPU task -----------------------------------------------------------------------------------------


def test_gpu_maintenance_says_what_the_platform_says(make, target) -> None:
    make(Maintenance()).inject()

    assert target.asked == [("terminate", "fault", MAINTENANCE_MESSAGE, "INSTANCE_PREEMPTED")]


def test_gpu_maintenance_is_seen_in_the_platforms_line_and_the_end(make) -> None:
    fault = make(Maintenance())
    fault.inject()
    assert fault.observe([exited("grace")]) == ""
    assert fault.observe([line()]) == "the platform's line was logged; attempt 2 of task 1 ended with exit code 143 (cause: grace)"


@pytest.mark.parametrize("other", [line("something else"), line(stream="stdout"), line(attempt=1)])
def test_another_line_is_no_evidence_of_maintenance(make, other) -> None:
    fault = make(Maintenance())
    fault.inject()

    assert fault.observe([other, exited("fault")]) == ""


# ---- maintenance of a CPU task -------------------------------------------------------------------------------------------


def test_cpu_maintenance_stops_the_job_and_lets_it_go_on(make, target) -> None:
    fault = make(CPU)
    fault.inject()

    assert target.asked == [("signal", 20, "fault", -1)]
    assert fault.observe(()) == "processes 101, 102 stopped"
    assert fault.heal_after_s == MIGRATION_S
    assert fault.heal() == "SIGCONT: 2 running, 0 gone"


def test_a_job_that_handles_the_notice_is_seen_running_on_a_look_later(make, target) -> None:
    fault = make(CPU)
    fault.inject()
    target.states = {101: "running", 102: "running"}
    assert fault.observe(()) == ""
    assert fault.observe([sent("SIGTSTP", "fault")]) == ""
    assert fault.observe(()) == "processes 101, 102 got SIGTSTP and runs on"


def test_a_job_that_died_was_not_migrated(make, target) -> None:
    fault = make(CPU)
    fault.inject()
    target.states = {101: "gone", 102: "gone"}
    fault.observe([sent("SIGTSTP", "fault")])

    assert fault.observe(()) == ""


def test_cpu_maintenance_owes_continuing(make, target) -> None:
    target.states = {os.getpid(): "running"}

    assert make(CPU).undo() == ContinueProcesses(processes=identify([os.getpid()]))


# ---- timeout and cancel ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", ["timeout", "grace"])
def test_a_timeout_is_seen_when_the_attempt_ended_for_it(make, target, cause) -> None:
    fault = make(ExpireTimeout())
    fault.inject()

    assert target.asked == [("expire_timeout", 2)]
    assert fault.observe([exited(cause)]) == ""
    assert fault.observe([sent("SIGTERM", "timeout")]) == f"attempt 2 of task 1 ended with exit code 143 (cause: {cause})"


@pytest.mark.parametrize("events", [[exited("fault")], [sent("SIGTERM", "fault"), exited("grace")], [sent("SIGTERM", "timeout")]])
def test_another_end_is_no_evidence_of_a_timeout(make, events) -> None:
    fault = make(ExpireTimeout())
    fault.inject()

    assert fault.observe(events) == ""


def test_a_cancel_is_seen_in_the_end_of_the_attempt_or_of_the_execution(make, target) -> None:
    fault = make(CancelExecution())
    fault.inject()

    assert target.asked == [("cancel",)]
    assert fault.observe([exited("cancel")]) == ""
    assert fault.observe([sent("SIGTERM", "cancel")]) == "attempt 2 of task 1 ended with exit code 143 (cause: cancel)"

    again = make(CancelExecution())
    finished = ExecutionFinished(t_s=3.0, succeeded=0, failed=0, cancelled=2, retried=0)
    assert again.observe([finished]) == "the execution finished; tasks cancelled: 2"


def test_an_execution_that_finished_otherwise_was_not_cancelled(make) -> None:
    assert make(CancelExecution()).observe([ExecutionFinished(t_s=3.0, succeeded=1, failed=0, cancelled=0, retried=0)]) == ""


# ---- overlap -----------------------------------------------------------------------------------------------------------


def test_an_overlap_is_seen_when_the_next_attempt_runs_beside(make, target) -> None:
    fault = make(OverlapAttempts(zombie_s=4.0))
    fault.inject()

    assert target.asked == [("abandon", 2)]
    assert fault.heal_after_s == 4.0
    assert fault.observe([AttemptAbandoned(t_s=1.0, task=1, attempt=2)]) == ""
    assert fault.observe([AttemptStarted(t_s=1.1, task=0, attempt=3, pid=9)]) == ""
    expected = "attempt 2 was abandoned and attempt 3 started beside it (process 201)"
    assert fault.observe([AttemptStarted(t_s=1.1, task=1, attempt=3, pid=201)]) == expected


def test_a_next_attempt_alone_is_no_overlap(make) -> None:
    fault = make(OverlapAttempts())
    fault.inject()

    assert fault.observe([AttemptStarted(t_s=1.1, task=1, attempt=3, pid=201)]) == ""


def test_an_overlap_owes_the_zombies_and_ends_them_once(make, target) -> None:
    target.states = {os.getpid(): "running"}
    fault = make(OverlapAttempts())
    assert fault.undo() == KillProcesses(processes=identify([os.getpid()]))
    fault.inject()

    assert fault.heal() == fault.heal() == "processes of abandoned attempt 2 that were ended: 1"
    assert target.asked.count(("end_abandoned", 2)) == 1


def test_an_overlap_that_cannot_be_ended_is_not_called_healed(make, target) -> None:
    fault = make(OverlapAttempts())
    target.absent = "attempt 2 of task 1 is not abandoned"

    with pytest.raises(HealError, match="is not abandoned"):
        fault.heal()


@pytest.mark.parametrize("kind", [Maintenance(), CPU, ExpireTimeout(), CancelExecution(), OverlapAttempts()])
def test_a_victim_that_is_not_there_is_said(make, target, kind) -> None:
    fault = make(kind)
    target.absent = "no execution runs"

    with pytest.raises(InjectionError, match="no execution runs"):
        fault.inject()


@pytest.mark.parametrize("kind", [CPU, OverlapAttempts()])
def test_without_a_victim_nothing_is_owed(make, target, kind) -> None:
    fault = make(kind)
    target.absent = "no execution runs"

    with pytest.raises(InjectionError, match="no execution runs"):
        fault.undo()
