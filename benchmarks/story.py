"""Writes a run directory whose history is as long as wanted: what the linear job on two ranks would have said in a run of hours.

Each save interval holds the steps of both ranks with digests and samples, a save with its markers, and the survey of it. The job is killed
twice, gets SIGTERM once, and resumes each time; the uninterrupted run beside it has the same trajectory.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.checkers import CHECKERS
from harness.history import (
    SCHEMA_VERSION,
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    Booted,
    CheckpointSeen,
    CheckpointsSeen,
    Done,
    Event,
    ExecutionFinished,
    ExecutionStarted,
    FaultHealed,
    FaultObserved,
    FaultRequested,
    GoldenKnown,
    HistoryWriter,
    LogLine,
    Marked,
    RestoreBegun,
    Restored,
    ResultSeen,
    RunClosed,
    RunOpened,
    SaveBegun,
    SaveEnded,
    SignalSent,
    SigtermSeen,
    Started,
    StepDone,
    TaskFinished,
)
from harness.scenario import Injection, Outside, Scenario, Workload, encode
from harness.scenario.expectations import (
    AdmittedTo,
    BitExactResume,
    ChargesRetries,
    Completes,
    ConsumesProvisioning,
    ExactlyOnceData,
    ExitCodes,
    Goodput,
    GraceConduct,
    IntactCheckpoints,
    LeavesNothing,
    LogOrder,
    MakesProgress,
    NoHang,
    RanksAgree,
    RecoversWithin,
    ResumesFromNewestDurable,
    SameResult,
    SameRun,
    SavesAtCadence,
    SingleWriter,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.scenario.faults import Fault, Kill, OverlapAttempts, Terminate
from harness.scenario.triggers import AtMarker
from harness.store import RunDirectory
from workloads.protocol import digest

SAVE_EVERY = 5
RANKS = 2
BATCH = 8
"""Samples of one rank in one step."""
EPOCH_STEPS = 500
TICK_S, START_S = 0.002, 0.1
MARKERS = ("save.write", "save.write", "save.write", "save.write", "save.commit", "gc.begin")
"""What the linear job marks in each save."""
EVENTS_AN_INTERVAL = SAVE_EVERY * RANKS + 2 + len(MARKERS) + 1
PARTS = ("params", "optimizer", "rng", "data", "step")
End = Literal["kill", "terminate", "overlap-attempts"]
ENDS: tuple[End, ...] = ("kill", "terminate", "overlap-attempts")
"""How the attempts before the last one end, each in the middle of a save interval."""


@dataclass
class Story:
    """What was seen of a job, told event by event on a clock that moves by itself.

    Attributes:
        events: So far.
        attempt: Which speaks.
        t_s: Now.
        stored: The checkpoints on storage.
    """

    events: list[Event] = field(default_factory=list)
    attempt: int = 0
    t_s: float = 0.0
    stored: list[CheckpointSeen] = field(default_factory=list)

    def add(self, kind: type[Event], **fields: object) -> None:
        """Something was seen, now."""
        self.t_s = round(self.t_s + TICK_S, 6)
        self.events.append(kind(t_s=self.t_s, **fields))

    def say(self, kind: type[Event], **fields: object) -> None:
        """Something was seen of the attempt that runs."""
        self.add(kind, task=0, attempt=self.attempt, **fields)

    def open(self, *, is_golden: bool) -> None:
        """The run and its execution begin."""
        opened_at = "2026-01-01T00:00:00.000+00:00"
        self.add(RunOpened, schema=SCHEMA_VERSION, run_id="r", scenario=NAME, target="local", seed=0, opened_at=opened_at)
        if not is_golden:
            self.add(GoldenKnown, key="linear", equal=True, detail="two uninterrupted runs are equal")
        self.add(ExecutionStarted, execution="linear-1", tasks=1, max_retries=len(ENDS), timeout_s=36000.0, grace_s=10.0)

    def begin(self, steps: int, *, restored: int) -> None:
        """An attempt starts, takes its time to come up, and restores what it finds."""
        self.say(AttemptStarted, pid=1000 + self.attempt)
        self.t_s += START_S
        for rank in range(RANKS):
            self.say(Booted, rank=rank)
            if restored:
                self.say(RestoreBegun, step=restored, rank=rank)
                self.say(Restored, step=restored, digests=digests_of(restored), rank=rank)
            self.say(Started, restored_step=restored, steps=steps, rank=rank)
        self.say(LogLine, stream="stdout", text=f"Resuming from step {restored} of {steps}." if restored else "Starting from scratch.")

    def train(self, first: int, last: int, *, saves_last: bool = False) -> None:
        """Steps of all ranks, with the periodic saves."""
        for step in range(first, last + 1):
            for rank in range(RANKS):
                self.say(StepDone, step=step, batch_ids=batch_of(step, rank), digests=digests_of(step), rank=rank)
            if step % SAVE_EVERY == 0 or (saves_last and step == last):
                self.save(step)

    def save(self, step: int) -> None:
        """A save, looked at; the newest two are kept."""
        self.say(SaveBegun, step=step, digests=digests_of(step))
        for marker in MARKERS:
            self.say(Marked, name=marker, step=step)
        self.say(SaveEnded, step=step, digests=digests_of(step))
        content = digest("content", str(step)) * 4
        seen = CheckpointSeen(
            step=step, path=f"step_{step:08d}", state="committed", digest=content, files=2, size_bytes=7922, is_latest=True
        )
        self.stored = [*self.stored[-1:], seen]
        self.say(CheckpointsSeen, occasion="save-end", checkpoints=(seen,), is_whole=False)

    def end(self, how: End, step: int) -> int:
        """An attempt is hurt after a step and ends, or is given up while it still runs; returns the step that is durable then."""
        name = f"{self.attempt + 1}-{how}"
        self.say(FaultRequested, injection=name, fault=how)
        if how == "overlap-attempts":
            self.say(AttemptAbandoned)
            self.say(FaultObserved, injection=name, evidence="two attempts run")
            self.attempt += 1
            return step - step % SAVE_EVERY
        self.say(SignalSent, signal="SIGKILL" if how == "kill" else "SIGTERM", cause="fault", pids=(1000 + self.attempt,))
        durable = step - step % SAVE_EVERY
        if how == "terminate":
            self.say(SigtermSeen)
            self.save(step)
            durable = step
        ending = {"signal": 9} if how == "kill" else {"exit_code": 143}
        self.leave(retried=True, **ending)
        self.say(FaultObserved, injection=name, evidence="wait status")
        self.say(FaultHealed, injection=name, evidence="nothing to undo")
        self.attempt += 1
        return durable

    def end_abandoned(self) -> None:
        """The attempt that was given up before this one ends at last."""
        self.attempt -= 1
        self.leave(retried=False, signal=9)
        self.say(FaultHealed, injection=f"{self.attempt + 1}-overlap-attempts", evidence="killed")
        self.attempt += 1

    def leave(self, *, retried: bool, **ending: int) -> None:
        """The attempt is over and storage is looked at."""
        self.say(LogLine, stream="system", text="Container terminated.", severity="WARNING")
        self.say(AttemptExited, retried=retried, cause="job" if ending == {"exit_code": 0} else "fault", **ending)
        self.say(CheckpointsSeen, occasion="attempt-end", checkpoints=tuple(self.stored))

    def complete(self, steps: int) -> None:
        """The job is done, and the run is closed."""
        for rank in range(RANKS):
            self.say(Done, step=steps, rank=rank)
        self.say(LogLine, stream="stdout", text=f"Completed {steps} steps.")
        self.leave(retried=False, exit_code=0)
        self.add(TaskFinished, task=0, succeeded=True, attempts=self.attempt + 1)
        self.add(ExecutionFinished, succeeded=1, failed=0, cancelled=0, retried=self.attempt)
        self.add(CheckpointsSeen, occasion="end", checkpoints=tuple(self.stored))
        self.add(ResultSeen, path="final.json", sha256=digest("result") * 4, size_bytes=99)
        self.add(RunClosed, reason="finished")


def digests_of(step: int) -> dict[str, str]:
    """The state after a step."""
    return {part: digest(part, str(step)) for part in PARTS}


def batch_of(step: int, rank: int) -> tuple[int, ...]:
    """The samples of a rank's step: each once in an epoch."""
    first = ((step - 1) % EPOCH_STEPS * RANKS + rank) * BATCH
    return tuple(range(first, first + BATCH))


FAULTS: dict[End, Fault] = {"kill": Kill(), "terminate": Terminate(), "overlap-attempts": OverlapAttempts()}

NAME = "a-long-run-is-read-and-judged-in-a-second"


OF_CLUSTERS = {AdmittedTo, SubmittedOnce, ConsumesProvisioning, WorkloadEnds, ChargesRetries, LeavesNothing}
"""Promises that only a cluster can keep or break: of it there is one event where a job says a thousand."""


def scenario_of(steps: int) -> Scenario:
    """A scenario that expects everything there is to expect."""
    workload = Workload(
        name="linear",
        command=("linear",),
        steps=steps,
        save_every=SAVE_EVERY,
        layout="step-directories",
        ranks=RANKS,
        outside=Outside(result="{checkpoint_dir}/final.json"),
    )
    scenario = Scenario(
        name=NAME,
        why="design: reading and checking must not take longer than a person waits",
        workload=workload,
        injections=tuple(
            Injection(fault=FAULTS[how], at=AtMarker(event="step"), attempts=(index,), name=f"{index + 1}-{how}")
            for index, how in enumerate(ENDS)
        ),
        expects=(
            Completes(),
            ExitCodes(),
            IntactCheckpoints(),
            ResumesFromNewestDurable(lost_steps_max=SAVE_EVERY),
            BitExactResume(),
            ExactlyOnceData(),
            WithinRetries(attempts_max=len(ENDS) + 1),
            GraceConduct(margin_s_min=5.0),
            SingleWriter(),
            MakesProgress(),
            NoHang(),
            LogOrder(patterns=("Starting from scratch", "Resuming from step", "Completed")),
            Goodput(),
            SavesAtCadence(every=SAVE_EVERY),
            SameResult(),
            RanksAgree(),
            SameRun(),
            RecoversWithin(total_s=36000.0),
        ),
        deadline_s=36000.0,
    )
    told = {type(expectation) for expectation in scenario.expects}
    assert told == set(CHECKERS) - OF_CLUSTERS, "a checker is missing from the benchmark"
    return scenario


def tell(steps: int, *, is_golden: bool) -> Story:
    """A whole run, with the ends of ``ENDS`` or without any."""
    story = Story()
    story.open(is_golden=is_golden)
    restored = 0
    lives = () if is_golden else ENDS
    for index, how in enumerate(lives, start=1):
        cut = steps * index // (len(ENDS) + 1) // SAVE_EVERY * SAVE_EVERY + 3
        story.begin(steps, restored=restored)
        story.train(restored + 1, cut)
        restored = story.end(how, cut)
    story.begin(steps, restored=restored)
    if lives:
        story.end_abandoned()
    story.train(restored + 1, steps, saves_last=True)
    story.complete(steps)
    return story


def write_long_run(path: Path, *, events_min: int) -> RunDirectory:
    """Make a run directory with a history of at least so many events, and the uninterrupted run beside it."""
    steps = (events_min // EVENTS_AN_INTERVAL + 1) * SAVE_EVERY
    directory = RunDirectory(path)
    path.mkdir(parents=True)
    for place, is_golden in ((directory.history_path, False), (directory.golden_path, True)):
        writer = HistoryWriter(place)
        writer.append(tell(steps, is_golden=is_golden).events)
        writer.close()
    directory.write(directory.scenario_path, encode(scenario_of(steps)))
    return directory
