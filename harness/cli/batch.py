"""Runs scenarios in worker processes, so many at once, and tells a display what comes in."""

import collections
import contextlib
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from harness.cli.exits import EXIT_BROKEN, EXIT_INTERRUPTED
from harness.cli.interruptions import COUNTED_MAX, Interruptions
from harness.cli.owed import owing_of
from harness.cli.standing_index import StandingIndex
from harness.cli.worker import Finished, Job, Message, Progressed, Refused, Waiting
from harness.clock import Clock
from harness.store import ENDING_S_MAX
from harness.undo import identify

READ_BYTES = 65536

GARBAGE_SHOWN_MAX = 80
"""Bytes of a line that is no message: enough to see who said it."""


class Display(Protocol):
    """Shows what a batch does."""

    def began(self, scenario: str) -> None:
        """A worker took it on."""

    def progressed(self, message: Progressed) -> None:
        """A worker says how far it is."""

    def waiting(self, message: Waiting) -> None:
        """A worker says that it waits for its turn, or that it goes on."""

    def ended(self, message: Finished | Refused) -> None:
        """It was judged, or refused."""

    def stopping(self, scenarios: Sequence[str], patience_s: float, why: str) -> None:
        """What runs is being ended: we were interrupted, or it is enough."""

    def ticked(self) -> None:
        """Time has passed."""


@dataclass
class _Worker:
    """A worker process and what it is at.

    Attributes:
        garbage: A line of it that is no message, after which nothing that it says is believed.
        is_overdue: Whether it was killed for not having ended its run in time.
    """

    process: subprocess.Popen[bytes]
    scenario: str = ""
    began_s: float = 0.0
    is_waiting: bool = False
    unread: bytearray = field(default_factory=bytearray)
    garbage: bytes = b""
    is_overdue: bool = False
    runs_dir: str = ""

    def give(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.scenario, self.runs_dir = job.scenario.name, job.runs_dir
        with contextlib.suppress(BrokenPipeError):  # its end is noticed on its output
            self.process.stdin.write(msgspec.json.encode(job) + b"\n")
            self.process.stdin.flush()

    def read(self) -> list[Message] | None:
        """What it said since; None at the end of its output."""
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), READ_BYTES)
        if not data:
            return None
        if self.garbage:
            return []
        self.unread += data
        *lines, rest = bytes(self.unread).split(b"\n")
        self.unread = bytearray(rest)
        messages: list[Message] = []
        for line in lines:
            try:
                messages.append(_MESSAGES.decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self.garbage = line[:GARBAGE_SHOWN_MAX] or b"\n"
                break
        return messages


def endlessly(_lasted_s: Mapping[str, float]) -> str:
    """It is never enough."""
    return ""


_MESSAGES: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


class Batch:
    """A number of scenarios on a number of workers.

    Args:
        jobs: What to run, in this order.
        workers: So many at once.
        display: Told of everything.
        clock: The time.
        index: Renewed as scenarios end.
        ending_s_max: What takes longer to end after an interrupt is killed.
        enough: Asked over and over with the seconds that each scenario has taken, those that run included; a reason ends the batch.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        workers: int,
        display: Display,
        clock: Clock,
        index: StandingIndex,
        ending_s_max: float = ENDING_S_MAX,
        enough: Callable[[Mapping[str, float]], str] = endlessly,
    ) -> None:
        self._waiting = collections.deque(jobs)
        self._workers_max = max(1, min(workers, len(jobs)))
        self._display = display
        self._clock = clock
        self._index = index
        self._ending_s_max = ending_s_max
        self._enough = enough
        self._lasted_s: dict[str, float] = {}
        self._ended_because = ""
        self._myself = identify([os.getpid()])[0]
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._results: dict[str, Finished | Refused] = {}
        self._looked_s = clock.monotonic_s()
        self._waited_s = 0.0
        self._is_interrupted = False

    def run(self) -> dict[str, Finished | Refused]:
        """Run everything, or until we are interrupted and what ran has ended; returns what came of it, by scenario."""
        with Interruptions() as interruptions, self._selector:
            for _ in range(self._workers_max):
                self._start_worker()
            while self._workers and not interruptions.count and not self._ended_because:
                self._look()
                self._ended_because = self._enough(self.lasted_s)
            if self._workers:
                self._interrupt(interruptions)
        return self._results

    @property
    def is_interrupted(self) -> bool:
        """Whether it was, before everything had ended."""
        return self._is_interrupted

    @property
    def ended_because(self) -> str:
        """Why it was enough; empty where it was not, or we were interrupted."""
        return self._ended_because

    @property
    def lasted_s(self) -> Mapping[str, float]:
        """How long each scenario that was begun has taken, those that run included."""
        now_s = self._clock.monotonic_s()
        return {**self._lasted_s, **{worker.scenario: now_s - worker.began_s for worker in self._workers if worker.scenario}}

    @property
    def not_run(self) -> list[str]:
        """Scenarios that no worker has taken on."""
        return [job.scenario.name for job in self._waiting]

    @property
    def unended(self) -> list[str]:
        """Scenarios that still ran when we were told to wait no longer."""
        return [worker.scenario for worker in self._workers if worker.scenario]

    @property
    def waited_s(self) -> float:
        """For how long all that ran waited for others: a run that waits for another one of ours costs no time of its own."""
        return self._waited_s

    def _look(self) -> None:
        """Hear what was said, for a moment."""
        heard = self._selector.select(timeout=0.1)
        now_s = self._clock.monotonic_s()
        at_work = [worker for worker in self._workers if worker.scenario]
        if at_work and all(worker.is_waiting for worker in at_work):
            self._waited_s += now_s - self._looked_s
        self._looked_s = now_s
        for key, _ in heard:
            self._hear(key.data)
        self._display.ticked()
        self._index.renew()

    def _start_worker(self) -> None:
        if not self._waiting or self._is_interrupted:
            return
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.cli.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        worker = _Worker(process=process)
        self._workers.append(worker)
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        self._give_next(worker)

    def _give_next(self, worker: _Worker) -> None:
        worker.is_waiting = False
        if self._waiting and not self._is_interrupted:
            job = self._waiting.popleft()
            self._display.began(job.scenario.name)
            worker.began_s = self._clock.monotonic_s()
            worker.give(replace(job, overseer=self._myself, ending_s_max=self._ending_s_max))
        else:
            worker.scenario = ""
            self._close(worker)

    def _hear(self, worker: _Worker) -> None:
        messages = worker.read()
        if messages is None:
            self._bury(worker)
            return
        for message in messages:
            if isinstance(message, Progressed):
                self._display.progressed(message)
            elif isinstance(message, Waiting):
                worker.is_waiting = bool(message.why)
                self._display.waiting(message)
            else:
                self._end(message, worker)
                self._give_next(worker)
        if worker.garbage:
            self._close(worker)  # it ends what it runs, and then itself

    def _end(self, message: Finished | Refused, worker: _Worker) -> None:
        self._results[message.scenario] = message
        self._lasted_s[message.scenario] = self._clock.monotonic_s() - worker.began_s
        self._display.ended(message)
        self._index.age()

    def _close(self, worker: _Worker) -> None:
        assert worker.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            worker.process.stdin.close()

    def _bury(self, worker: _Worker) -> None:
        """A worker's output has ended: expected when it had nothing to do, else its scenario is lost and another worker takes the rest."""
        assert worker.process.stdout is not None
        self._selector.unregister(worker.process.stdout)
        worker.process.stdout.close()
        self._close(worker)
        code = worker.process.wait()
        self._workers.remove(worker)
        if worker.scenario and worker.scenario not in self._results:
            self._end(self._lost(worker, code), worker)
            self._start_worker()

    def _lost(self, worker: _Worker, code: int) -> Refused:
        """What is said of a scenario whose worker said nothing of it."""
        if self._is_interrupted and code == EXIT_INTERRUPTED:
            return Refused(scenario=worker.scenario, exit_code=EXIT_INTERRUPTED, message="interrupted before it began")
        how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
        if worker.garbage:
            how = f"said {worker.garbage!r} where a message was due"
        if worker.is_overdue:
            how = f"had not ended it after {self._ending_s_max:g} s, and was killed"
        pid = worker.process.pid
        left = owing_of(
            Path(worker.runs_dir), self._clock, is_asked=lambda owner: owner.overseer == self._myself and owner.process.pid == pid
        )
        message = "; ".join([f"the process that ran it {how}", *(map(str, left) if left else ["`harness clean` ends what it left"])])
        return Refused(scenario=worker.scenario, exit_code=EXIT_BROKEN, message=message)

    def _interrupt(self, interruptions: Interruptions) -> None:
        """Have every worker end its run, and kill what hangs; told to wait no longer, leave it to them: they end it all the same."""
        self._is_interrupted = True
        running = [worker.scenario for worker in self._workers if worker.scenario]
        self._display.stopping(running, self._ending_s_max, self._ended_because or "interrupted")
        for worker in self._workers:
            self._close(worker)  # without its input it interrupts itself
        deadline_s = self._clock.monotonic_s() + self._ending_s_max
        while self._workers and self._clock.monotonic_s() < deadline_s:
            self._look()
            if interruptions.count >= COUNTED_MAX:
                return
        for worker in list(self._workers):
            worker.is_overdue = True
            worker.process.kill()
            self._bury(worker)
