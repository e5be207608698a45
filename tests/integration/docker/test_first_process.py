"""PID 1: what it gets, what it does not get, and how its end is told."""

import os
import signal
import subprocess

import pytest

from harness.history import AttemptStarted, LogLine, Marked, SignalSent, SigtermSeen
from harness.targets.docker import container
from tests.contract.driver import python

SAVES_AT_SIGTERM = """
def leave(number, frame):
    emit("sigterm")
    os._exit(143)
signal.signal(signal.SIGTERM, leave)
emit("ready")
while True: time.sleep(0.1)
"""


def kernel_tells() -> bool:
    """Whether the kernel tells the wait status of a process that is no child; before Linux 6.15 the engine's code is all there is."""
    child = subprocess.Popen(["true"])
    descriptor = os.pidfd_open(child.pid)
    try:
        child.wait()
        return container.exit_status(descriptor) is not None
    finally:
        os.close(descriptor)


def as_one_line(command: tuple[str, ...]) -> str:
    return " ".join("'" + part.replace("'", "'\\''") + "'" for part in command)


def test_a_job_that_is_the_first_process_notices_sigterm(start):
    run = start(python(SAVES_AT_SIGTERM))
    run.until(Marked)

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    assert [(exited.exit_code, exited.signal, exited.cause) for exited in run.exits()] == [(143, None, "fault")]


@pytest.mark.parametrize("passes_on", [False, True], ids=["and waits", "and becomes it"])
def test_a_shell_that_starts_the_job_swallows_its_sigterm_unless_it_becomes_the_job(start, passes_on):
    job = as_one_line(("python3", *python(SAVES_AT_SIGTERM)[1:]))
    run = start(("sh", "-c", f"exec {job}" if passes_on else f"{job}; exit $?"), grace_s=0.5)
    run.until(Marked)

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    (exited,) = run.exits()
    assert (exited.exit_code, exited.signal, exited.cause) == ((143, None, "fault") if passes_on else (None, signal.SIGKILL, "grace"))
    assert len(run.of(SigtermSeen)) == passes_on


def test_what_has_no_handler_is_dropped_but_sigkill(start):
    run = start(python("emit('ready')\nwhile True: time.sleep(60)"))
    run.until(Marked)
    (started,) = run.of(AttemptStarted)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGTSTP):
        assert run.target.signal(run.victim(), number, cause="fault") == (started.pid,)
        run.poll()
    assert run.target.process_states([started.pid]) == {started.pid: "running"}
    run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.finish()

    assert [(exited.signal, exited.cause) for exited in run.exits()] == [(signal.SIGKILL, "fault")]


@pytest.mark.parametrize("code", [137, 139, 143, 255])
def test_an_exit_code_that_looks_like_a_signal_is_told_as_what_it_is(start, code):
    run = start(python(f"emit('ready')\nos._exit({code})"), armed=("ready:after",))

    run.finish()

    expected = (code, None, "job") if code != 139 or kernel_tells() else (None, signal.SIGSEGV, "job")
    assert [(exited.exit_code, exited.signal, exited.cause) for exited in run.exits()] == [expected]


def test_an_exit_code_137_of_a_shell_whose_child_was_killed_is_the_shells_own(start):
    run = start(python("child = subprocess.Popen(['sleep', '60'])\nemit('ready', pid=child.pid)\nsys.exit(128 - child.wait())"))
    run.until(Marked)

    run.target.signal(run.victim(rank=0), signal.SIGKILL, cause="fault")
    run.finish()

    assert [(exited.exit_code, exited.signal, exited.cause) for exited in run.exits()] == [(137, None, "fault")]


def test_process_ids_in_the_history_are_those_of_this_machine(start):
    run = start(python("print(os.getpid(), flush=True)\nemit('ready')\ntime.sleep(60)"))
    marked = run.until(Marked)
    run.until(LogLine)

    assert run.lines() == ["1"]
    assert marked.pid == run.of(AttemptStarted)[0].pid
    assert run.target.process_ids(run.victim(rank=0)) == (marked.pid,)


def test_a_flood_of_process_ids_that_are_not_there_delays_nothing(start):
    code = "for pid in range(10**6, 10**6 + 20000): emit('lie', rank=1, pid=pid)\nemit('ready')\ntime.sleep(60)"
    run = start(python(code), grace_s=0.3)
    run.until(Marked, lambda event: event.name == "ready")

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    term, kill = run.of(SignalSent)
    assert 0.3 <= kill.t_s - term.t_s < 2.0
    assert {event.pid for event in run.of(Marked) if event.name == "lie"} == {0}


def test_an_orphan_comes_to_the_first_process(start):
    code = """
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        while os.getppid() != 1: time.sleep(0.01)
        emit("orphan", rank=1)
        time.sleep(60)
    os._exit(0)
os.wait()
time.sleep(60)
"""
    run = start(python(code))
    orphan = run.until(Marked)

    assert orphan.pid in run.target.process_ids(run.victim())
    assert run.target.signal(run.victim(rank=1), signal.SIGKILL, cause="fault") == (orphan.pid,)
    run.until_true(lambda: run.target.process_states([orphan.pid]) == {orphan.pid: "gone"})
