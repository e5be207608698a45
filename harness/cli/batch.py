"""Runs scenarios in worker processes, so many at once, and tells a display what comes in."""

import collections
import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from harness.cli.exits import EXIT_BROKEN
from harness.cli.worker import Finished, Job, Message, Progressed, Refused
from harness.clock import Clock

STOP_PATIENCE_S = 30.0
"""An interrupted worker stops its run, heals and judges nothing; longer than the grace of any profile it could be waiting for."""

READ_BYTES = 65536

GARBAGE_SHOWN_MAX = 80
"""Bytes of a line that is no message: enough to see who said it."""


class Display(Protocol):
    """Shows what a batch does."""

    def began(self, scenario: str) -> None:
        """A worker took it on."""

    def progressed(self, message: Progressed) -> None:
        """A worker says how far it is."""

    def ended(self, message: Finished | Refused) -> None:
        """It was judged, or refused."""

    def ticked(self) -> None:
        """Time has passed."""


@dataclass
class _Worker:
    """A worker process and what it is at; ``garbage``: a line of it that is no message, after which nothing that it says is believed."""

    process: subprocess.Popen[bytes]
    scenario: str = ""
    unread: bytearray = field(default_factory=bytearray)
    garbage: bytes = b""

    def give(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.scenario = job.scenario.name
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


_MESSAGES: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


class Batch:
    """A number of scenarios on a number of workers."""

    def __init__(self, jobs: Sequence[Job], *, workers: int, display: Display, clock: Clock) -> None:
        self._waiting = collections.deque(jobs)
        self._workers_max = max(1, min(workers, len(jobs)))
        self._display = display
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._results: dict[str, Finished | Refused] = {}

    def run(self) -> dict[str, Finished | Refused]:
        """Run everything; interrupted, end what runs and raise again.

        Raises:
            KeyboardInterrupt: After every worker has ended.
        """
        try:
            for _ in range(self._workers_max):
                self._start_worker()
            while self._workers:
                for key, _ in self._selector.select(timeout=0.1):
                    self._hear(key.data)
                self._display.ticked()
        except KeyboardInterrupt:
            self._interrupt()
            raise
        finally:
            self._selector.close()
        return self._results

    @property
    def results(self) -> dict[str, Finished | Refused]:
        """What has ended so far, by scenario."""
        return self._results

    def _start_worker(self) -> None:
        if not self._waiting:
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
        if self._waiting:
            job = self._waiting.popleft()
            self._display.began(job.scenario.name)
            worker.give(job)
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
            else:
                self._end(message)
                self._give_next(worker)
        if worker.garbage:
            self._close(worker)  # it ends what it runs, and then itself

    def _end(self, message: Finished | Refused) -> None:
        self._results[message.scenario] = message
        self._display.ended(message)

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
            how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
            if worker.garbage:
                how = f"said {worker.garbage!r} where a message was due"
            self._end(
                Refused(
                    scenario=worker.scenario,
                    exit_code=EXIT_BROKEN,
                    message=f"the process that ran it {how}; `harness clean` ends what it left",
                )
            )
            self._start_worker()

    def _interrupt(self) -> None:
        """Interrupt every worker and wait until each has ended its run; kill the ones that do not."""
        for worker in self._workers:
            worker.process.send_signal(signal.SIGINT)
        deadline_s = self._clock.monotonic_s() + STOP_PATIENCE_S
        for worker in self._workers:
            left_s = max(0.1, deadline_s - self._clock.monotonic_s())
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.communicate(timeout=left_s)
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()
