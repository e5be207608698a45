"""A right job in memory, as far as triggers see it: what it says, attempt by attempt, and which injections of a schedule act."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import strategies as st

from harness.scenario import Injection, Schedule, Workload
from harness.scenario.faults import EndGrace, ExpireTimeout, Kill, Maintenance, OverlapAttempts, Pause, Terminate
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep

NOTICES = (Terminate, Maintenance, ExpireTimeout)


class AttemptOverError(Exception):
    """Somebody killed it, or it left."""


@dataclass
class RightJob:
    """One task of a job that saves at its cadence and, when told to go, saves and leaves; how far it goes back is drawn.

    Attributes:
        workload: Its steps and its cadence.
        schedule: What happens to it.
        data: Draws whatever a right job may do one way or another.
        acted: The indices of injections that acted.
        attempts: How many it had.
    """

    workload: Workload
    schedule: Schedule
    data: st.DataObject
    task: int = 0
    acted: set[int] = field(default_factory=set)
    attempts: int = 0
    _durable: int = 0
    _step: int = 0
    _said: Counter[str] = field(default_factory=Counter)
    _has_notice: bool = False
    _seconds: int = 0

    def run(self) -> "RightJob":
        while self._attempt() and self.attempts < 10:
            pass
        return self

    def _attempt(self) -> bool:
        """Whether another attempt follows."""
        self._said, self._has_notice, self.attempts = Counter(), False, self.attempts + 1
        try:
            for _ in self._life():
                pass
        except AttemptOverError:
            return True
        return False

    def _life(self) -> Iterator[None]:
        self._seconds = self.data.draw(st.integers(0, 100), label="words until the seconds are over")
        self._say("boot")
        restored = self._durable
        if self._durable:
            self._say("restore.begin")
            restored = self.data.draw(st.sampled_from([self._durable, max(0, self._durable - self.workload.save_every)]), label="restored")
            self._say("restore")
        self._step = restored
        self._say("start")
        while self._step < self.workload.steps:
            self._step += 1
            self._say("step")
            if self._step % self.workload.save_every == 0 and self._step < self.workload.steps:
                self._save()
            self._leave_if_told()
            yield
        if self.data.draw(st.booleans(), label="saves at the end"):
            self._save()
        self._say("done")

    def _leave_if_told(self) -> None:
        if not self._has_notice:
            return
        if self.data.draw(st.booleans(), label="finishes its step") and self._step + 1 < self.workload.steps:
            self._step += 1
        if self._durable < self._step:
            self._save()
        raise AttemptOverError

    def _save(self) -> None:
        self._say("save.begin")
        for _ in range(self.data.draw(st.integers(1, 2), label="files")):
            self._say("save.write")
        self._say("save.commit")
        if self.data.draw(st.booleans(), label="durable early"):
            self._durable = self._step
        self._say("save.end", durable=self._step)
        self._say("gc.begin")

    def _say(self, event: str, *, durable: int = 0) -> None:
        self._said[event] += 1
        if durable:
            self._durable = durable  # a save is durable before it is acknowledged
        if sum(self._said.values()) > self._seconds or event == "done":
            self._strike(self._by_seconds())
        for when in ("before", "after"):
            self._strike([index for index, one in self._mine() if self._is_now(one, event, when)])

    def _is_now(self, injection: Injection, event: str, when: str) -> bool:
        at = injection.at
        if isinstance(at, AtStep):
            return (event, when, at.step) == ("step", "after", self._step)
        if isinstance(at, AtOperation):
            return (at.after, at.after_nth, when) == (event, self._said[event], "after")
        return isinstance(at, AtMarker) and (at.event, at.nth, at.when) == (event, self._said[event], when)

    def _by_seconds(self) -> list[int]:
        return [index for index, one in self._mine() if isinstance(one.at, AfterSeconds)]

    def _mine(self) -> Iterator[tuple[int, Injection]]:
        for index, one in enumerate(self.schedule.injections):
            if (one.victim.task, one.attempts) == (self.task, (self.attempts - 1,)) and index not in self.acted:
                yield index, one

    def _strike(self, indices: list[int]) -> None:
        for index in indices:
            fault = self.schedule.injections[index].fault
            self.acted.add(index)
            if isinstance(fault, OverlapAttempts):
                self._durable = max(self._durable, self.data.draw(st.integers(self._step, self.workload.steps), label="zombie"))
            if isinstance(fault, Kill | OverlapAttempts) or (isinstance(fault, EndGrace) and self._has_notice):
                raise AttemptOverError
            if isinstance(fault, NOTICES):
                self._has_notice = True
                self._say("sigterm")
            else:
                assert isinstance(fault, Pause), f"{fault} without a notice"
