"""The worker's side of the warm child: one process that has imported the job and calls its recovery function for one state after the other.

It is a fresh interpreter, never a fork of ours or of itself: a process in which JAX has started threads must not be forked.
"""

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from harness.clock import Clock
from harness.explore.judging import warm_child
from harness.explore.judging.ended import Ended, EndWatch, await_end, ended_of
from harness.explore.judging.grant import Grant
from harness.explore.judging.speech import Hear, Output, Stream
from harness.explore.judging.strays import end_strays
from harness.targets.local.subreaper import subreaper

IMPORT_S_MAX = 120.0
"""For importing the job: JAX and Orbax take some seconds on a quiet machine, more where all workers begin at once."""

LAST_WORDS_S = 5.0
"""For the traceback of one that leaves because it cannot import."""

ANSWER_BYTES = 64 << 10


class WarmChildError(Exception):
    """The child could not be made ready: the function cannot be imported."""


class WarmChild:
    """One such process; started on construction.

    Attributes:
        pid: Its process id.
        served: How many recoveries it has been asked for.
        stale: Why it must not serve another one; empty while it may.

    Raises:
        OSError: When it cannot be started.
        WarmChildError: When it cannot import the function.
    """

    def __init__(self, recover: str, *, directory: Path, environment: Mapping[str, str], marks: Collection[bytes], clock: Clock) -> None:
        self.served = 0
        self.stale: tuple[str, ...] = ()
        self._marks, self._clock = marks, clock
        self._peer, theirs = socket.socketpair()
        with theirs:
            words = [warm_child.__file__, str(directory), recover, str(theirs.fileno()), str(os.getpid())]
            self._process = self._start(words, theirs.fileno(), directory=directory, environment=environment)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.pid = self._process.pid
        subreaper.add_leader(self.pid)
        self._pipes: dict[Stream, IO[bytes]] = {"stdout": self._process.stdout, "stderr": self._process.stderr}
        self._received = b""
        output = self._output()
        if self._await_answer(output, clock.monotonic_s() + IMPORT_S_MAX).get("ready") is not True:
            await_end(self._process, output, deadline_s=clock.monotonic_s() + LAST_WORDS_S, clock=clock)
            output.drain()
            self.end()
            raise WarmChildError(f"{recover} could not be imported in {directory}: {output.end or 'it said nothing'}")

    def _start(
        self, words: Sequence[str], descriptor: int, *, directory: Path, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                [sys.executable, "-P", *words],
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                pass_fds=[descriptor],
            )
        except OSError:
            self._peer.close()
            raise

    def _output(self, hear: Hear | None = None) -> Output:
        return Output({stream: pipe.fileno() for stream, pipe in self._pipes.items()}, hear)

    def recover(self, environment: Mapping[str, str], *, checkpoints: Path, timeout_s: float, hear: Hear | None = None) -> Ended:
        """Have the function called; whatever it started is ended afterwards, and so is the child when its time is over.

        Raises:
            TimeoutError: When something of it withstands SIGKILL.
        """
        output, grant = self._output(hear), Grant(timeout_s, self._clock)
        self.served += 1
        request = {"environment": dict(environment), "checkpoints": str(checkpoints)}
        with contextlib.suppress(OSError):  # it has died meanwhile, which is told below
            self._peer.sendall(json.dumps(request).encode() + b"\n")
        answer = grant.wait(lambda until_s: self._await_answer(output, until_s))
        if "exit_code" not in answer:
            return self._conclude(output, grant, why=answer.get("leaves"))
        seconds = grant.seconds
        stale = [str(reason) for reason in _listed(answer.get("stale"))]
        strays = end_strays(self._marks, self._clock, keep=self._process.pid)
        self.stale = (*stale, *(["processes that it had started still ran"] if strays else []))
        output.drain()
        code = answer["exit_code"]
        return ended_of(code if isinstance(code, int) else 1, timed_out=False, seconds=seconds, said=output.end)

    def end(self) -> None:
        """Kill it, with all that it started.

        Raises:
            TimeoutError: When something of it withstands SIGKILL.
        """
        if self._process.returncode is None:
            self._process.kill()
        self._wait()
        self._peer.close()
        for pipe in self._pipes.values():
            pipe.close()
        end_strays(self._marks, self._clock)

    def _conclude(self, output: Output, grant: Grant, *, why: object) -> Ended:
        """It did not answer: it has died, leaves by itself, or its time is over."""
        self.stale = (str(why or "it has ended in a recovery"),)
        has_ended = grant.wait(lambda until_s: await_end(self._process, output, deadline_s=until_s, clock=self._clock))
        slept, seconds = not has_ended and grant.was_slept_through(), grant.seconds
        if not has_ended:
            self._process.kill()
        code = self._wait()
        end_strays(self._marks, self._clock)
        output.drain()
        return replace(ended_of(code, timed_out=not has_ended, seconds=seconds, said=output.end), slept=slept)

    def _wait(self) -> int:
        code = self._process.wait()
        subreaper.remove_leader(self.pid)
        return code

    def _await_answer(self, output: Output, deadline_s: float) -> Mapping[str, object]:
        """The next line that it writes to us; empty when it has closed the socket, has ended, or did not write one by then."""
        with EndWatch(self._process.pid) as watch:
            output.watch_in(watch.selector)
            watch.selector.register(self._peer, selectors.EVENT_READ)
            while (left_s := deadline_s - self._clock.monotonic_s()) > 0:
                ready = {key.fd for key, _ in watch.select(left_s)}
                output.take(ready, watch.selector)
                if self._peer.fileno() in ready:
                    line = self._receive()
                    if line is not None:
                        return line
                elif self._process.poll() is not None:
                    return {}
        return {}

    def _receive(self) -> Mapping[str, object] | None:
        """An answer, once its line is complete; an empty one at the end of the stream."""
        try:
            data = self._peer.recv(ANSWER_BYTES)
        except OSError:
            data = b""
        self._received += data
        line, newline, rest = self._received.partition(b"\n")
        if newline:
            self._received = rest
            try:
                answer = json.loads(line)
            except ValueError:
                return {}
            return answer if isinstance(answer, dict) else {}
        return None if data else {}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
