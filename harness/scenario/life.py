"""In which phase of its life an attempt is, told by its words and by what it does to its storage: for live runs and recordings alike."""

import re

from harness.scenario.cells import JobPhase
from harness.scenario.workload import Workload

_AFTER: dict[str, JobPhase] = {
    "boot": "init",
    "restore.begin": "restore",
    "restore": "restore",
    "start": "step",
    "step": "step",
    "save.begin": "save",
    "save.end": "step",
    "done": "finish",
}
"""In which phase a job is once it has said a word of the protocol."""

_IN_A_SAVE: frozenset[JobPhase | None] = frozenset({"save", "commit"})
_TOLD: frozenset[JobPhase | None] = frozenset({"handler", "emergency-save"})

_PARTS = re.compile(r"[^a-z0-9]+")
_COMMITTING = frozenset({"commit", "publish", "rename", "latest", "finalize"})
_COLLECTING = frozenset({"gc", "collect", "prune", "cleanup"})
_ENDING = frozenset({"end", "done", "finished"})


class Life:
    """One attempt, word by word and operation by operation.

    Args:
        is_first: Whether there is nothing to restore: what a first attempt does to its storage before its first step is no recovery.
        tells_beginning: Whether silence at the beginning means something. Of a job that says nothing of it nobody knows when it begins to
            train: what it does to its storage is a save, or a garbage collection.
    """

    def __init__(self, *, is_first: bool = True, tells_beginning: bool = True) -> None:
        self._is_first = is_first
        self._phase: JobPhase | None = "init" if tells_beginning else None
        self._operation = ""
        self._is_save_interrupted = False

    @property
    def phase(self) -> JobPhase | None:
        """The phase now; None: nobody knows."""
        return self._phase_of_operation() if self._operation else self._phase

    def hear(self, word: str) -> None:
        """It says an event of the protocol, or a marker of its own, which is read by its name; one that tells no phase changes none."""
        before, self._operation = self.phase, ""
        if word == "sigterm":
            self._notice(before)
        elif self._phase in _TOLD and word not in ("boot", "done"):
            self._go_on_told(word)
        elif word in _AFTER:
            self._phase = _AFTER[word]
        else:
            self._read(set(_PARTS.split(word)))

    def act(self, operation: str) -> None:
        """It does something to its checkpoint directory: that tells the phase until its next word."""
        self._operation = operation

    def _notice(self, before: JobPhase | None) -> None:
        """A periodic save that the notice comes into is none that was asked for: until it is over the job is in its handler."""
        if self._phase in _TOLD:
            return
        self._is_save_interrupted = before in _IN_A_SAVE
        self._phase = "handler"

    def _go_on_told(self, word: str) -> None:
        if word in ("save.begin", "save.end"):
            self._is_save_interrupted = False
            self._phase = "emergency-save" if word == "save.begin" else "handler"

    def _read(self, parts: set[str]) -> None:
        if parts & _COLLECTING:
            self._phase = "step" if parts & _ENDING else "garbage-collection"
        elif self._phase == "save" and parts & _COMMITTING:
            self._phase = "commit"

    def _phase_of_operation(self) -> JobPhase | None:
        if self._phase == "init":
            return "init" if self._is_first else "restore"
        if self._phase == "handler":
            return "handler" if self._is_save_interrupted else "emergency-save"
        if self._phase in (None, "step"):
            return "garbage-collection" if self._operation in ("unlink", "rmdir", "move-out") else "save"
        return "commit" if self._phase == "save" and self._operation in ("rename", "link", "move-in") else self._phase


def life_of(workload: Workload, attempt: int) -> Life:
    """An attempt of a job, by its number: one that speaks tells of its beginning; a log tells of it by its steps, or by a resume."""
    logs = workload.outside.logs
    is_told = workload.speaks_protocol or bool(logs.step) or (attempt > 0 and bool(logs.resumed))
    return Life(is_first=attempt == 0, tells_beginning=is_told)
