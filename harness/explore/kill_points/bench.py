"""Kill points of one job judged one after the other, by the same executor and criteria as an exploration."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from harness.clock import Clock
from harness.errors import BrokenHarnessError
from harness.explore.blobs import BlobStore
from harness.explore.data_file import DataFile
from harness.explore.executors.local import LocalExecutor
from harness.explore.fixed_place import claimed
from harness.explore.frontier import Due, Frontier, Side
from harness.explore.kill_points.choice import Moment, Moments
from harness.explore.kill_points.memo import Memo
from harness.explore.kill_points.moments import dues_by_place, look_at_all
from harness.explore.kill_points.plans import Plan, directory_of
from harness.explore.moments import timeline
from harness.explore.recipe import Executor
from harness.explore.rehearsal import EMPTY, expected_of, read_rehearsed_log
from harness.explore.result import Surface, Vulnerability
from harness.explore.trials_file import Trial
from harness.explore.vulnerabilities import replay_command
from harness.store import RunDirectory, RunStore
from harness.verdict import Finding, Outcome, Verdict, counted, merge

NEIGHBOURS_MAX = 8
"""Moments on either side of a wrong one that are looked at to tell where it begins and ends."""

REASONS_MAX = 3
"""Reasons of states that no rule was made of; all are in the report."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KillPointRun:
    """What came of one kill point, or of those of a phase.

    Attributes:
        id: The name of the test.
        verdict: The judgement: a finding for each state that its death leaves.
        directory: The run directory of the recording.
        vulnerabilities: What the wrong ones are blamed on, as far as is known by now.
        replay: A command line that tries the worst state again.
    """

    id: str
    verdict: Verdict
    directory: RunDirectory
    vulnerabilities: tuple[Vulnerability, ...] = ()
    replay: str = ""

    def __repr__(self) -> str:
        """Short: an assertion that fails prints it."""
        return f"KillPointRun({self.id}: {self.verdict.outcome})"

    def explain(self) -> str:
        """The verdict in words: what to mend first, how it comes about, and how much of the test it is of."""
        of = f"{self.id}: {self.verdict.outcome}, {counted(len(self.verdict.findings), 'crash state')}"
        replay = [f"  replay: {self.replay}"] if self.verdict.outcome is not Outcome.VALID else []
        if self.vulnerabilities:
            rules = [line for each in self.vulnerabilities for line in (each.says, f"  {each.example}")]
            return "\n".join([*rules, f"{of}, {len(self.verdict.worst())} wrong", *replay])
        reasons = list(dict.fromkeys(finding.reason for finding in self.verdict.worst())) if replay else []
        told = [f"  {reason}" for reason in reasons[:REASONS_MAX]]
        left = [f"  and {len(reasons) - REASONS_MAX} other reasons"] if len(reasons) > REASONS_MAX else []
        return "\n".join([of, *told, *left, *replay])


class Bench:
    """Tries what the kill points of a job leave, and has it judged.

    Args:
        plan: Of the job; it was not refused.
        clock: The machine's.
        name: Of the run directory, as a person types it.

    Raises:
        HarnessError: When the recording cannot be read.
    """

    def __init__(self, plan: Plan, clock: Clock, *, name: str) -> None:
        if plan.recipe is None or plan.recorded is None:
            raise BrokenHarnessError(f"the job {plan.job} was not recorded: {plan.refused}")
        self.directory, self._name, self._clock, self._recipe = directory_of(plan), name, clock, plan.recipe
        self.memo = Memo(self.directory.trials)
        golden = self.memo.find(EMPTY.state)
        if golden is None:
            raise BrokenHarnessError(f"the uninterrupted run of {plan.job} is not in {self.directory.trials}; run the tests again")
        replayed = read_rehearsed_log(self.directory.recorded, plan.recipe)
        self.strip = timeline(replayed).strip
        self._data = DataFile(replayed.log.data_path)
        self._blobs = BlobStore(self.directory.blobs)
        expected = expected_of(replayed, golden.tried, plan.recipe, data=self._data, differs=plan.recorded.differs)
        self.frontier = Frontier(replayed, self._data, expected, plan.surfaces)
        look_at_all(self.frontier)
        self._dues = dues_by_place(self.frontier)
        self._executor: Executor | None = None
        self._own: RunDirectory | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(self, test: Moments) -> KillPointRun:
        """Judge every state that a death at some moments leaves.

        Raises:
            HarnessError: When something of ours breaks.
        """
        dues = self.dues_of(test)
        for due in dues:
            self._settle(due)
        wrong = [due for due in dues if due.outcome is Outcome.INVALID]
        if wrong:
            self._look_around(wrong[0])
        worst = (wrong or [due for due in dues if due.outcome is not Outcome.VALID] or dues)[:1]
        return KillPointRun(
            id=test.id,
            verdict=merge(map(_finding, dues)),
            directory=self.directory,
            vulnerabilities=self._vulnerabilities(wrong),
            replay=replay_command(self._name, worst[0].task.state) if worst else "",
        )

    def dues_of(self, test: Moments) -> list[Due]:
        """The states that a test judges, each once."""
        return list(dict.fromkeys(due for moment in test.moments for due in self.dues_at(moment)))

    def dues_at(self, moment: Moment) -> list[Due]:
        """The states that one kill point leaves."""
        return self._dues[moment.model, moment.scope, moment.point]

    def remember(self) -> Iterator[Trial]:
        """Take in all that was tried, here or by others; yields it."""
        for state in self.memo.states():
            trial = self.memo.find(state)
            if trial is not None:
                list(self.frontier.take(trial.tried))
                yield trial

    def surfaces(self) -> tuple[Surface, ...]:
        """What is known by now."""
        return self.frontier.surfaces(self.strip, run_directory=self._name)

    def close(self) -> None:
        """End all its processes."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None
        if self._own is not None:
            shutil.rmtree(self._own.path, ignore_errors=True)
        self._data.close()

    def _settle(self, due: Due) -> None:
        """Judge a state; it is tried where nobody has done that."""
        if due.judgement is not None:
            return
        with self.memo.turn(due.task.state):
            trial = self.memo.find(due.task.state)
            if trial is None:
                trial = self._tried(due)
                self.memo.keep(trial)
        list(self.frontier.take(trial.tried))

    def _tried(self, due: Due) -> Trial:
        self._blobs.keep_all(due.found.crash.tree, self._data)
        if self._executor is None:
            # An id of its own: closing it ends all that carry it, and other processes have theirs.
            self._own, run_id = RunStore(self.directory.index_path.parent, self._clock).create_bench()
            self._executor = LocalExecutor(self._blobs.directory, jobs=1, run_id=run_id, clock=self._clock, has_company=True)
        try:
            with claimed(self._recipe.checkpoints, makes_parent=True, waits=True):
                (tried,) = self._executor.try_all([due.task], self._recipe, deadline_s=float("inf"))
        except OSError as error:
            raise BrokenHarnessError(f"recovery from {due.task.state[:12]} could not be tried: {error}") from error
        return Trial(task=due.task, tried=tried)

    def _look_around(self, wrong: Due) -> None:
        """Judge what lies beside a wrong state until recovery is right again: that tells what must be atomic, or durable first."""
        beside = _sequence(wrong)
        at = beside.index(wrong)
        for direction in (beside[at + 1 :], beside[:at][::-1]):
            for due in direction[:NEIGHBOURS_MAX]:
                self._settle(due)
                if due.outcome is Outcome.VALID:
                    break
        for due in (beside[0], beside[-1]):  # where nothing is in flight
            self._settle(due)

    def _vulnerabilities(self, wrong: Sequence[Due]) -> tuple[Vulnerability, ...]:
        if not wrong:
            return ()
        names = {(due.side.model, due.side.scope): set[str]() for due in wrong}
        for due in wrong:
            names[due.side.model, due.side.scope].add(due.task.state)
        found = [
            vulnerability
            for surface in self.surfaces()
            for vulnerability in surface.vulnerabilities
            if names.get((surface.model, surface.scope), set()).intersection(vulnerability.states)
        ]
        return tuple({each.says: each for each in found}.values())


def _sequence(due: Due) -> list[Due]:
    """The states of the same surface that come about in the same way, in the order of the moments."""
    side: Side = due.side
    cause = due.found.crash.cause
    alike = [(moment.at, number) for number, each in enumerate(side.dues) for moment in each.found.moments if moment.cause == cause]
    return list(dict.fromkeys(side.dues[number] for _, number in sorted(alike)))


def _finding(due: Due) -> Finding:
    broken = due.judgement.broken if due.judgement is not None else ()
    worst = [each for each in broken if each.outcome is due.outcome] or list(broken)
    checker, says = (worst[0].promise, worst[0].says) if worst else ("kill-points", "recovery keeps every promise")
    return Finding(checker=checker, outcome=due.outcome or Outcome.UNKNOWN, reason=says, evidence=(due.task.state,))
