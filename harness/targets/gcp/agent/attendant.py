"""The agent at work: it starts the job, follows orders, passes the platform's signals on, and tells all of it.

One thread that never touches storage, so that a signal of the platform is passed on at once however slow the bucket is.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import selectors
import shutil
import signal
import tempfile
from collections import deque
from typing import NamedTuple

from harness.targets.gcp.agent.clock import monotonic_s, utc_s
from harness.targets.gcp.agent.doors import SOCKET_PATH_BYTES_MAX, Barrier, EventTail
from harness.targets.gcp.agent.job import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Job, exit_code_of
from harness.targets.gcp.agent.notices import Timers
from harness.targets.gcp.agent.orders import WHOLE, Order, OrderReader
from harness.targets.gcp.agent.points import ARMED, OWN, Points
from harness.targets.gcp.agent.processes import adopt_orphans
from harness.targets.gcp.agent.reports import Reporter

PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGWINCH,
)
"""What the platform may send to the first process of a container."""

VERSION = 1
"""Of what is said and understood; raised when an old target would misread it."""

SWEEP_S_MAX = 5.0
"""For what outlives the job: SIGKILL acts within milliseconds, a stuck disk keeps a process for longer."""


class Settings(NamedTuple):
    """What the command line of the agent says.

    Attributes:
        home: The mounted directory of orders and reports.
        command: The job's.
        job: ``CLOUD_RUN_JOB`` for the job under test; empty: as the platform says.
        armed: Where the job asks at the barrier, as ``event:when``, with conditions where it is not held each time (``Points``).
        own: Where it is held so that the target can look at storage; in a grace it is not.
        said_every_s: What is not urgent is said so often.
        look_every_s: Orders, and the job's events, are looked for so often.
        start_within_s: The job is started by itself when nobody has ordered it by then; 0: at once.
        hold_s: Nobody waits longer at the barrier.
        pause_s: Nobody stays stopped for longer.
        alive_every_s: A sign of life, so that silence is told from a death.
        last_words_s: For saying the rest when the job has ended.
    """

    home: str
    command: list[str]
    job: str = ""
    armed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    said_every_s: float = 1.0
    look_every_s: float = 0.1
    start_within_s: float = 120.0
    hold_s: float = 120.0
    pause_s: float = 60.0
    alive_every_s: float = 10.0
    last_words_s: float = 60.0


class Attendant:
    """Attends to one attempt: ``run`` returns the exit code of the container."""

    def __init__(self, settings: Settings, environment: dict[str, str]) -> None:
        self._settings, self._environment = settings, environment
        self._task = _number(environment, "CLOUD_RUN_TASK_INDEX")
        self._attempt = _number(environment, "CLOUD_RUN_TASK_ATTEMPT")
        who = f"{self._task}-{self._attempt}"
        said, orders = (os.path.join(settings.home, name, who) for name in ("said", "orders"))  # noqa: PTH118
        self._reporter = Reporter(said, every_s=settings.said_every_s)
        self._orders = OrderReader(orders, deliver=self._deliver, refuse=self._refused)
        self._inbox: deque[Order] = deque()
        self._selector = selectors.DefaultSelector()
        self._timers = Timers()
        self._is_taken_away = False
        self._job: Job | None = None
        self._platform_signals: list[int] = []
        self._alive_at_s = monotonic_s()
        self._waking = self._catch_signals()

    def run(self) -> int:
        """From the first word to the last."""
        adopt_orphans()
        self._reporter.start()
        self._say_hello()
        self._orders.start(every_s=self._settings.look_every_s)
        where = None if len(tempfile.gettempdir()) + 50 <= SOCKET_PATH_BYTES_MAX else "/tmp"  # noqa: S108
        scratch = tempfile.mkdtemp(prefix=_scratch_prefix(self._environment), dir=where)
        try:
            code = self._attend(scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self._orders.stop()
        unsaid = self._reporter.close(monotonic_s() + self._settings.last_words_s)
        if unsaid:
            os.write(2, f"harness agent: {unsaid} reports could not be written to {self._settings.home}\n".encode())
        return code

    # ---- the job -----------------------------------------------------------------------------------------------------

    def _attend(self, scratch: str) -> int:
        self._events = EventTail(os.path.join(scratch, "events"))  # noqa: PTH118
        self._barrier: Barrier | None = None
        if self._settings.armed or self._settings.own:
            path = os.path.join(scratch, "barrier")  # noqa: PTH118
            self._points = Points(self._settings.armed, self._settings.own)
            self._barrier = Barrier(path, self._points, selector=self._selector, reached=self._say_reached, passed=self._say_passed)
        code = self._await_start()
        if code is None:
            code = self._start(scratch)
        if code is not None:
            return code
        assert self._job is not None
        while self._job.status is None:
            self._turn(self._job)
        return self._end(self._job)

    def _await_start(self) -> int | None:
        """Wait until the job is to be started; an exit code when the platform has ended us before."""
        due_s = monotonic_s() + self._settings.start_within_s
        self._start_order = 0
        while monotonic_s() < due_s and not self._start_order:
            self._wait(due_s - monotonic_s())
            for number in self._take_signals():
                self._reporter.say("received", is_urgent=True, signal=number, pids=[])
                if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
                    self._reporter.say("exit", is_urgent=True, code=None, signal=number, container=128 + number, leftovers=0, began=False)
                    return 128 + number
            while self._inbox and not self._start_order:
                order = self._inbox.popleft()
                if order.do == "start":
                    self._start_order = order.number
                else:
                    self._refused(order.number, "the job has not been started")
        return None

    def _start(self, scratch: str) -> int | None:
        environment = dict(self._environment)
        for name in ("HARNESS_BARRIER", "HARNESS_ARMED"):
            environment.pop(name, None)
        environment["HARNESS_EVENTS"] = os.path.join(scratch, "events")  # noqa: PTH118
        if self._barrier is not None:
            environment["HARNESS_BARRIER"] = os.path.join(scratch, "barrier")  # noqa: PTH118
            environment["HARNESS_ARMED"] = " ".join(self._points.places)
        if self._settings.job:
            environment["CLOUD_RUN_JOB"] = self._settings.job
        try:
            self._job = Job(self._settings.command, environment)
        except OSError as error:
            code = EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_NOT_EXECUTABLE
            reason = f"{self._settings.command[0]}: {error.strerror or error}"
            os.write(2, f"harness agent: {reason}\n".encode())
            self._reporter.say("unstartable", order=self._start_order, reason=reason)
            self._reporter.say("exit", is_urgent=True, code=code, signal=None, container=code, leftovers=0, began=False)
            return code
        self._reporter.say("begun", is_urgent=True, order=self._start_order, pid=self._job.pid)
        return None

    def _turn(self, job: Job) -> None:
        self._wait(min(self._settings.look_every_s, self._timers.next_due_s() - monotonic_s()))
        for number in self._take_signals():
            self._reporter.say("received", is_urgent=True, signal=number, pids=job.signal(number))
            self._is_taken_away |= number == signal.SIGTERM
        job.reap()
        while self._inbox:
            self._follow(self._inbox.popleft(), job)
        self._spare_grace()
        self._let_timers_act(job)
        self._tell(job)

    def _spare_grace(self) -> None:
        """A grace is the job's. The clock of ours stands still while a fault holds it; the platform's own cannot: nobody is held in it."""
        if self._barrier is None:
            return
        if self._is_taken_away:
            self._barrier.let_pass(frozenset((ARMED, OWN)))
        else:
            self._barrier.let_pass(frozenset((OWN,)) if self._timers.has_grace else frozenset())
        seconds = self._timers.note_held(self._barrier.is_holding, monotonic_s())
        if seconds:
            self._reporter.say("held", seconds=seconds)

    def _tell(self, job: Job) -> None:
        now_s = monotonic_s()
        self._say_events()
        if self._barrier is not None:
            for number in self._barrier.release_overdue(now_s, self._settings.hold_s):
                self._reporter.say("let-go", is_urgent=True, barrier=number, after_s=self._settings.hold_s)
        changed = job.changes()
        if changed and job.status is None:
            self._reporter.say("states", is_urgent=True, states={str(pid): state for pid, state in changed.items()})
        if now_s >= self._alive_at_s + self._settings.alive_every_s:
            self._alive_at_s = now_s
            self._reporter.say("alive")

    def _end(self, job: Job) -> int:
        """Take away what is left of the job, and say how it ended."""
        deadline_s = monotonic_s() + SWEEP_S_MAX
        ended_s = monotonic_s()
        is_swept = job.sweep()
        while not is_swept and monotonic_s() < deadline_s:
            self._wait(0.005)
            is_swept = job.sweep()
        if self._barrier is not None:
            self._barrier.close()
            if self._barrier.garbage_count:
                self._reporter.say_lost("requests at the barrier that are no line of the protocol", self._barrier.garbage_count)
        self._say_events()
        for what, count in self._events.lost().items():
            self._reporter.say_lost(what, count)
        self._events.close()
        status = job.status or 0
        self._reporter.say(
            "exit",
            is_urgent=True,
            ended=ended_s,
            code=status if status >= 0 else None,
            signal=-status if status < 0 else None,
            container=exit_code_of(status),
            leftovers=job.leftovers,
            swept=is_swept,
            began=True,
        )
        return exit_code_of(status)

    # ---- orders ------------------------------------------------------------------------------------------------------

    def _follow(self, order: Order, job: Job) -> None:
        if order.do == "release":
            if self._barrier is not None:
                self._barrier.release(order.barrier)
        elif order.do == "signal":
            self._send(order, job, order.signal)
        elif order.do == "notice":
            if self._send(order, job, signal.SIGTERM):
                self._spare_grace()
                self._timers.give_notice(order, due_s=monotonic_s() + order.grace_s)
                self._spare_grace()
        elif order.do == "end-grace":
            notice = self._timers.take_notice(order.pid)
            if notice is None:
                self._refused(order.number, "no grace runs: there was no notice, or it is over")
            else:
                self._send(order._replace(cause="grace"), job, signal.SIGKILL)
        else:
            self._refused(order.number, "the job runs already")

    def _send(self, order: Order, job: Job, number: int) -> bool:
        """Send a signal and say who got it; whether somebody did."""
        reached = job.signal(number, order.pid)
        if not reached:
            self._refused(order.number, "the job has ended" if job.status is not None else f"process {order.pid} is none of the job's")
            return False
        self._timers.note_signal(number, order.pid, due_s=monotonic_s() + self._settings.pause_s)
        self._say_sent(order.number, number, order.pid, order.cause, reached)
        return True

    def _let_timers_act(self, job: Job) -> None:
        for pid, number, cause in self._timers.take_due(monotonic_s()):
            reached = job.signal(number, pid)
            if reached:
                self._say_sent(0, number, pid, cause, reached)

    def _say_sent(self, order: int, number: int, pid: int, cause: str, reached: list[int]) -> None:
        states = {str(each): state for each, state in self._settled_states(number, reached).items()}
        self._reporter.say("sent", is_urgent=True, order=order, signal=number, pid=pid, cause=cause, pids=reached, states=states)

    def _settled_states(self, number: int, pids: list[int]) -> dict[int, str]:
        """The states of processes after a signal: what stands still or goes on does so within a moment."""
        assert self._job is not None
        passing = ""
        if number in (signal.SIGCONT, signal.SIGSTOP):
            passing = "stopped" if number == signal.SIGCONT else "running"
        states = self._job.states(pids)
        for _ in range(20):
            if passing not in states.values():
                break
            self._wait(0.005)
            states = self._job.states(pids)
        return states

    # ---- what is said ------------------------------------------------------------------------------------------------

    def _say_hello(self) -> None:
        self._reporter.say(
            "hello",
            is_urgent=True,
            version=VERSION,
            utc=utc_s(),
            pid=os.getpid(),
            task=self._task,
            attempt=self._attempt,
            execution=self._environment.get("CLOUD_RUN_EXECUTION", ""),
        )

    def _say_events(self) -> None:
        for line in self._events.read():
            self._reporter.say("event", line=line)

    def _say_reached(self, number: int, line: str) -> None:
        """What the job has written before it came to the barrier is said before."""
        self._say_events()
        if self._barrier is not None:
            self._barrier.hold_from(number, monotonic_s())
        self._reporter.say("barrier", is_urgent=True, barrier=number, line=line)

    def _say_passed(self, why: str) -> None:
        self._reporter.say("passed", is_urgent=True, what=why)

    def _refused(self, number: int, why: str) -> None:
        self._reporter.say("refused", is_urgent=True, order=number, reason=why)

    # ---- waiting -----------------------------------------------------------------------------------------------------

    def _catch_signals(self) -> int:
        """From now on signals, and orders, become bytes on the descriptor that is returned."""
        reading, writing = os.pipe()
        for descriptor in (reading, writing):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda caught, _frame: self._platform_signals.append(caught))
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._selector.register(reading, selectors.EVENT_READ, self._drain)
        self._wake = writing
        return reading

    def _deliver(self, order: Order) -> None:
        """By the thread that reads orders."""
        self._inbox.append(order)
        with contextlib.suppress(OSError):  # it is full: then we wake anyway
            os.write(self._wake, b"\0")

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            while os.read(self._waking, 4096):
                pass

    def _take_signals(self) -> list[int]:
        taken: list[int] = []
        while self._platform_signals:
            taken.append(self._platform_signals.pop(0))
        return taken

    def _wait(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            key.data()


def _scratch_prefix(environment: dict[str, str]) -> str:
    """On an emulator, where no container takes it away, ``harness clean`` finds it by the run, as ``harness.protocol.barrier`` names it."""
    run_id = environment.get("HARNESS_RUN_ID", "")
    return f"harness-{hashlib.sha256(run_id.encode()).hexdigest()[:10]}-" if run_id else "harness-"


def _number(environment: dict[str, str], name: str) -> int:
    text = environment.get(name, "0")
    return int(text) if text.isdecimal() and len(text) <= 9 else 0


__all__ = ["WHOLE", "Attendant", "Settings"]
