"""A process fault counts only by what became of the processes."""

import os

import pytest

from harness.errors import HealError, InjectionError
from harness.history import AttemptExited, Event, PodSeen, SignalSent, SigtermSeen
from harness.scenario.faults import EndGrace, Kill, Pause, Terminate
from harness.undo import ContinueProcesses, NothingToUndo, identify


def sent(signal: str = "SIGTERM", *, cause: str = "fault", rank: int = -1, attempt: int = 2) -> Event:
    return SignalSent(t_s=1.0, task=1, attempt=attempt, signal=signal, cause=cause, pids=(101,), rank=rank)


def exited(*, signal: int | None = None, code: int | None = None, cause: str = "fault", attempt: int = 2) -> Event:
    return AttemptExited(t_s=2.0, task=1, attempt=attempt, signal=signal, exit_code=code, cause=cause)


# ---- kill ------------------------------------------------------------------------------------------------------------


def test_a_kill_is_seen_in_the_wait_status(make, target) -> None:
    fault = make(Kill())

    assert fault.inject() == "SIGKILL to processes 101, 102"
    assert target.asked == [("signal", 9, "fault", -1)]
    assert fault.observe(()) == ""
    assert fault.observe([exited(signal=9)]) == "attempt 2 of task 1 ended with signal 9 (cause: fault)"


@pytest.mark.parametrize(
    "event",
    [exited(signal=15), exited(code=0, cause="job"), exited(signal=9, cause="grace"), exited(signal=9, attempt=1), sent("SIGKILL")],
)
def test_another_end_is_no_evidence_of_a_kill(make, event) -> None:
    fault = make(Kill())
    fault.inject()

    assert fault.observe([event]) == ""


def test_the_kill_of_a_rank_is_seen_in_its_process(make, target) -> None:
    fault = make(Kill(), rank=0)
    target.states = {101: "running"}
    fault.inject()
    target.states[101] = "running"
    assert fault.observe([exited(signal=9)]) == ""
    target.states[101] = "gone"
    assert fault.observe(()) == "process 101 gone"


def test_the_kill_of_several_pods_is_seen_when_each_has_ended(make) -> None:
    def pod(name: str, code: int | None, *, attempt: int = 2, role: str = "host") -> Event:
        return PodSeen(t_s=2.0, task=1, attempt=attempt, name=name, uid=name, role=role, exit_code=code)

    fault = make(Kill())
    fault.inject()

    assert fault.observe([pod("a", 137), pod("a", 137), pod("head", 137, role="head"), pod("b", None), pod("c", 137, attempt=1)]) == ""
    assert fault.observe([pod("b", 137)]) == "pods a, b ended with exit code 137"


@pytest.mark.parametrize("kind", [Kill(), Terminate(), EndGrace(), Pause()])
def test_a_victim_that_is_not_there_is_said(make, target, kind) -> None:
    target.absent = "attempt 2 of task 1 does not run"

    with pytest.raises(InjectionError, match=r"'1-fault'.*attempt 2 of task 1 does not run"):
        make(kind).inject()


def test_a_kill_owes_nothing_and_heals_as_often_as_asked(make) -> None:
    fault = make(Kill())

    assert isinstance(fault.undo(), NothingToUndo)
    assert fault.heal_after_s is None
    assert fault.heal() == fault.heal() != ""


# ---- terminate -------------------------------------------------------------------------------------------------------


def test_a_terminate_is_seen_when_the_job_notices(make, target) -> None:
    fault = make(Terminate())
    fault.inject()

    assert target.asked == [("terminate", "fault", "", "")]
    assert fault.observe([sent()]) == ""
    assert fault.observe([SigtermSeen(t_s=1.1, task=1, attempt=2, pid=7)]) == "the job noticed SIGTERM (rank 0, process 7)"


@pytest.mark.parametrize("cause", ["fault", "grace"])
def test_a_terminate_that_is_ignored_is_seen_when_the_attempt_ends(make, cause) -> None:
    fault = make(Terminate())
    fault.inject()
    fault.observe([sent()])

    assert fault.observe([exited(signal=9, cause=cause)]) == f"attempt 2 of task 1 ended with signal 9 (cause: {cause})"


def test_the_order_of_the_events_in_a_tick_does_not_matter(make) -> None:
    fault = make(Terminate())
    fault.inject()

    assert fault.observe([SigtermSeen(t_s=1.0, task=1, attempt=2, pid=7), sent()]) != ""


@pytest.mark.parametrize(
    "events",
    [
        [SigtermSeen(t_s=1.0, task=1, attempt=2)],
        [sent(cause="timeout"), exited(code=143)],
        [sent("SIGSTOP"), exited(code=143)],
        [sent(attempt=1), exited(code=143)],
        [sent(), exited(code=0, cause="job")],
        [sent(), exited(code=143, attempt=1)],
        [sent(), SigtermSeen(t_s=1.0, task=1, attempt=3)],
    ],
)
def test_half_the_evidence_of_a_terminate_is_none(make, events) -> None:
    fault = make(Terminate())
    fault.inject()

    assert fault.observe(events) == ""


def test_the_terminate_of_a_rank_is_seen_in_that_rank_alone(make, target) -> None:
    fault = make(Terminate(), rank=1)
    fault.inject()
    assert fault.observe([sent(rank=1), SigtermSeen(t_s=1.0, task=1, attempt=2, rank=0)]) == ""
    target.states = {101: "gone", 102: "gone"}
    assert fault.observe(()) == "processes 101, 102 gone"


# ---- end of grace ----------------------------------------------------------------------------------------------------


def test_the_end_of_a_grace_is_seen_in_the_wait_status(make, target) -> None:
    fault = make(EndGrace())

    assert fault.inject() == "the grace is over: SIGKILL to processes 101, 102"
    assert target.asked == [("expire_grace", -1)]
    assert fault.observe([sent("SIGKILL", cause="grace")]) == ""
    assert fault.observe([exited(signal=9, cause="grace")]) == "attempt 2 of task 1 ended with signal 9 (cause: grace)"
    assert isinstance(fault.undo(), NothingToUndo)


@pytest.mark.parametrize(
    "events",
    [
        [exited(signal=9, cause="grace")],
        [sent("SIGKILL", cause="fault"), exited(signal=9, cause="grace")],
        [sent("SIGKILL", cause="grace", attempt=1), exited(signal=9, cause="grace")],
        [sent("SIGKILL", cause="grace"), exited(code=143, cause="grace")],
        [sent("SIGKILL", cause="grace"), exited(signal=9, cause="fault")],
        [sent("SIGKILL", cause="grace"), exited(signal=9, cause="grace", attempt=1)],
    ],
)
def test_a_job_that_left_by_itself_was_not_ended_by_its_grace(make, events) -> None:
    fault = make(EndGrace())
    fault.inject()

    assert fault.observe(events) == ""


def test_the_end_of_the_grace_of_a_rank_is_seen_in_its_process(make, target) -> None:
    fault = make(EndGrace(), rank=1)
    fault.inject()
    target.states = {101: "gone", 102: "gone"}
    assert fault.observe([exited(signal=9, cause="grace")]) == ""
    assert fault.observe([sent("SIGKILL", cause="grace", rank=1)]) == "processes 101, 102 gone"
    target.states = {101: "gone", 102: "running"}
    assert fault.observe(()) == ""


# ---- pause -----------------------------------------------------------------------------------------------------------


def test_a_pause_is_seen_in_the_state_of_every_process(make, target) -> None:
    fault = make(Pause(duration_s=3.0))
    fault.inject()
    assert fault.heal_after_s == 3.0
    target.states = {101: "stopped", 102: "running"}
    assert fault.observe(()) == ""
    target.states = {101: "stopped", 102: "gone"}
    assert fault.observe(()) == "process 101 stopped"
    target.states = {101: "gone", 102: "gone"}
    assert fault.observe(()) == ""


def test_a_pause_owes_the_processes_by_name_before_it_acts(make, target) -> None:
    target.states = {os.getpid(): "running"}
    undo = make(Pause()).undo()

    assert undo == ContinueProcesses(processes=identify([os.getpid()]))
    assert [what[0] for what in target.asked] == ["process_ids"]


def test_a_pause_is_healed_by_continuing(make, target) -> None:
    fault = make(Pause())
    fault.inject()
    target.states[102] = "gone"

    assert fault.heal() == fault.heal() == "SIGCONT: 1 running, 1 gone"
    assert target.states[101] == "running"


def test_a_pause_whose_victim_died_has_nothing_left_to_heal(make, target) -> None:
    fault = make(Pause())
    fault.inject()
    target.absent = "gone"

    assert fault.heal() == "nothing left to continue: gone"


def test_a_process_that_stays_stopped_is_not_called_healed(make, target) -> None:
    fault = make(Pause())
    fault.inject()
    target.ignores_continue = True

    with pytest.raises(HealError, match="processes 101, 102 still stopped"):
        fault.heal()
