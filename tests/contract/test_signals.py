"""Who gets a signal, and what is known of those who got one."""

import os
import signal

import pytest

from harness.capabilities import Signalable
from harness.history import AttemptExited, AttemptStarted, BarrierReached, LogLine, Marked, SignalSent
from tests.contract.driver import python

ESCAPES = """
for _ in range({count}):
    subprocess.Popen(["sleep", "60"], start_new_session=True)
"""
WAITS = "emit('ready')\nwhile True: time.sleep(60)\n"
RANKS = """
if len(sys.argv) == 1:
    ranks = [subprocess.Popen([sys.executable, "-S", "-c", os.environ["CODE"], str(rank)]) for rank in (0, 1)]
    sys.exit(max(abs(rank.wait()) for rank in ranks))
emit("boot", rank=int(sys.argv[1]))
emit("ready", rank=int(sys.argv[1]))
while True: time.sleep(60)
"""


def start_ranks(start):
    command = python(RANKS)
    return start(command, environment={"CODE": command[-1]})


def test_sigkill_reaches_also_those_that_left_the_session(start):
    run = start(python(ESCAPES.format(count=3) + WAITS))
    assert isinstance(run.target, Signalable)
    run.until(Marked)
    known = run.target.process_ids(run.victim())

    pids = run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.finish()

    assert len(pids) == 4
    assert set(known) <= set(pids)
    assert run.traits.is_remote or set(known) == set(pids)
    assert run.target.process_states(pids) == dict.fromkeys(pids, "gone")
    (exited,) = run.exits()
    assert (exited.signal, exited.cause, exited.leftovers) == (signal.SIGKILL, "fault", 0)
    assert [(event.signal, event.pids, event.rank) for event in run.of(SignalSent)] == [("SIGKILL", pids, -1)]


def test_stop_and_continue_reach_all(start):
    run = start(python(ESCAPES.format(count=1) + WAITS))
    run.until(Marked)

    pids = run.target.signal(run.victim(), signal.SIGSTOP, cause="fault")
    run.until_true(lambda: set(run.target.process_states(pids).values()) == {"stopped"})
    run.target.signal(run.victim(), signal.SIGCONT, cause="fault")
    run.until_true(lambda: set(run.target.process_states(pids).values()) == {"running"})

    assert len(pids) == 2


def test_a_stop_is_not_what_ended_the_attempt(start):
    run = start(python("emit('leave')\nsys.exit(4)"), armed=("leave:after",))
    run.releases = False
    reached = run.until(BarrierReached)

    run.target.signal(run.victim(), signal.SIGSTOP, cause="fault")
    run.target.signal(run.victim(), signal.SIGCONT, cause="fault")
    run.target.release(reached)
    run.finish()

    assert [(exited.exit_code, exited.cause) for exited in run.exits()] == [(4, "job")]


def test_one_rank_is_hit_and_the_others_are_not(start):
    run = start_ranks(start)
    run.until(Marked, nth=2)
    by_rank = {event.rank: event.pid for event in run.of(Marked)}

    pids = run.target.signal(run.victim(rank=1), signal.SIGKILL, cause="fault")
    run.until_true(lambda: run.target.process_states(pids) == {by_rank[1]: "gone"})

    assert pids == (by_rank[1],)
    assert run.target.process_states([by_rank[0]]) == {by_rank[0]: "running"}
    assert run.until(SignalSent).rank == 1


def test_an_attempt_that_fails_after_a_rank_was_hit_failed_for_that(start):
    run = start_ranks(start)
    run.until(Marked, nth=2)

    for rank in (0, 1):
        run.target.signal(run.victim(rank=rank), signal.SIGKILL, cause="fault")
    run.finish()

    assert [(exited.exit_code, exited.cause) for exited in run.exits()] == [(9, "fault")]


def test_an_attempt_that_survives_the_loss_of_a_rank_ended_by_itself(start):
    run = start(python("child = subprocess.Popen(['sleep', '60'])\nemit('ready', pid=child.pid)\nchild.wait()\nsys.exit(0)"))
    run.until(Marked)

    run.target.signal(run.victim(rank=0), signal.SIGKILL, cause="fault")
    run.finish()

    assert [(exited.exit_code, exited.cause) for exited in run.exits()] == [(0, "job")]


def test_the_grace_of_one_rank_ends_with_its_process(start):
    command = python("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + RANKS)
    run = start(command, environment={"CODE": command[-1]}, grace_s=0.2)
    run.until(Marked, nth=2)

    pids = run.target.terminate(run.victim(rank=1), cause="fault")
    run.until(SignalSent, lambda event: event.cause == "grace")

    (kill,) = [event for event in run.of(SignalSent) if event.cause == "grace"]
    assert (kill.signal, kill.rank, kill.pids) == ("SIGKILL", 1, pids)
    assert run.exits() == []


def test_the_grace_of_one_rank_is_made_to_be_over_for_it_alone(start):
    command = python("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + RANKS)
    run = start(command, environment={"CODE": command[-1]}, grace_s=600.0)
    run.until(Marked, nth=2)

    pids = run.target.terminate(run.victim(rank=1), cause="fault")
    with pytest.raises(LookupError, match="no grace runs"):
        run.target.expire_grace(run.victim())
    with pytest.raises(LookupError, match="no grace runs"):
        run.target.expire_grace(run.victim(rank=0))
    assert run.target.expire_grace(run.victim(rank=1)) == pids
    run.until(SignalSent, nth=2)
    run.until_true(lambda: run.target.process_states(pids) == dict.fromkeys(pids, "gone"))

    assert [(event.rank, event.cause) for event in run.of(SignalSent)] == [(1, "fault"), (1, "grace")]
    assert run.exits() == []


@pytest.mark.parametrize("lie", ["1 if os.getpid() != 1 else 4321", "os.getppid()", "2**31 - 1"])
def test_a_job_that_lies_about_its_process_id_harms_nobody(start, lie):
    run = start(python(f"emit('boot', pid={lie})\nemit('ready', pid={lie})\ntime.sleep(60)"))
    run.until(Marked)

    with pytest.raises(LookupError):
        run.target.signal(run.victim(rank=0), signal.SIGKILL, cause="fault")
    with pytest.raises(LookupError):
        run.target.terminate(run.victim(rank=0), cause="fault")

    assert run.of(SignalSent) == []
    assert run.target.process_states([run.of(AttemptStarted)[0].pid]) == {run.of(AttemptStarted)[0].pid: "running"}


def test_a_rank_that_never_spoke_cannot_be_hit(start):
    run = start(("sh", "-c", "echo up; sleep 60"))
    run.until(LogLine)
    run.until(AttemptStarted)

    with pytest.raises(LookupError, match="has not said its process id"):
        run.target.signal(run.victim(rank=0), signal.SIGTERM, cause="fault")


def test_processes_of_others_are_gone_for_a_run(start):
    run = start(("sh", "-c", "sleep 60"))
    run.until(AttemptStarted)

    assert run.target.process_states([1, os.getpid(), 2**22 - 1]) == {1: "gone", os.getpid(): "gone", 2**22 - 1: "gone"}


def test_a_signal_sent_after_the_end_finds_nobody(start):
    run = start(("sh", "-c", "exit 0"), max_retries=0)
    run.until_true(lambda: not _is_there(run))

    with pytest.raises(LookupError):
        run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.until(AttemptExited)

    assert [(exited.exit_code, exited.cause) for exited in run.exits()] == [(0, "job")]


def _is_there(run):
    try:
        return run.target.process_ids(run.victim())
    except LookupError:
        return ()
