"""A target in memory: a job that counts, on a platform that retries it, moved by its polls and by a clock that a test moves.

It keeps the contract of ``harness.capabilities``: one word of the job a poll, a barrier that holds the job until it is released, an attempt
that ends in one poll and is followed in the next. ``asked`` tells what the runner did, in order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.capabilities import Fidelity, Launch, Processes
from harness.clock import ManualClock
from harness.history import (
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    Booted,
    Cause,
    Done,
    Event,
    ExecutionFinished,
    ExecutionStarted,
    LogLine,
    OperationReached,
    SaveBegun,
    SaveEnded,
    SignalSent,
    SigtermSeen,
    Started,
    StepDone,
    TaskFinished,
)

SIGTERM, SIGKILL, SIGSTOP, SIGCONT = 15, 9, 19, 18
NAMES = {SIGTERM: "SIGTERM", SIGKILL: "SIGKILL", SIGSTOP: "SIGSTOP", SIGCONT: "SIGCONT"}


@dataclass
class FakeTarget:
    """One run of the counting job.

    Attributes:
        clock: Moved by ``wait``.
        before_poll: Called with the number of the poll, from 1: to raise, to move the clock, to look.
        silent_from: The step after which the job says nothing more; 0: it never falls silent.
        absent: Why the victim of a fault is never there.
        sets_up_s: How long after the opening of the run the execution begins.
        asked: What the runner did.
        state: Of the job's process.
    """

    clock: ManualClock
    before_poll: Callable[[int], None] = lambda _number: None
    silent_from: int = 0
    absent: str = ""
    sets_up_s: float = 0.0
    asked: list[str] = field(default_factory=list)
    state: str = "running"
    name: str = "fake"
    launch: Launch | None = None
    _has_begun: bool = False
    _attempt: int = -1
    _step: int = 0
    _polls: int = 0
    _pending: list[Event] = field(default_factory=list)
    _held: BarrierReached | None = None
    _ending: AttemptExited | None = None
    _is_leaving: bool = False
    _is_over: bool = False
    _is_stopped: bool = False

    def fidelity(self) -> Sequence[Fidelity]:
        return (Fidelity(what="all of it", here="emulated", note="in memory"),)

    def start(self, launch: Launch) -> None:
        self.asked.append("start")
        self.launch = launch
        self._start_if_due()

    def poll(self) -> Sequence[Event]:
        self._polls += 1
        self.asked.append("poll")
        self.before_poll(self._polls)
        self._start_if_due()
        if self._has_begun and not self._is_stopped and not self._is_over:
            self._move()
        events, self._pending = self._pending, []
        return events

    def _start_if_due(self) -> None:
        if self.launch is None or self._has_begun or self.now_s < self.sets_up_s:
            return
        self._has_begun = True
        granted = self.launch
        self._add(
            ExecutionStarted,
            execution="job-1",
            tasks=1,
            max_retries=granted.max_retries,
            timeout_s=granted.timeout_s,
            grace_s=granted.grace_s,
        )

    def wait(self, timeout_s: float) -> None:
        self.clock.sleep(timeout_s)

    def release(self, barrier: BarrierReached) -> None:
        self.asked.append(f"release {barrier.event}:{barrier.when} {barrier.step}")
        if self._held == barrier:
            self._held = None

    def is_finished(self) -> bool:
        return self._is_over and not self._pending

    def stop(self) -> Sequence[Event]:
        self.asked.append("stop")
        if self._is_stopped or self._attempt < 0 or self._is_over:
            self._is_stopped = True
            return ()
        self._is_stopped = True
        self.state = "gone"
        self._add(AttemptExited, attempt=self._attempt, signal=SIGKILL, cause="stop")
        events, self._pending = self._pending, []
        return events

    # ---- Signalable, Terminable, CheckpointStorage -------------------------------------------------------------------

    def process_ids(self, victim: Processes) -> tuple[int, ...]:
        self._find(victim)
        return (1 << 30,)  # no process of this machine: an undo finds nobody

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        self._find(victim)
        self.asked.append(f"signal {signal_number} attempt {victim.attempt}")
        self._add(SignalSent, attempt=victim.attempt, signal=NAMES[signal_number], cause=cause, pids=(100,), rank=victim.rank)
        if signal_number == SIGKILL:
            self.state, self._held = "gone", None
            self._ending = AttemptExited(t_s=self.now_s, attempt=self._attempt, signal=SIGKILL, cause=cause, retried=self._has_retries)
        else:
            self.state = "stopped" if signal_number == SIGSTOP else "running"
        return (100,)

    def process_states(self, pids: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(pids, self.state)

    def terminate(self, victim: Processes, *, cause: Cause, message: str = "", reason: str = "") -> tuple[int, ...]:
        self._find(victim)
        self.asked.append(f"terminate attempt {victim.attempt}")
        self._add(SignalSent, attempt=victim.attempt, signal="SIGTERM", cause=cause, pids=(100,))
        self._is_leaving = True
        return (100,)

    def checkpoint_path(self, task: int) -> Path:
        assert self.launch is not None
        return self.launch.checkpoint_path

    # ---- the job -----------------------------------------------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """As the history counts."""
        assert self.launch is not None
        return self.clock.monotonic_s() - self.launch.epoch_s

    @property
    def checkpoint(self) -> Path:
        """The file that holds the last saved step."""
        assert self.launch is not None
        return self.launch.checkpoint_path / f"{self.launch.job}-task-0-checkpoint.txt"

    @property
    def _has_retries(self) -> bool:
        assert self.launch is not None
        return self._attempt < self.launch.max_retries

    def _find(self, victim: Processes) -> None:
        if self.absent or self.state == "gone" or victim.attempt != self._attempt:
            raise LookupError(self.absent or f"attempt {victim.attempt} does not run")

    def _add(self, kind: type[Event], **fields: object) -> None:
        self._pending.append(kind(t_s=self.now_s, **fields))

    def _say(self, kind: type[Event], **fields: object) -> None:
        self._add(kind, attempt=self._attempt, pid=100, **fields)

    def _move(self) -> None:
        """One move of the platform or one word of the job."""
        assert self.launch is not None
        if self._ending is not None:
            self._end(self._ending)
        elif self.state == "gone" or self._attempt < 0:
            self._begin()
        elif self.state == "running" and self._held is None and not (self.silent_from and self._step >= self.silent_from):
            self._work(self.launch.steps)

    def _begin(self) -> None:
        self._attempt, self.state, self._is_leaving = self._attempt + 1, "running", False
        text = self.checkpoint.read_text() if self.checkpoint.exists() else ""
        self._step = int(text) if text.isdecimal() else 0
        self._add(AttemptStarted, attempt=self._attempt, pid=100)
        self._say(Booted)
        self._say(Started, restored_step=self._step, steps=self.launch.steps if self.launch else 0)
        self._add(LogLine, attempt=self._attempt, stream="stdout", text=f"starting from step {self._step}")

    def _work(self, steps: int) -> None:
        assert self.launch is not None
        if self._is_leaving:
            self._say(SigtermSeen)
            self._save()
            self._ending = AttemptExited(t_s=self.now_s, attempt=self._attempt, exit_code=143, cause="fault", retried=self._has_retries)
            return
        if self._step == steps:
            self._say(Done, step=steps)
            self._ending = AttemptExited(t_s=self.now_s, attempt=self._attempt, exit_code=0)
            return
        self._step += 1
        self._say(StepDone, step=self._step, digests={"step": f"{self._step:016x}"}, batch_ids=(self._step,))
        if self._step % 5 == 0 or self._step == steps:
            self._save()
        if "step:after" in self.launch.armed:
            self._held = BarrierReached(t_s=self.now_s, attempt=self._attempt, pid=100, event="step", when="after", step=self._step)
            self._pending.append(self._held)

    def _save(self) -> None:
        digests = {"step": f"{self._step:016x}"}
        self._say(SaveBegun, step=self._step, digests=digests)
        self.checkpoint.write_text(str(self._step))
        self._say(SaveEnded, step=self._step, digests=digests)

    def _end(self, ending: AttemptExited) -> None:
        self._add(
            AttemptExited,
            attempt=ending.attempt,
            exit_code=ending.exit_code,
            signal=ending.signal,
            cause=ending.cause,
            retried=ending.retried,
        )
        self._ending, self.state, self._held = None, "gone", None
        if ending.retried:
            return
        succeeded = ending.exit_code == 0
        self._is_over = True
        self._add(TaskFinished, task=0, succeeded=succeeded, attempts=self._attempt + 1)
        self._add(ExecutionFinished, succeeded=int(succeeded), failed=int(not succeeded), cancelled=0, retried=int(self._attempt > 0))


@dataclass
class StoppingTarget(FakeTarget):
    """Holds the job after each sync of its checkpoint file, where that was asked for; ``problem``: why it cannot."""

    problem: str = ""
    _stopped: OperationReached | None = None

    def stops_problem(self) -> str:
        return self.problem

    def resume(self, reached: OperationReached) -> None:
        self.asked.append(f"resume {reached.operation} {reached.nth}")
        if self._stopped == reached:
            self._stopped = None

    def _move(self) -> None:
        if self._stopped is None or self._ending is not None or self.state == "gone":
            self._stopped = None
            super()._move()

    def _save(self) -> None:
        super()._save()
        assert self.launch is not None
        for at in self.launch.stops:
            assert (at.operation, at.nth) == ("sync", 1)
            self._stopped = OperationReached(
                t_s=self.now_s,
                attempt=self._attempt,
                pid=100,
                operation="sync",
                path=at.path,
                nth=1,
                after=at.after,
                after_nth=at.after_nth,
            )
            self._pending.append(self._stopped)
