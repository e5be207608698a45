"""A worker: a process that tries one state after the other and answers on a socket, until its executor closes it.

It is a process of its own, and not a thread of the executor, since a recovery may kill its parent, and since orphans must come to one who
knows whose they are. ``python -P -m harness.explore.executors.worker DESCRIPTOR``; nothing else starts it.
"""

import select
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from harness.clock import SystemClock
from harness.explore.executors.wire import Answer, Setup, decode, encode
from harness.explore.executors.worker_process import once_s
from harness.explore.judging.company import Company
from harness.explore.judging.place import Place
from harness.explore.judging.strays import end_strays
from harness.explore.judging.trial import Trials
from harness.explore.recipe import StateTask
from harness.targets.local.subreaper import subreaper

EXIT_ABANDONED = 70
"""The executor has gone, or has been silent for too long."""


class _AbandonedError(Exception):
    """Nobody wants the answer of what is being tried."""


def main(descriptor: int) -> int:
    """Serve; returns the exit code."""
    subreaper.acquire(main)
    with socket.socket(fileno=descriptor) as peer, peer.makefile("rb") as lines:
        setup = decode(lines.readline(), Setup)
        peer.settimeout(setup.idle_s_max)
        place = Place(Path(setup.place), run_id=setup.run_id, recipe=setup.recipe, surroundings=setup.surroundings)
        trials = Trials(setup.recipe, place, blobs=Path(setup.blobs), clock=SystemClock(), company=_company_of(setup))
        try:
            _notice_end_of_executor(peer.fileno())
            _serve(trials, lines, peer)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # nothing is tried any more, so nothing is to be interrupted
        except (_AbandonedError, TimeoutError, ConnectionError):
            return EXIT_ABANDONED
        finally:
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            _leave(setup, place)
    return 0


def _company_of(setup: Setup) -> Company | None:
    if not setup.has_company:
        return None
    return Company(Path(setup.blobs), SystemClock(), wait_s_max=once_s(setup.recipe, again=True))


def _serve(trials: Trials, lines: Iterable[bytes], peer: socket.socket) -> None:
    told = 0
    for line in lines:
        tried = trials.try_state(decode(line, StateTask))
        replaced, told = trials.replaced[told:], len(trials.replaced)
        peer.sendall(encode(Answer(tried=tried, replaced=tuple(replaced))))


def _notice_end_of_executor(descriptor: int) -> None:
    """Have what is being tried interrupted when the executor has closed its end, or has died."""
    signal.signal(signal.SIGUSR1, _abandon)
    threading.Thread(target=_await_end_of_executor, args=(descriptor,), daemon=True).start()


def _await_end_of_executor(descriptor: int) -> None:
    watch = select.poll()
    watch.register(descriptor, getattr(select, "POLLRDHUP", 0))  # else what is told unasked: POLLHUP
    watch.poll()
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)


def _abandon(*_: object) -> None:
    raise _AbandonedError


def _leave(setup: Setup, place: Place) -> None:
    end_strays(place.marks, SystemClock())
    if setup.owns:
        shutil.rmtree(setup.owns, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
