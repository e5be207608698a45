"""What can only happen to attempts that are children of this process."""

import os
import signal

import pytest

from harness.capabilities import Processes
from harness.errors import BrokenHarnessError, StoreError
from harness.history import AttemptStarted, Booted, SignalSent, StepDone
from harness.targets import left_behind
from tests.contract.driver import Run, python

SUCCESSION = python("""
child = "from workloads.protocol import emit; import os, time; emit('boot', rank=1, pid=os.getpid()); time.sleep({0}); emit('step', step=1, rank=1)"
subprocess.run([sys.executable, "-S", "-c", child.format(60)])
subprocess.run([sys.executable, "-S", "-c", child.format(2)])
""")


def test_an_exit_status_that_is_taken_away_breaks_the_run_and_nothing_is_left(tmp_path):
    run = Run("local", tmp_path, ("sh", "-c", "sleep 60 & sleep 60"), tasks=2).start()
    victim = run.until(AttemptStarted, lambda event: event.task == 0).pid

    run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    os.waitpid(victim, 0)

    with pytest.raises(BrokenHarnessError, match="was taken by other code"):
        run.finish()
    with pytest.raises(BrokenHarnessError, match="was taken by other code"):
        run.stop()
    assert left_behind(run.launch.run_id) == []
    assert run.stop() == []


def test_what_was_last_seen_is_not_lost_with_a_log_that_cannot_be_written(tmp_path, monkeypatch):
    run = Run("local", tmp_path, ("sleep", "60")).start()
    run.until(AttemptStarted)

    def refuse(_events: object) -> None:
        raise StoreError(path=run.launch.logs_dir, attempted="append to the log", reason="No space left on device")

    monkeypatch.setattr(run.target._running._record, "log", refuse)
    with pytest.raises(StoreError):
        run.stop()

    run.stop()
    assert [(event.signal, event.cause) for event in run.exits()] == [(signal.SIGKILL, "stop")]
    assert run.stop() == []


def test_the_end_of_a_ranks_notice_does_not_reach_the_process_that_has_become_the_rank_since(tmp_path):
    run = Run("local", tmp_path, SUCCESSION, grace_s=1.0).start()
    first = run.until(Booted, lambda event: event.rank == 1).pid

    assert run.target.terminate(Processes(task=0, attempt=0, rank=1), cause="fault") == (first,)
    second = run.until(Booted, lambda event: event.rank == 1, nth=2).pid
    run.finish()
    run.stop()

    assert second not in (0, first)
    assert [event.pid for event in run.of(StepDone)] == [second]
    assert [(event.signal, event.pids) for event in run.of(SignalSent)] == [("SIGTERM", (first,))]
    assert run.exits()[0].exit_code == 0


def test_the_end_of_a_ranks_notice_ends_what_does_not_heed_it(tmp_path):
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN); emit('boot', rank=1, pid=os.getpid()); time.sleep(60)"
    run = Run("local", tmp_path, python(deaf), grace_s=0.2).start()
    pid = run.until(Booted).pid

    run.target.terminate(Processes(task=0, attempt=0, rank=1), cause="fault")
    run.finish()
    run.stop()

    assert [(event.signal, event.cause, event.pids) for event in run.of(SignalSent)] == [
        ("SIGTERM", "fault", (pid,)),
        ("SIGKILL", "grace", (pid,)),
    ]
    assert run.exits()[0].signal == signal.SIGKILL
