"""A reference model: a right job under kills and notices at any of its operations, and the same job wrong in one way.

The job is a generator that stops after each operation, so a death can come between any two. It keeps two checkpoints, commits by a rename,
and on SIGTERM goes on to the next step boundary, saves and leaves with 143.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.history import RestoreBegun, Restored, SaveBegun, SaveEnded, SigtermSeen
from harness.scenario import Injection
from harness.scenario.faults import Kill, Terminate
from harness.scenario.triggers import AfterSeconds
from tests.unit.checkers.builders import Run, batch_of, digests_of

Wrong = Literal[
    "",
    "starts-over",
    "restores-older",
    "skips-a-step",
    "forgets-optimizer",
    "restarts-data",
    "loads-torn",
    "drops-last-save",
    "exits-zero",
    "clears-before-saving",
]
Op = Literal["", "boundary"]


@dataclass(frozen=True)
class Death:
    """How an attempt ends: after so many operations, by a kill or a notice."""

    operations: int
    kind: Literal["kill", "terminate"] = "kill"


@dataclass
class Job:
    """One attempt.

    Attributes:
        run: Where it is told.
        wrong: In which way it is wrong.
        step: The step it has done.
        has_shown: Whether it has done wrong in a way that can be seen.
        is_exposed: Whether a death would show it now.
        is_done: Whether it has said so.
    """

    run: Run
    wrong: Wrong = ""
    step: int = 0
    first_step: int = 0
    has_shown: bool = False
    is_exposed: bool = False
    is_done: bool = False

    def live(self) -> Iterator[Op]:
        """All of its operations."""
        run = self.run
        run.boot()
        yield ""
        yield from self.restore()
        run.start(self.step)
        yield "boundary"
        while self.step < run.workload.steps:
            self.train()
            yield "boundary"
            is_last = self.step == run.workload.steps
            if is_last and self.wrong == "drops-last-save":
                self.has_shown = True
            elif is_last or self.step % run.workload.save_every == 0:
                yield from self.save()
                yield "boundary"
        run.done(self.step)
        self.is_done = True
        yield ""

    def restore(self) -> Iterator[Op]:
        """Go back to the newest committed checkpoint."""
        run = self.run
        for step in [step for step, seen in run.stored.items() if seen.state != "committed"]:
            run.lose(step)
        whole = sorted(run.stored, reverse=True)
        if whole and self.wrong == "starts-over":
            self.has_shown = True
            return
        if len(whole) > 1 and self.wrong == "restores-older":
            self.has_shown = True
            whole = whole[1:]
        if not whole:
            return
        self.step = self.first_step = whole[0]
        run.here(RestoreBegun, step=self.step)
        yield ""
        digests = digests_of(self.step)
        if self.wrong in ("loads-torn", "forgets-optimizer"):
            self.has_shown = True
            digests["optimizer"] = "zero"
        run.here(Restored, step=self.step, digests=digests)
        yield ""

    def train(self) -> None:
        """One step."""
        self.step += 1
        digests, batch = digests_of(self.step), batch_of(self.step)
        if self.first_step and self.wrong == "skips-a-step" and self.step == self.first_step + 1 < self.run.workload.steps:
            self.has_shown = True
            self.step += 1
            digests, batch = digests_of(self.step), batch_of(self.step)
        if self.first_step and self.wrong == "forgets-optimizer":
            digests["optimizer"] = f"o{self.step}-from-zero"
        if self.first_step and self.wrong == "restarts-data":
            batch = batch_of(self.step - self.first_step)
            self.has_shown = self.has_shown or batch != batch_of(self.step)
        self.run.step(self.step, digests=digests, batch_ids=batch)

    def save(self) -> Iterator[Op]:
        """Written beside, renamed, acknowledged, older ones removed."""
        run, step = self.run, self.step
        if step in run.stored:
            return
        digests = digests_of(step)
        run.here(SaveBegun, step=step, digests=digests)
        yield ""
        if self.wrong == "clears-before-saving" and run.stored:
            run.lose(*run.stored)
            self.is_exposed = True
        run.put(step, state="temporary")
        yield ""
        run.commit(step)
        self.is_exposed = False
        yield ""
        run.here(SaveEnded, step=step, digests=digests).survey("save-end", only_step=step)
        yield ""


def tell(run: Run, deaths: list[Death], *, wrong: Wrong = "") -> tuple[Run, bool]:
    """Tell a run in which the first attempts die as given and the last one is left alone; also whether it has visibly done wrong."""
    has_shown = False
    for number in range(len(deaths) + 1):
        death = deaths[number] if number < len(deaths) else None
        job = Job(run.attempt(number), wrong)
        is_over = _live(job, death)
        has_shown = has_shown or job.has_shown
        if is_over:
            break
    return run, has_shown


def injections_of(deaths: list[Death]) -> tuple[Injection, ...]:
    """The faults that ``tell`` plays."""
    faults = {"kill": Kill(), "terminate": Terminate()}
    return tuple(
        Injection(fault=faults[death.kind], at=AfterSeconds(seconds=0), attempts=(number,), name=f"death-{number}")
        for number, death in enumerate(deaths)
    )


def _live(job: Job, death: Death | None) -> bool:
    """One attempt to its end; whether the job is over."""
    run, life = job.run, job.live()
    for count, _ in enumerate(life):
        if death is not None and count == death.operations:
            name = f"death-{run.number}"
            if death.kind == "terminate":
                return _leave(job, life, name)
            job.has_shown = job.has_shown or job.is_exposed
            run.killed(name)
            return False
    run.exit(0, retried=False).finish()
    return True


def _leave(job: Job, life: Iterator[Op], name: str) -> bool:
    """SIGTERM has come: on to the next boundary, a last save, and out."""
    run = job.run
    run.request(name, "terminate").signal("SIGTERM").here(SigtermSeen).observe(name)
    for kind in life:
        if kind == "boundary":
            break
    if job.step:
        for _ in job.save():
            pass
    if job.wrong == "exits-zero":
        job.has_shown = not job.is_done
        run.exit(0, cause="fault", retried=False).heal(name).finish()
        return True
    run.exit(143, cause="fault").heal(name)
    return False
