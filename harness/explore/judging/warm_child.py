"""The process that imports a job once and calls its recovery function for one state after the other.

Standard library only, run as a file under ``python -P``: nothing of the harness comes into the user's process. Never forks.

Arguments: the directory of the job, ``module:function``, the descriptor of the socket to the worker, the worker's process id. Called by
anybody else than that worker, as by a job that starts itself once more by ``sys.orig_argv``, it is the function's command.

What a call leaves behind is put back: signal handlers and mask, timers, umask, working directory, streams, arguments and import path. What
cannot be put back is told, and the worker takes another process for the next state: threads that still run, files below the checkpoint
directory that are still open, a changed standard output. When threads are left that keep a process from ending, this one ends as the
job's own would: it waits for them and runs what was registered for its end. Not undone: modules and their variables, what was
registered with ``atexit``, resource limits.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import TextIO

PR_SET_PDEATHSIG = 1
INTERRUPTED = 130  # as a shell tells the end by SIGINT
THREAD_ENDS_S = 0.1  # for each: an idle one is gone in far less, and one that works keeps this process from serving another state


def main(directory: str, target: str, descriptor: int, worker: int) -> int:
    """Import, say so, then serve until the worker closes the socket; returns the exit code."""
    sys.path.insert(0, directory)
    sys.argv = [target]
    if os.getppid() != worker:
        return call(load(target))
    die_with_worker()
    with socket.socket(fileno=descriptor) as peer, peer.makefile("rw", encoding="utf-8", newline="\n") as control:
        os.chdir(directory)
        recover = load(target)
        baseline = Baseline()
        tell(control, {"ready": True})
        for line in control:
            request = json.loads(line)
            os.environ.clear()
            os.environ.update(request["environment"])
            os.chdir(directory)
            code = call(recover)
            baseline.let_threads_end()
            lasting = [thread.name for thread in baseline.new_threads() if not thread.daemon]
            if lasting:
                tell(control, {"leaves": f"threads that still ran: {', '.join(lasting)}"})
                return code
            tell(control, {"exit_code": code, "stale": [*baseline.put_back(), *baseline.left_over(request["checkpoints"])]})
    os._exit(0)  # nobody asks for more: what was registered for the end is of recoveries that are over


def die_with_worker() -> None:
    """Have the kernel end this process when the worker ends (Linux)."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)


def tell(control: TextIO, answer: dict[str, object]) -> None:
    """Write one line to the worker."""
    control.write(json.dumps(answer) + "\n")
    control.flush()


def load(target: str) -> Callable[[], object]:
    """The function that ``module:function`` names."""
    module, _, names = target.partition(":")
    found: object = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{target} is {found!r}, not a function")
    return found


def call(recover: Callable[[], object]) -> int:
    """Call it as a console script calls its function; returns the exit code, and writes a traceback as the interpreter would."""
    try:
        code = exit_code_of(recover())
    except SystemExit as error:
        code = exit_code_of(error.code)
    except KeyboardInterrupt:
        traceback.print_exc()
        code = INTERRUPTED
    except BaseException:  # noqa: BLE001 - the job's: whatever it is, a process of its own would have ended by it
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return code


def exit_code_of(value: object) -> int:
    """As ``sys.exit`` takes it: nothing is 0, a number is itself, anything else is printed and is 1."""
    if value is None:
        return 0
    if isinstance(value, int):
        return int(value) & 0xFF
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{value}\n")
    return 1


class Baseline:
    """How the process was before the first call."""

    def __init__(self) -> None:
        self.handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self.umask = os.umask(0)
        os.umask(self.umask)
        self.threads = frozenset(threading.enumerate())
        self.arguments, self.path = list(sys.argv), list(sys.path)
        self.streams = (sys.stdin, sys.stdout, sys.stderr)
        self.outputs = outputs()

    def new_threads(self) -> list[threading.Thread]:
        """Threads that a call has started and that still run."""
        return [thread for thread in threading.enumerate() if thread not in self.threads]

    def let_threads_end(self) -> None:
        """Give those a moment that end by themselves once nobody refers to what they serve.

        The executor of an event loop that was never closed ends its threads when it is collected; at the end of a process they are told to.
        """
        if self.new_threads():
            gc.collect()
        for thread in self.new_threads():
            thread.join(THREAD_ENDS_S)

    def put_back(self) -> Iterator[str]:
        """Put back what can be; yields what could not."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self.handlers.items():
            now = signal.getsignal(number)
            if now == handler:
                continue
            if handler is None or now is None:
                yield f"the handler of signal {number} is not Python's"
                continue
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        os.umask(self.umask)
        sys.argv[:], sys.path[:] = self.arguments, self.path
        sys.stdin, sys.stdout, sys.stderr = self.streams

    def left_over(self, checkpoints: str) -> Iterator[str]:
        """What keeps this process from serving another state."""
        yield from (f"thread {thread.name} still runs" for thread in self.new_threads())
        if outputs() != self.outputs:
            yield "its standard output or error was changed"
        if any(open_below(checkpoints)):
            gc.collect()  # what only a cycle keeps open is closed by this
        yield from (f"{path} is still open" for path in open_below(checkpoints))


def outputs() -> list[tuple[int, int] | None]:
    """What the standard output and error are, by device and number."""
    found: list[tuple[int, int] | None] = []
    for descriptor in (1, 2):
        try:
            status = os.fstat(descriptor)
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino))
    return found


def open_below(directory: str) -> Iterator[str]:
    """Paths below a directory that this process has open (Linux)."""
    try:
        descriptors = os.listdir("/proc/self/fd")
    except OSError:
        return
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - the kernel's own words
            if path == directory or path.startswith(directory + "/"):
                yield path


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
