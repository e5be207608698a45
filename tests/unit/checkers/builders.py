"""Builds histories by telling what a job did: ``Run().attempt(0).boot().start(0).steps(1, 7).save(5).exit(signal=9)``.

Time moves by itself, ``TICK_S`` an event. Digests and samples are pure functions of the step, so two runs that say the same are the same.
Storage follows the saves: what an attempt leaves behind is surveyed at its end, as the runner does.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from harness.checkers.evidence import Evidence, gather
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
    History,
    Marked,
    RestoreBegun,
    Restored,
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
from harness.scenario import Expectation, Injection, Platform, Scenario, Workload

TICK_S = 0.1
BATCH = 4
PER_EPOCH = 10  # steps

JOB = Workload(name="job", command=("job",), steps=20, save_every=5, layout="step-directories")
SILENT = msgspec.structs.replace(JOB, speaks_protocol=False)


def digests_of(step: int) -> dict[str, str]:
    """The state after a step."""
    return {"params": f"p{step:06d}", "optimizer": f"o{step:06d}", "rng": f"r{step:06d}", "step": f"s{step:06d}"}


def batch_of(step: int) -> tuple[int, ...]:
    """The samples of a step: each once in an epoch."""
    first = (step - 1) % PER_EPOCH * BATCH
    return tuple(range(first, first + BATCH))


@dataclass
class Run:
    """A history being told; every method returns the run, so that a story reads in one line."""

    workload: Workload = JOB
    platform: Platform = field(default_factory=Platform)
    events: list[Event] = field(default_factory=list)
    storage: dict[int, dict[int, CheckpointSeen]] = field(default_factory=dict)
    t_s: float = 0.0
    task: int = 0
    number: int = 0
    is_surveyed: bool = True
    target: str = "local"

    def __post_init__(self) -> None:
        self.add(
            RunOpened,
            schema=SCHEMA_VERSION,
            run_id="r",
            scenario="s",
            target=self.target,
            seed=0,
            opened_at="2026-01-01T00:00:00.000+00:00",
        )
        granted = self.platform
        self.add(
            ExecutionStarted,
            execution="job-1",
            tasks=granted.tasks,
            max_retries=granted.max_retries,
            timeout_s=granted.timeout_s,
            grace_s=granted.grace_s,
        )

    def add(self, kind: type[Event], **fields: Any) -> "Run":
        """Record any event, now."""
        self.t_s = round(self.t_s + TICK_S, 6)
        self.events.append(kind(t_s=self.t_s, **fields))
        return self

    def fork(self) -> "Run":
        """The story so far, to be told on in another way."""
        return deepcopy(self)

    def here(self, kind: type[Event], **fields: Any) -> "Run":
        """Record an event of the current attempt."""
        return self.add(kind, task=self.task, attempt=self.number, **fields)

    # ---- the platform ----

    def attempt(self, number: int, *, task: int = 0) -> "Run":
        """An attempt starts; what follows is of it."""
        self.task, self.number = task, number
        return self.here(AttemptStarted, pid=100 + number)

    def on(self, number: int, *, task: int = 0) -> "Run":
        """What follows is of an attempt that has started before."""
        self.task, self.number = task, number
        return self

    def signal(self, name: str, *, cause: str = "fault", rank: int = -1) -> "Run":
        """The platform sends a signal."""
        return self.here(SignalSent, signal=name, cause=cause, pids=(100 + self.number,), rank=rank)

    def abandon(self) -> "Run":
        """The platform holds the attempt for dead although it runs."""
        return self.here(AttemptAbandoned)

    def exit(self, code: int | None = None, *, signal: int | None = None, cause: str = "job", retried: bool = True) -> "Run":
        """The attempt ends, and storage is looked at."""
        code = 0 if code is None and signal is None else code
        self.here(AttemptExited, exit_code=code, signal=signal, cause=cause, retried=retried)
        return self.survey("attempt-end")

    def request(self, name: str, fault: str) -> "Run":
        """An injection acts."""
        return self.here(FaultRequested, injection=name, fault=fault)

    def observe(self, name: str, evidence: str = "seen") -> "Run":
        """Its effect is seen."""
        return self.here(FaultObserved, injection=name, evidence=evidence)

    def heal(self, name: str) -> "Run":
        """It is undone."""
        return self.here(FaultHealed, injection=name, evidence="nothing to undo")

    def killed(self, name: str = "1-kill") -> "Run":
        """An injection kills the attempt: requested, observed, healed."""
        self.request(name, "kill").signal("SIGKILL").exit(signal=9, cause="fault")
        return self.observe(name, "wait status: signal 9").heal(name)

    def terminated(self, code: int | None = 143, *, signal: int | None = None, name: str = "1-terminate", saves: int = 0) -> "Run":
        """An injection sends SIGTERM; the job notices, saves the step ``saves`` and leaves."""
        self.request(name, "terminate").signal("SIGTERM").observe(name).here(SigtermSeen)
        if saves:
            self.save(saves)
        return self.exit(code if signal is None else None, signal=signal, cause="fault").heal(name)

    # ---- the job ----

    def boot(self, rank: int = 0) -> "Run":
        """A process is up."""
        return self.here(Booted, rank=rank)

    def restore(self, step: int, *, rank: int = 0, digests: dict[str, str] | None = None) -> "Run":
        """It loads a checkpoint."""
        self.here(RestoreBegun, step=step, rank=rank)
        return self.here(Restored, step=step, rank=rank, digests=digests_of(step) if digests is None else digests)

    def start(self, restored: int, *, rank: int = 0, steps: int | None = None) -> "Run":
        """It is ready to train."""
        return self.here(Started, restored_step=restored, steps=self.workload.steps if steps is None else steps, rank=rank)

    def begin(self, restored: int = 0, *, rank: int = 0) -> "Run":
        """Boot, restore where there is something to restore, start."""
        self.boot(rank)
        if restored:
            self.restore(restored, rank=rank)
        return self.start(restored, rank=rank)

    def steps(self, first: int, last: int, *, rank: int = 0) -> "Run":
        """Steps are done, the periodic saves with them (by rank 0)."""
        for step in range(first, last + 1):
            self.step(step, rank=rank)
            if rank == 0 and self.workload.save_every and step % self.workload.save_every == 0:
                self.save(step)
        return self

    def step(self, step: int, *, rank: int = 0, digests: dict[str, str] | None = None, batch_ids: tuple[int, ...] | None = None) -> "Run":
        """One step is done."""
        state = digests_of(step) if digests is None else digests
        return self.here(StepDone, step=step, rank=rank, digests=state, batch_ids=batch_of(step) if batch_ids is None else batch_ids)

    def save(self, step: int, *, digests: dict[str, str] | None = None, content: str = "") -> "Run":
        """A save: begun, committed, acknowledged, looked at."""
        state = digests_of(step) if digests is None else digests
        self.here(SaveBegun, step=step, digests=state)
        self.commit(step, content=content)
        self.here(SaveEnded, step=step, digests=state)
        return self.survey("save-end", only_step=step)

    def begin_save(self, step: int) -> "Run":
        """A save is decided; what becomes of it is told by ``commit`` or ``put``, or nobody knows."""
        return self.here(SaveBegun, step=step, digests=digests_of(step))

    def mark(self, name: str, step: int = -1) -> "Run":
        """A marker of the job's own."""
        return self.here(Marked, name=name, step=step)

    def done(self, step: int | None = None) -> "Run":
        """The job holds itself to be complete."""
        return self.here(Done, step=self.workload.steps if step is None else step)

    # ---- storage ----

    @property
    def stored(self) -> dict[int, CheckpointSeen]:
        """What storage holds for the task, by step."""
        return self.storage.setdefault(self.task, {})

    def commit(self, step: int, *, content: str = "") -> "Run":
        """A checkpoint appears on storage; the newest two are kept, or one where each replaces the last."""
        self.put(step, content=content)
        kept = 1 if self.workload.layout == "text-file" else 2
        for old in sorted(self.stored)[:-kept]:
            del self.stored[old]
        return self

    def put(
        self,
        step: int,
        *,
        content: str = "",
        state: Literal["committed", "incomplete", "temporary"] = "committed",
        is_latest: bool = False,
    ) -> "Run":
        """Storage holds something, without a word of the job."""
        self.stored[step] = CheckpointSeen(
            step=step, path=f"step_{step:08d}", state=state, digest=content or f"c{step}", is_latest=is_latest
        )
        return self

    def lose(self, *steps: int) -> "Run":
        """Checkpoints vanish from storage, without a word of the job."""
        for step in steps:
            del self.stored[step]
        return self

    def damaged(self, name: str = "2-flip-byte", *, fault: str = "flip-byte") -> "Run":
        """What was just done to storage was an injection: requested, looked at, observed, healed."""
        return self.request(name, fault).survey("after-fault").observe(name, "bytes differ").heal(name)

    def survey(self, occasion: Literal["save-end", "attempt-end", "after-fault", "end"], *, only_step: int | None = None) -> "Run":
        """Look at storage."""
        if not self.is_surveyed:
            return self
        seen = tuple(self.stored[step] for step in sorted(self.stored) if only_step in (None, step))
        return self.here(CheckpointsSeen, occasion=occasion, checkpoints=seen, is_whole=only_step is None)

    # ---- the end ----

    def complete(self) -> "Run":
        """Done, exit 0, and the run is closed."""
        return self.done().exit(0, retried=False).finish()

    def end_task(self, *, succeeded: bool = True, detail: str = "") -> "Run":
        """The platform will not try the task again."""
        return self.add(TaskFinished, task=self.task, succeeded=succeeded, attempts=self.number + 1, detail=detail)

    def finish(self, *, succeeded: bool = True, reason: str = "finished", detail: str = "") -> "Run":
        """The execution of one task ends and the run is closed."""
        self.end_task(succeeded=succeeded, detail=detail)
        self.add(ExecutionFinished, succeeded=int(succeeded), failed=int(not succeeded), cancelled=0, retried=self.number)
        return self.survey("end").close(reason)

    def close(self, reason: str = "finished", *, detail: str = "", ended_s: float | None = None) -> "Run":
        """Why the loop ended, and when, where that is told."""
        return self.add(RunClosed, reason=reason, detail=detail, ended_s=ended_s)

    def golden(self, *, equal: bool = True, detail: str = "") -> "Run":
        """What is known of the uninterrupted run."""
        return self.add(GoldenKnown, key="k", equal=equal, detail=detail)

    def history(self, *, is_torn: bool = False) -> History:
        """The history as read."""
        return History(events=tuple(self.events), is_torn=is_torn)

    def evidence(
        self, *expects: Expectation, injections: tuple[Injection, ...] = (), golden: "Run | None" = None, **fields: Any
    ) -> Evidence:
        """What a checker gets to see; ``fields`` are those of the scenario."""
        is_torn = fields.pop("is_torn", False)
        scenario = scenario_of(self.workload, *expects, injections=injections, platform=self.platform, **fields)
        return gather(scenario, self.history(is_torn=is_torn), golden.history() if golden else None)


def scenario_of(workload: Workload, *expects: Expectation, **fields: Any) -> Scenario:
    """A scenario of which only the interesting part is said."""
    from harness.scenario.expectations import Completes

    return Scenario(name="a-job-is-judged", why="a test", workload=workload, expects=expects or (Completes(),), **fields)


def uninterrupted(workload: Workload = JOB) -> Run:
    """The run that others are compared with."""
    return Run(workload).attempt(0).begin().steps(1, workload.steps).complete()


def resumed(workload: Workload = JOB) -> Run:
    """A right job, killed after step 7 and resumed from step 5."""
    run = Run(workload).golden().attempt(0).begin().steps(1, 7).killed()
    return run.attempt(1).begin(5).steps(6, workload.steps).complete()
