"""Runs executions: each in a thread of its own, which alone touches what runs there; others leave it orders."""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol, TypeVar

from harness.capabilities import Launch
from harness.clock import Clock
from harness.emulator.run.launches import missing_program
from harness.errors import HarnessError
from harness.history import Event
from harness.targets.local.target import LocalTarget

Result = TypeVar("Result")
Order = Callable[[LocalTarget], None]

TICK_S = 0.02
"""Between two looks at orders and at a clock that may be moved by hand; what a job says wakes the thread at once."""

JOIN_S_MAX = 30.0
"""A thread that closes kills everything and reads what was said; processes that withstand that hold it for ten seconds."""

_STARTING = threading.Lock()
"""Held while an execution opens or closes what all of this process share: it is counted there without a lock."""


class Listener(Protocol):
    """Who is told of an execution, in its thread."""

    def happened(self, events: Sequence[Event]) -> None:
        """This has happened since."""
        ...

    def ended(self, problem: str) -> None:
        """It is over, and nothing of it is left; with a problem, it could not be run or not to its end."""
        ...


class ExecutionThread(threading.Thread):
    """Runs one execution to its end, or until it is told to stop."""

    def __init__(self, launch: Launch, clock: Clock, listener: Listener) -> None:
        super().__init__(name=f"emulator-execution-{launch.job}")
        self._launch, self._listener = launch, listener
        self._target = LocalTarget(clock)
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._is_over = False

    def order(self, act: Callable[[LocalTarget], Result]) -> "Future[Result]":
        """Have something done in the thread; the future fails with ``LookupError`` when the execution is over before."""
        future: Future[Result] = Future()

        def obey(target: LocalTarget) -> None:
            try:
                future.set_result(act(target))
            except LookupError as error:
                future.set_exception(error)

        with self._lock:
            if self._is_over:
                future.set_exception(LookupError("the execution is over"))
            else:
                self._orders.put(obey)
        return future

    def stop(self) -> None:
        """End everything; returns when nothing of it is left.

        Raises:
            RuntimeError: When it does not end.
        """
        self._stopping.set()
        self.join(JOIN_S_MAX)
        if self.is_alive():
            raise RuntimeError(f"the thread of an execution of {self._launch.job} does not end")

    def run(self) -> None:
        """See ``threading.Thread``."""
        problem = "the emulator has failed"
        try:
            try:
                self._run()
                problem = ""
            except HarnessError as error:
                problem = str(error)
            finally:
                self._close()
        finally:  # a defect of ours is shown as of any thread, and nobody waits for the execution for ever
            if not self._stopping.is_set():
                self._listener.ended(problem)

    def _run(self) -> None:
        missing = missing_program(self._launch)
        if missing:
            raise HarnessError(f"Application failed to start: failed to resolve binary path: error finding executable {missing!r} in PATH")
        with _STARTING:
            self._target.start(self._launch)
        while not self._target.is_finished() and not self._stopping.is_set():
            self._target.wait(TICK_S)
            self._obey()  # before what has ended since is tried again: it may have been cancelled before
            self._tell(self._target.poll())

    def _obey(self) -> None:
        while not self._orders.empty():
            self._orders.get()(self._target)

    def _close(self) -> None:
        with self._lock:
            self._is_over = True
        with _STARTING:
            last = self._target.stop()
        self._tell(last)
        self._obey()  # what was asked for too late finds nobody

    def _tell(self, events: Sequence[Event]) -> None:
        if events:
            self._listener.happened(events)


class Engine:
    """All executions that run, by their names."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._threads: dict[str, ExecutionThread] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def start(self, name: str, launch: Launch, listener: Listener) -> None:
        """Begin an execution.

        Raises:
            RuntimeError: When the engine is closed.
        """
        thread = ExecutionThread(launch, self._clock, listener)
        with self._lock:
            if self._is_closed:
                raise RuntimeError(f"{name} is not started: the emulator closes")
            self._threads = {key: found for key, found in self._threads.items() if found.is_alive()}
            self._threads[name] = thread
            thread.start()

    def order(self, name: str, act: Callable[[LocalTarget], Result]) -> "Future[Result]":
        """Have something done to an execution; the future fails with ``LookupError`` when it does not run."""
        with self._lock:
            thread = self._threads.get(name)
        if thread is not None:
            return thread.order(act)
        future: Future[Result] = Future()
        future.set_exception(LookupError(f"{name} does not run"))
        return future

    def close(self) -> None:
        """End all executions."""
        with self._lock:
            self._is_closed = True
            threads = list(self._threads.values())
        for thread in threads:
            thread.stop()
