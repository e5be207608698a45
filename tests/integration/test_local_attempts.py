"""What can only happen to attempts that are children of this process."""

import os
import signal

import pytest

from harness.errors import BrokenHarnessError
from harness.history import AttemptStarted
from harness.targets import left_behind
from tests.contract.driver import Run


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
