"""A training job in memory: four parts of state, a save every second step, and recoveries of it as the judge knows them."""

from collections.abc import Callable

import msgspec

from harness.explore.judgement import Recovery
from harness.explore.judging.ended import Ended
from harness.explore.judging.observation import observe
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.job_lines import JobLineReader
from tests.explore_model.checkpointer import Checkpointer, State
from tests.explore_model.disk import Disk

LAST, EVERY = 6, 2

FIRST: State = {"params": 3, "optimizer": 5, "rng": 7, "cursor": 0}

Kind = Callable[[Disk], Checkpointer]

_LINES = JobLineReader(AttemptKey(0, 1), 0.0)


def trained(state: State) -> State:
    """One step further; each part depends on the others, so that none can be forgotten."""
    rng, cursor = (state["rng"] * 31 + 11) % 997, state["cursor"] + 1
    optimizer = (state["optimizer"] * 7 + rng + cursor) % 9973
    return {"params": (state["params"] * 3 + optimizer) % 99991, "optimizer": optimizer, "rng": rng, "cursor": cursor}


def digests(state: State) -> dict[str, str]:
    return {part: f"{value:x}" for part, value in state.items()}


class Job:
    """A job on a disk.

    Raises:
        OSError: Whatever it does, when its checkpointer does.
        ValueError: Likewise.
    """

    def __init__(self, disk: Disk, kind: Kind) -> None:
        self.checkpointer = kind(disk)
        self.step, self.state = 0, FIRST
        self._disk = disk

    def start(self) -> None:
        """Restore, and tidy up."""
        found = self.checkpointer.restore()
        if found is not None:
            self.step, self.state = found
            self._disk.say("restore", step=self.step, digests=digests(self.state))
            self.state = self.checkpointer.resumed(self.state)
        self._disk.say("start", restored_step=self.step, steps=LAST)
        self.checkpointer.collect()

    def train(self) -> None:
        self.step, self.state = self.step + 1, trained(self.state)
        self._disk.say("step", step=self.step, digests=digests(self.state))
        if self.step % EVERY == 0 and self.checkpointer.wants(self.step):
            self.save()

    def save(self, *, is_emergency: bool = False) -> None:
        told = digests(self.state)
        self._disk.say("save.begin", step=self.step, digests=told)
        self.checkpointer.save(self.step, self.state, is_emergency=is_emergency)
        self._disk.say("save.end", step=self.step, digests=told)
        self.checkpointer.collect()

    def finish(self) -> None:
        while self.step < LAST:
            self.train()
        self.checkpointer.finish(repr(self.state).encode())
        self._disk.say("done", step=self.step)


def recover(disk: Disk, kind: Kind) -> Recovery:
    """Run the job to its end on what is there."""
    disk.lines.clear()
    exit_code, why = 0, ""
    try:
        job = Job(disk, kind)
        job.start()
        job.finish()
    except (OSError, ValueError) as error:
        exit_code, why = 1, repr(error)
    events, unheard = [], []
    for line in disk.lines:
        try:
            events.append(_LINES.read_event(line, 0.0))
        except ValueError as error:  # a step that was restored from rubbish can be too large for an event
            unheard.append(str(error))
    seen = observe(Ended(exit_code=exit_code, said=why), events, unheard="; ".join(unheard))
    return msgspec.structs.replace(seen, result=disk.read("result").hex() if disk.exists("result") else "")
