"""The workload's own ``inspect`` command, run on copies of the checkpoint directory, each in a fresh process.

Fresh processes because checkpoint managers cache what they saw; copies because they delete temporary folders when they open a directory.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.clock import SystemClock
from harness.history import Event, Inspected
from harness.runner.binding import fill, inherited
from harness.scenario import Scenario
from harness.targets import remove_left_behind

DETAIL_LENGTH_MAX = 500
"""Characters of a failed inspection's output that are kept: the last ones say why."""


OUTPUT_BYTES_MAX = 1 << 20
"""Of the end of an inspection's output that is kept: an answer has a digest for each part of the state, and is far shorter."""


class _Answer(msgspec.Struct):
    """What an inspection prints: one JSON object, as the last line of its standard output."""

    step: int
    digests: dict[str, str] = {}


def inspect_copies(
    scenario: Scenario, copies: Mapping[tuple[int, int], tuple[Path, float]], *, root: Path, seed: int, run_id: str
) -> list[Event]:
    """Inspect every copy and remove it; an inspection that fails is an ``Inspected`` with step -1 and what it said.

    The command gets the variables of the workload, and ``HARNESS_RUN_ID`` so that ``harness clean`` finds it; it is no part of the job.
    """
    recorded: list[Event] = []
    for (task, attempt), (copy, taken_s) in sorted(copies.items()):
        answer = _inspect(scenario, copy.resolve(), root=root, seed=seed, run_id=run_id)
        digests = answer.digests if isinstance(answer, _Answer) else {}
        step, detail = (answer.step, "") if isinstance(answer, _Answer) else (-1, answer)
        recorded.append(Inspected(t_s=taken_s, task=task, attempt=attempt, step=step, digests=digests, detail=detail))
        shutil.rmtree(copy, ignore_errors=True)
    return recorded


def _inspect(scenario: Scenario, copy: Path, *, root: Path, seed: int, run_id: str) -> _Answer | str:
    workload, outside = scenario.workload, scenario.workload.outside
    own = {name: fill(value, checkpoint_dir=copy, seed=seed) for name, value in workload.environment.items()}
    try:
        process = subprocess.Popen(
            [fill(part, checkpoint_dir=copy, seed=seed) for part in outside.inspect],
            cwd=root / workload.directory,
            env={**inherited(os.environ), **own, "CHECKPOINT_DIR": str(copy), "HARNESS_RUN_ID": run_id},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"could not be started: {getattr(error, 'strerror', None) or error}"
    try:
        output = _listen(process, outside.inspect_timeout_s)
    except subprocess.TimeoutExpired:
        return f"not finished after {outside.inspect_timeout_s:g} s"
    finally:
        if process.returncode is None:  # not waited for yet, so the id is still its own
            with contextlib.suppress(PermissionError):  # so some systems say that it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        remove_left_behind(run_id, only="local")  # what it started and did not wait for
        if process.stdout is not None:
            process.stdout.close()
    return _read(output, process.returncode)


def _listen(process: subprocess.Popen[bytes], timeout_s: float) -> bytes:
    """Wait for its end and return the end of its output; no more is kept, so that one that never stops talking does not fill our memory.

    Raises:
        subprocess.TimeoutExpired: When it has not ended by then.
    """
    assert process.stdout is not None
    clock, kept = SystemClock(), b""
    deadline_s = clock.monotonic_s() + timeout_s
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left_s := deadline_s - clock.monotonic_s()) > 0:
            piece = os.read(process.stdout.fileno(), OUTPUT_BYTES_MAX) if selector.select(left_s) else None
            if piece == b"":
                process.wait(max(0.0, deadline_s - clock.monotonic_s()))
                return kept
            kept = (kept + (piece or b""))[-OUTPUT_BYTES_MAX:]
    raise subprocess.TimeoutExpired(process.args, timeout_s)


def _read(output: bytes, exit_code: int) -> _Answer | str:
    lines = output.decode(errors="replace").strip().splitlines()
    if exit_code == 0 and lines:
        try:
            return msgspec.json.decode(lines[-1], type=_Answer)
        except (msgspec.MsgspecError, RecursionError) as error:
            return f"its last line is not {{step, digests}}: {error}"
    return f"exit code {exit_code}: " + "\n".join(lines)[-DETAIL_LENGTH_MAX:]
