"""How the platform ends attempts: notice, grace, timeout, cancel, stop."""

import signal

import pytest

from harness.capabilities import Cancellable, GraceExpirable, Overlappable, Terminable, Timeoutable
from harness.history import (
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    ExecutionFinished,
    LogLine,
    Marked,
    SaveBegun,
    SignalSent,
    SigtermSeen,
    TaskFinished,
)
from tests.contract.driver import OWN_WORDS, TRAITS, python

READY = "emit('ready')\n"
OBEYS = f"""
def leave(number, frame):
    os.write(1, b"leaving\\n")
    emit("sigterm")
    os._exit(143)
signal.signal(signal.SIGTERM, leave)
{READY}
while True: time.sleep(0.1)
"""
IGNORES = f"""
signal.signal(signal.SIGTERM, lambda number, frame: emit("sigterm"))
{READY}
while True: time.sleep(0.1)
"""
OBEYS_AT_FIRST = f"if attempt: sys.exit(0)\n{OBEYS}"


def sent(run):
    return [(event.signal, event.cause) for event in run.of(SignalSent)]


def test_a_job_that_leaves_within_the_grace_ended_for_the_cause_of_its_notice(start):
    run = start(python(OBEYS_AT_FIRST), max_retries=1)
    assert isinstance(run.target, Terminable)
    run.until(Marked)

    pids = run.target.terminate(run.victim(), cause="fault", message="taken away", reason="INSTANCE_PREEMPTED")
    run.finish()

    assert pids == (run.of(AttemptStarted)[0].pid,)
    assert [(exited.exit_code, exited.cause, exited.retried) for exited in run.exits()] == [(143, "fault", True), (0, "job", False)]
    assert sent(run) == [("SIGTERM", "fault")]
    texts = [line.text for line in run.of(LogLine) if not line.text.startswith(OWN_WORDS)]
    told = texts[:3] if not run.traits.is_remote else sorted(texts[:3], key=("leaving", "taken away").__contains__, reverse=True)
    assert told == ["leaving", "taken away", "Container called exit(143)."]
    assert next(line for line in run.of(LogLine) if line.text == "taken away").reason == "INSTANCE_PREEMPTED"


def test_a_job_that_ignores_sigterm_is_killed_when_the_grace_is_over(start):
    run = start(python(IGNORES), grace_s=0.3)
    run.until(Marked)

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    (exited,) = run.exits()
    assert (exited.signal, exited.cause) == (signal.SIGKILL, "grace")
    assert sent(run) == [("SIGTERM", "fault"), ("SIGKILL", "grace")]
    assert len(run.of(SigtermSeen)) == 1
    term, kill = run.of(SignalSent)
    assert kill.t_s - term.t_s >= 0.3
    assert exited.t_s >= kill.t_s


LEAVES_WHEN_TOLD = f"""
def leave(number, frame):
    emit("sigterm")
    emit("save.begin", step=1)
    os._exit(143)
signal.signal(signal.SIGTERM, leave)
{READY}
while True: time.sleep(60)
"""


def test_a_grace_that_is_made_to_be_over_kills_at_that_moment_of_the_last_save(start):
    run = start(python(f"if attempt: sys.exit(0)\n{LEAVES_WHEN_TOLD}"), grace_s=600.0, max_retries=1, armed=("save.begin:before",))
    assert isinstance(run.target, GraceExpirable)
    run.until(Marked)
    run.target.terminate(run.victim(), cause="fault")
    run.releases = False
    reached = run.until(BarrierReached)

    pids = run.target.expire_grace(run.victim())
    run.target.release(reached)
    run.finish()

    assert sent(run) == [("SIGTERM", "fault"), ("SIGKILL", "grace")]
    assert run.of(AttemptStarted)[0].pid in pids
    first, second = run.exits()
    assert (first.signal, first.exit_code, first.cause, first.retried) == (signal.SIGKILL, None, "grace", True)
    assert (second.exit_code, second.cause) == (0, "job")
    assert [type(event) for event in run.seen if isinstance(event, SigtermSeen | SaveBegun)] == [SigtermSeen]


def test_a_grace_ends_for_all_processes_of_the_attempt(start):
    run = start(python(f"subprocess.Popen(['sleep', '60'], start_new_session=True)\n{IGNORES}"), grace_s=600.0)
    run.until(Marked)
    run.target.terminate(run.victim(), cause="fault")
    run.until(SigtermSeen)

    pids = run.target.expire_grace(run.victim())
    run.finish()

    assert len(pids) == 2
    assert run.target.process_states(pids) == dict.fromkeys(pids, "gone")


def test_no_grace_is_over_where_none_has_begun_or_it_was_over_before(start):
    run = start(python(IGNORES), grace_s=600.0)
    run.until(Marked)

    with pytest.raises(LookupError, match="no grace runs"):
        run.target.expire_grace(run.victim())
    assert run.of(SignalSent) == []
    run.target.terminate(run.victim(), cause="fault")
    run.target.expire_grace(run.victim())
    run.finish()
    with pytest.raises(LookupError):
        run.target.expire_grace(run.victim())

    assert sent(run) == [("SIGTERM", "fault"), ("SIGKILL", "grace")]


def test_a_second_notice_does_not_prolong_the_grace(start, target_name):
    run = start(python(IGNORES), grace_s=5.0 if TRAITS[target_name].is_remote else 0.3)  # an order takes a moment there
    run.until(Marked)

    run.target.terminate(run.victim(), cause="fault")
    run.until(SigtermSeen)
    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    assert sent(run) == [("SIGTERM", "fault"), ("SIGTERM", "fault"), ("SIGKILL", "grace")]


def test_sigterm_goes_to_the_first_process_alone_and_sigkill_to_all(start):
    child = """trap 'echo child got it' TERM; sleep 60 & echo up; while :; do wait; done"""
    run = start(python(f"subprocess.Popen(['sh', '-c', {child!r}])\n{IGNORES}"), grace_s=0.3)
    run.until(LogLine, lambda line: line.text == "up")
    run.until(Marked)

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    assert "child got it" not in run.lines()
    assert len(run.of(SignalSent)[-1].pids) == 3
    assert run.exits()[0].leftovers == 0


def test_a_shell_that_does_not_pass_sigterm_on_leaves_its_child_to_be_killed(start):
    run = start(("sh", "-c", "sleep 60; exit 0"), grace_s=0.3)
    run.until(AttemptStarted)
    if not run.traits.is_remote:
        run.until_true(lambda: len(run.target.process_ids(run.victim())) == 2)

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    (exited,) = run.exits()
    ended_by = (signal.SIGKILL, "grace") if run.traits.has_namespace else (signal.SIGTERM, "fault")
    assert (exited.signal, exited.cause) == ended_by, "a shell has no handler: as PID 1 it does not even notice"
    assert exited.leftovers == run.traits.leftovers(1)


def test_the_timeout_is_per_attempt_and_is_tried_again(start):
    run = start(("sh", "-c", "trap '' TERM; sleep 60"), timeout_s=1, grace_s=0.2, max_retries=1)

    run.finish()

    assert [(exited.signal, exited.cause, exited.retried) for exited in run.exits()] == [
        (signal.SIGKILL, "grace", True),
        (signal.SIGKILL, "grace", False),
    ]
    if run.traits.is_remote:  # the agent sees what comes, and why if the platform's line is there by then; a SIGKILL it does not survive
        assert [signal for signal, _ in sent(run)] == ["SIGTERM"] * 2
        assert {cause for _, cause in sent(run)} <= {"timeout", "platform"}
    else:
        assert sent(run) == [("SIGTERM", "timeout"), ("SIGKILL", "grace")] * 2
    line = "Terminating task because it has reached the maximum timeout of 1 seconds."
    assert run.lines("system") == [line, "Container terminated on signal 9."] * 2


def test_a_timeout_can_be_made_to_expire(start):
    run = start(python(OBEYS_AT_FIRST), timeout_s=900, max_retries=3)
    assert isinstance(run.target, Timeoutable)
    run.until(Marked)

    run.target.expire_timeout(run.victim())
    run.finish()

    assert [(exited.exit_code, exited.cause) for exited in run.exits()] == [(143, "timeout"), (0, "job")]
    line = "Terminating task because it has reached the maximum timeout of 900 seconds."
    assert line == run.lines("system")[0] or (run.traits.is_remote and line in run.lines("system")[:2])


def test_a_cancel_ends_all_tasks_and_nothing_is_tried_again(start):
    run = start(python(OBEYS), tasks=3, parallelism=2, max_retries=3)
    assert isinstance(run.target, Cancellable)
    run.until(Marked, nth=2)

    run.target.cancel()
    run.target.cancel()
    run.finish()

    assert sorted((exited.task, exited.exit_code, exited.cause, exited.retried) for exited in run.exits()) == [
        (0, 143, "cancel", False),
        (1, 143, "cancel", False),
    ]
    assert sorted((task.task, task.succeeded, task.attempts) for task in run.of(TaskFinished)) == [
        (0, False, 1),
        (1, False, 1),
        (2, False, 0),
    ]
    (finished,) = run.of(ExecutionFinished)
    assert (finished.succeeded, finished.failed, finished.cancelled) == (0, 0, 3)
    assert "cancelled" in run.lines("audit")[0]


@pytest.mark.parametrize("act", ["terminate", "expire_timeout", "signal", "abandon", "process_ids"])
def test_a_victim_that_is_not_there_is_said_to_be_missing(start, act):
    run = start(("sh", "-c", "sleep 60"))
    assert isinstance(run.target, Overlappable) == hasattr(run.target, "abandon")
    if not hasattr(run.target, act):
        return
    arguments = {"terminate": {"cause": "fault"}, "signal": {"cause": "fault", "signal_number": signal.SIGTERM}}.get(act, {})
    run.until(AttemptStarted)

    for victim in (run.victim(attempt=1), run.victim(task=1)):
        with pytest.raises(LookupError):
            getattr(run.target, act)(victim, **arguments)
    run.stop()
    with pytest.raises(LookupError):
        getattr(run.target, act)(run.victim(), **arguments)

    stopped = {("SIGTERM", "stop"), ("SIGKILL", "stop")} if run.traits.is_remote else {("SIGKILL", "stop")}  # it is cancelled there
    assert set(sent(run)) <= stopped


def test_stop_ends_a_run_in_which_everything_resists(start):
    stubborn = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60' & sleep 60 & kill -STOP $!; echo up; sleep 60"
    run = start(("sh", "-c", stubborn), max_retries=3)
    run.until(LogLine)
    run.until(AttemptStarted)
    (pid,) = [event.pid for event in run.of(AttemptStarted)]
    run.target.signal(run.victim(), signal.SIGSTOP, cause="fault")
    run.until_true(lambda: run.target.process_states([pid]) == {pid: "stopped"})

    events = run.stop()

    (exited,) = [event for event in events if isinstance(event, AttemptExited)]
    is_retried = not run.traits.is_remote  # a cancelled execution tries nothing again
    assert (exited.signal, exited.cause, exited.retried) == (signal.SIGKILL, "stop", is_retried)
    assert run.stop() == []
    assert run.target.is_finished()
    assert run.target.poll() == ()


def test_stop_before_start_and_after_the_end_does_nothing(start):
    run = start(("sh", "-c", "exit 0"))
    run.finish()

    assert run.stop() == []
