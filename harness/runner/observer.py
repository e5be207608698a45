"""Looks at the checkpoint directory when something was saved, when an attempt ended and after damage, and keeps what it saw."""

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.checkpoints import Survey, manifest, runs_beside, survey, write_manifest
from harness.history import AttemptExited, CheckpointsSeen, Event, FaultRequested, ObservationLost, ResultSeen, SaveEnded, open_regular
from harness.lineage import DAMAGE
from harness.runner.binding import fill
from harness.scenario import Scenario
from harness.store import RunDirectory

DETAIL_LENGTH_MAX = 500
"""Characters that are kept of why a copy failed: it names every file."""

Occasion = Literal["save-end", "attempt-end", "after-fault", "end"]


@dataclass
class Observer:
    """Surveys of one run's checkpoint directory.

    Attributes:
        scenario: Says the layout.
        directory: Of the run.
        copies: Copies for the workload's ``inspect`` command, by task and attempt, with the moment they were taken.
    """

    scenario: Scenario
    directory: RunDirectory
    copies: dict[tuple[int, int], tuple[Path, float]] = field(default_factory=dict)

    def after(self, events: Sequence[Event], now_s: float) -> list[Event]:
        """What storage shows after a tick's events: where a save was acknowledged, an attempt ended, or something was damaged."""
        recorded: list[Event] = []
        for event in events:
            if isinstance(event, SaveEnded):
                recorded += self.look("save-end", now_s, task=event.task, attempt=event.attempt, only_step=event.step)
            elif isinstance(event, AttemptExited):
                recorded += self.look("attempt-end", now_s, task=event.task, attempt=event.attempt)
                recorded += self._copy_for_inspection(event, now_s)
            elif isinstance(event, FaultRequested) and event.fault in DAMAGE:
                recorded += self.look("after-fault", now_s, task=event.task, attempt=event.attempt)
        return recorded

    def look(self, occasion: Occasion, now_s: float, *, task: int, attempt: int, only_step: int | None = None) -> list[Event]:
        """Survey the directory of a task now."""
        workload = self.scenario.workload
        mounted = self.directory.checkpoints
        directory = mounted / workload.checkpoints
        if directory.is_dir() or not mounted.is_dir():
            seen = survey(directory, workload.layout, task=task, job=workload.name, only_step=only_step)
        else:
            seen = Survey(checkpoints=())  # the job has not made it yet
        is_whole = only_step is None
        elsewhere = runs_beside(directory, workload.layout, mounted=mounted, task=task, job=workload.name) if is_whole else ()
        recorded: list[Event] = [
            CheckpointsSeen(
                t_s=now_s,
                task=task,
                attempt=attempt,
                occasion=occasion,
                checkpoints=seen.checkpoints,
                is_whole=is_whole,
                elsewhere=elsewhere,
            )
        ]
        if seen.lost:
            recorded.append(ObservationLost(t_s=now_s, what="checkpoints", count=len(seen.lost), detail="; ".join(seen.lost[:5])))
        return recorded

    def close(self, now_s: float) -> list[Event]:
        """The last look: every task's checkpoints, the result file, and the content ledger of the directory."""
        recorded: list[Event] = []
        for task in range(self.scenario.platform.tasks):
            recorded += self.look("end", now_s, task=task, attempt=0)
        if self.scenario.workload.outside.result:
            recorded.append(self._result(now_s))
        write_manifest(self.directory.manifest_path, manifest(self.directory.checkpoints))
        return recorded

    def _result(self, now_s: float) -> ResultSeen:
        path = Path(fill(self.scenario.workload.outside.result, checkpoint_dir=self.directory.checkpoints.resolve(), seed=0))
        try:
            with open_regular(path) as file:
                size_bytes = os.fstat(file.fileno()).st_size
                return ResultSeen(t_s=now_s, path=path.name, sha256=hashlib.file_digest(file, "sha256").hexdigest(), size_bytes=size_bytes)
        except OSError:
            return ResultSeen(t_s=now_s, path=path.name)

    def _copy_for_inspection(self, event: AttemptExited, now_s: float) -> list[Event]:
        """Keep a copy to judge later: a library that opens the directory may change it, and the next attempt must find it untouched.

        Another attempt or task may be writing meanwhile; what cannot be copied then is not known, and nothing else is wrong.
        """
        if not self.scenario.workload.outside.inspect:
            return []
        copy = self.directory.kept / f"inspect-task{event.task}-attempt{event.attempt}"
        try:
            shutil.copytree(self.directory.checkpoints, copy, symlinks=True)
        except (OSError, shutil.Error) as error:
            shutil.rmtree(copy, ignore_errors=True)
            detail = f"no copy for the inspection after attempt {event.attempt} of task {event.task}: {error}"
            return [ObservationLost(t_s=now_s, what="checkpoints", count=1, detail=detail[:DETAIL_LENGTH_MAX])]
        self.copies[event.task, event.attempt] = (copy, now_s)
        return []
