"""The workload's own ``inspect`` command, run on copies of the checkpoint directory, each in a fresh process.

Fresh processes because checkpoint managers cache what they saw; copies because they delete temporary folders when they open a directory.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.history import Event, Inspected
from harness.runner.binding import fill
from harness.scenario import Scenario

DETAIL_LENGTH_MAX = 500
"""Characters of a failed inspection's output that are kept: the last ones say why."""


class _Answer(msgspec.Struct):
    """What an inspection prints: one JSON object, as the last line of its standard output."""

    step: int
    digests: dict[str, str] = {}


def inspect_copies(scenario: Scenario, copies: Mapping[tuple[int, int], tuple[Path, float]], *, root: Path) -> list[Event]:
    """Inspect every copy and remove it; an inspection that fails is an ``Inspected`` with step -1 and what it said."""
    recorded: list[Event] = []
    for (task, attempt), (copy, taken_s) in sorted(copies.items()):
        answer = _inspect(scenario, copy, root=root)
        digests = answer.digests if isinstance(answer, _Answer) else {}
        step, detail = (answer.step, "") if isinstance(answer, _Answer) else (-1, answer)
        recorded.append(Inspected(t_s=taken_s, task=task, attempt=attempt, step=step, digests=digests, detail=detail))
        shutil.rmtree(copy, ignore_errors=True)
    return recorded


def _inspect(scenario: Scenario, copy: Path, *, root: Path) -> _Answer | str:
    outside = scenario.workload.outside
    command = [fill(part, checkpoint_dir=copy.resolve(), seed=0) for part in outside.inspect]
    environment = {**os.environ, **scenario.workload.environment, "CHECKPOINT_DIR": str(copy.resolve())}
    try:
        process = subprocess.Popen(
            command,
            cwd=root / scenario.workload.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return f"could not be started: {error.strerror or error}"
    try:
        output, _ = process.communicate(timeout=outside.inspect_timeout_s)
    except subprocess.TimeoutExpired:
        return f"not finished after {outside.inspect_timeout_s:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _read(output, process.returncode)


def _read(output: bytes, exit_code: int) -> _Answer | str:
    lines = output.decode(errors="replace").strip().splitlines()
    if exit_code == 0 and lines:
        try:
            return msgspec.json.decode(lines[-1], type=_Answer)
        except msgspec.MsgspecError as error:
            return f"its last line is not {{step, digests}}: {error}"
    return f"exit code {exit_code}: " + "\n".join(lines)[-DETAIL_LENGTH_MAX:]
