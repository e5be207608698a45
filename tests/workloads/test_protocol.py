"""What the reference emitter owes a job that emits in a signal handler."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("armed", "is_there"), [("save.begin:after", True), ("", False)])
def test_an_armed_job_has_all_that_a_handler_needs_before_a_signal_can_come(tmp_path: Path, armed: str, is_there: bool) -> None:
    """A signal that came in the middle of an import at the barrier once killed the job, and a drawn schedule found it."""
    code = "import sys, workloads.protocol; print('socket' in sys.modules)"
    environment = {"HARNESS_EVENTS": str(tmp_path / "events"), "HARNESS_BARRIER": str(tmp_path / "barrier"), "HARNESS_ARMED": armed}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == str(is_there)
