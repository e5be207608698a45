"""A worker of ``harness run``: scenarios come in as JSON lines, progress and results go out as JSON lines.

It lives as long as its standard input: when the parent goes, however it goes, the worker interrupts its run, which then stops and heals.
What takes longer than the parent would have waited for is left to ``harness clean``.
"""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import msgspec

from harness.cli.exits import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_USAGE, in_full
from harness.cli.owed import owing
from harness.clock import SystemClock
from harness.errors import BrokenHarnessError, HarnessError, TargetUnavailableError, UsageError
from harness.history import AttemptStarted, Event, FaultObserved, StepDone
from harness.report import Summary, summarize, write_run
from harness.runner import Options, run_scenario
from harness.scenario import Scenario
from harness.store import ENDING_S_MAX, RunDirectory, RunStore
from harness.targets import create
from harness.undo import ProcessId

PROGRESS_EVERY_S = 0.2
"""A person reads no faster."""

UNNOTICED_S = 5.0
"""By so much longer than its parent would have waited a worker that nobody ends any more waits itself."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One line in: what to run, and what the user typed for it; ``overseer`` and ``ending_s_max`` are those of whoever sends it."""

    scenario: Scenario
    target: str
    seed: int
    keep: bool
    root: str
    runs_dir: str
    argv: tuple[str, ...] = ()
    overseer: ProcessId | None = None
    ending_s_max: float = ENDING_S_MAX


class Progressed(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """How far a run is."""

    scenario: str
    text: str


class Waiting(msgspec.Struct, frozen=True, kw_only=True, tag="waiting"):
    """A run waits for its turn, and why; without a reason it goes on."""

    scenario: str
    why: str = ""


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """A run was judged."""

    scenario: str
    summary: Summary


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """A run was not made or not finished; ``exit_code`` as of the command line; ``directory`` where there is one."""

    scenario: str
    exit_code: int
    message: str
    directory: str = ""


Message = Progressed | Waiting | Finished | Refused


class ReportFailedError(BrokenHarnessError):
    """A run was judged, and its page could not be written."""

    def __init__(self, *, outcome: str, reason: str) -> None:
        self.outcome, self.reason = outcome, reason
        super().__init__(f"the run was judged {outcome}, but its report could not be written: {reason}")


class Wire:
    """Standard output, taken for messages alone: whatever else prints in this process prints to standard error from now on."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def say(self, message: Message) -> None:
        """Write one line out; a parent that is gone is noticed on standard input."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._file.write(msgspec.json.encode(message) + b"\n")
            self._file.flush()


class Narrator:
    """Turns events into a short line, not too often."""

    def __init__(self, scenario: str, clock: SystemClock, wire: Wire) -> None:
        self._scenario = scenario
        self._clock = clock
        self._wire = wire
        self._said_s = 0.0
        self._attempt, self._step, self._faults = 0, 0, 0
        self._is_waiting = False

    def waits(self, scenario: Scenario, why: str) -> None:
        """See ``harness.runner.progress.Progress``."""
        del scenario
        self._is_waiting = True
        self._wire.say(Waiting(scenario=self._scenario, why=why))

    def saw(self, scenario: Scenario, events: Sequence[Event]) -> None:
        """See ``harness.runner.progress.Progress``. The first event is that the run was opened: then it waits no more."""
        if self._is_waiting:
            self._is_waiting = False
            self._wire.say(Waiting(scenario=self._scenario))
        for event in events:
            if isinstance(event, AttemptStarted):
                self._attempt, self._step = event.attempt, 0
            elif isinstance(event, StepDone):
                self._step = event.step
            elif isinstance(event, FaultObserved):
                self._faults += 1
        now_s = self._clock.monotonic_s()
        if now_s - self._said_s < PROGRESS_EVERY_S:
            return
        self._said_s = now_s
        golden = "uninterrupted run, " if scenario.name != self._scenario else ""
        text = f"{golden}attempt {self._attempt}, step {self._step}, faults {self._faults}"
        self._wire.say(Progressed(scenario=self._scenario, text=text))


def work(job: Job, wire: Wire) -> Message:
    """Run one scenario to its end."""
    clock = SystemClock()
    opened: list[RunDirectory] = []
    narrator = Narrator(job.scenario.name, clock, wire)
    options = Options(root=Path(job.root), seed=job.seed, keep=job.keep, argv=job.argv, progress=narrator, opened=opened.append)
    store = RunStore(Path(job.runs_dir), clock, overseer=job.overseer, ending_s_max=job.ending_s_max)
    try:
        run = run_scenario(job.scenario, target=lambda: create(job.target, clock), clock=clock, store=store, options=options)
        try:
            write_run(run.directory)
        except Exception as error:
            raise ReportFailedError(outcome=run.verdict.outcome, reason=f"{type(error).__name__}: {error}") from error
        return Finished(scenario=job.scenario.name, summary=summarize(run.directory))
    except (UsageError, TargetUnavailableError) as error:
        code, message = EXIT_USAGE, str(error)
    except HarnessError as error:
        code, message = EXIT_BROKEN, in_full(error)
    except KeyboardInterrupt as error:
        problems = getattr(error, "__notes__", [])  # of ending it
        ended = [] if opened and owing(opened[0]) is not None else ["everything it started was ended"]
        code, message = EXIT_INTERRUPTED, "; ".join(["interrupted", *(problems or ended)])
    except Exception as error:  # noqa: BLE001  the edge of the program: a user sees one line, the traceback is kept beside the run
        code, message = EXIT_BROKEN, f"{type(error).__name__}: {error}"
        if opened:
            with contextlib.suppress(OSError):
                (opened[0].path / "traceback.txt").write_text(traceback.format_exc())
    left = owing(opened[0]) if opened else None
    message = f"{message}; {left}" if left is not None else message
    return Refused(scenario=job.scenario.name, exit_code=code, message=message, directory=str(opened[0].path) if opened else "")


class Orders:
    """Standard input, read by a thread of its own: its end is noticed whatever the worker is at."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._arrived = threading.Condition()
        self._ending_s_max = ENDING_S_MAX

    def next(self) -> Job | None:
        """What is to be done next, waited for; None: there is nothing more."""
        with self._arrived:
            self._arrived.wait_for(lambda: bool(self._lines))
            line = self._lines.pop(0)
        if not line:
            return None
        job = msgspec.json.decode(line, type=Job)
        self._ending_s_max = job.ending_s_max
        return job

    def read(self) -> None:
        """Hand over lines; at the end of the stream, interrupt whatever runs: the parent is gone, or wants us to go.

        Then it waits as the parent would, and does what that would do: a run that does not end is killed with its process.
        """
        for line in sys.stdin.buffer:
            self._hand_over(line)
        self._hand_over(b"")
        os.kill(os.getpid(), signal.SIGINT)
        SystemClock().sleep(self._ending_s_max + UNNOTICED_S)
        os.kill(os.getpid(), signal.SIGKILL)

    def _hand_over(self, line: bytes) -> None:
        with self._arrived:
            self._lines.append(line)
            self._arrived.notify()


def main() -> int:
    """Work until standard input ends."""
    wire = Wire()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    orders = Orders()
    threading.Thread(target=orders.read, daemon=True).start()
    try:
        while (job := orders.next()) is not None:
            wire.say(work(job, wire))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Interrupt once: what comes after it (a second Ctrl-C, the end of standard input) must not interrupt the ending of the run."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    raise SystemExit(main())
