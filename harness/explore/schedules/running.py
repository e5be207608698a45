"""``run_schedule``: run a schedule on a job, once; what fails is shrunk, counted and written down, once for each way to fail."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.clock import Clock, SystemClock
from harness.errors import HarnessError
from harness.explore.schedules.cases import Case, Signature, Trial, markers_before, signature_of
from harness.explore.schedules.failures import failure_of, failures_in, write_failure
from harness.explore.schedules.judged import ScheduleRun
from harness.explore.schedules.memory import VerdictMemory
from harness.explore.schedules.passes import is_of_job
from harness.explore.schedules.promises import scenario_of
from harness.explore.schedules.shrinking import RUNS_MAX, Reproduction, Shrunk, reproduce, shrink
from harness.report import write_run
from harness.runner import Options, Run, check_run, golden, run_scenario
from harness.scenario import Scenario, Schedule, Workload
from harness.store import RunDirectory, RunStore
from harness.targets import create
from harness.verdict import Outcome

VERDICTS_NAME, FAILURES_NAME = ".verdicts", ".failures"
"""Below the runs directory."""

FLAKY_TRIES = 3
"""Chances for a smaller case of a failure that does not always come."""


@dataclass
class ScheduleRunner:
    """Runs schedules for a session of tests.

    Attributes:
        store: Where runs, verdicts and failures lie.
        root: What workloads' directories are relative to.
        clock: The time.
        target: Where jobs run.
        seed: Of the jobs.
        shrink_runs: Runs to shrink a failure; 0: it is written as it is.
        ran: Told of each run that was made.
    """

    store: RunStore
    root: Path
    clock: Clock = field(default_factory=SystemClock)
    target: str = "local"
    seed: int = 0
    shrink_runs: int = RUNS_MAX
    ran: Callable[[Run], None] = lambda _run: None
    _memory: VerdictMemory = field(init=False)
    _seen: dict[tuple[str, str, Signature], ScheduleRun] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._memory = VerdictMemory(self.store.root / VERDICTS_NAME)

    def run(self, job: Scenario | Workload, schedule: Schedule) -> ScheduleRun:
        """Run a schedule on a job, or remember what came of it.

        Raises:
            RefusedValueError: When the schedule is none of that job.
            UsageError: Before anything was started.
            TargetUnavailableError: The target is not here.
            BrokenHarnessError: The harness broke.
        """
        case = Case(scenario=scenario_of(job, schedule), target=self.target, seed=self.seed)
        run = self._remembered(case)
        found = ScheduleRun(run=run if run is not None else self._make(case), is_remembered=run is not None, root=self.root)
        return self._investigated(case, found) if found.verdict.outcome is Outcome.INVALID else found

    def _investigated(self, case: Case, found: ScheduleRun) -> ScheduleRun:
        """Once for each way to fail: what fails like something before it is shown with the smallest case of that."""
        signature = signature_of(found.verdict)
        kind = (case.scenario.name, self._job_key(case), signature)
        if kind not in self._seen:
            look = self._shrunk if self.shrink_runs else self._left_as_it_is
            self._seen[kind] = self._written(case, found, signature) or look(case, found, signature)
        before = self._seen[kind]
        return replace(found, shrunk=before.shrunk, artefact=before.artefact, reproduction=before.reproduction)

    def _written(self, case: Case, found: ScheduleRun, signature: Signature) -> ScheduleRun | None:
        """What an earlier session has written of it, if the job is still the one that failed then."""
        for path, failure in failures_in(self.store.root / FAILURES_NAME, case.scenario.name):
            if not is_of_job(failure.scenario, case.scenario):
                continue
            trial = self._known(failure.case)
            if failure.reproduction.of and trial is not None and trial.signature == failure.signature == signature:
                shrunk = Shrunk(case=failure.case, trial=trial)
                return replace(found, shrunk=shrunk, artefact=path, reproduction=str(failure.reproduction))
        return None

    def _shrunk(self, case: Case, found: ScheduleRun, signature: Signature) -> ScheduleRun:
        """Shrink, count, write. Where that breaks the failure is told and written all the same, as it is."""
        try:
            is_steady = self._try(case).signature == signature
            shrunk = shrink(
                case,
                trial_of(found.run),
                self._try,
                known=self._known if is_steady else lambda _case: None,
                runs_max=self.shrink_runs,
                tries=1 if is_steady else FLAKY_TRIES,
            )
            reproduction = reproduce(shrunk.case, signature, self._try)
            artefact = self._write(shrunk.case, signature, reproduction)
        except HarnessError as error:
            left = self._left_as_it_is(case, found, signature)
            return replace(left, reproduction=f"could not be made smaller: {error}")
        return replace(found, shrunk=shrunk, artefact=artefact, reproduction=str(reproduction))

    def _left_as_it_is(self, case: Case, found: ScheduleRun, signature: Signature) -> ScheduleRun:
        """Write what failed; nobody counted how often it comes."""
        try:
            return replace(found, artefact=self._write(case, signature, Reproduction(0, 0)))
        except HarnessError as error:
            return replace(found, reproduction=f"could not be written: {error}")

    def _write(self, case: Case, signature: Signature, reproduction: Reproduction) -> Path:
        failure = failure_of(case, signature, (reproduction.times, reproduction.of))
        return write_failure(failure, self.store.root / FAILURES_NAME)

    def _known(self, case: Case) -> Trial | None:
        return self._memory.find(self._key(case))

    def _remembered(self, case: Case) -> Run | None:
        """The run that was made before; None where there was none, or its directory is gone."""
        trial = self._known(case)
        directory = RunDirectory(Path(trial.run)) if trial is not None else None
        if directory is None or not directory.is_over():
            return None
        try:
            return check_run(directory)
        except HarnessError:  # half of it is gone
            self._memory.forget(self._key(case))
            return None

    def _try(self, case: Case) -> Trial:
        return trial_of(self._make(case))

    def _make(self, case: Case) -> Run:
        key = self._key(case)
        options = Options(root=self.root, seed=case.seed)
        run = run_scenario(
            case.scenario, target=lambda: create(case.target, self.clock), clock=self.clock, store=self.store, options=options
        )
        write_run(run.directory)
        self.ran(run)
        self._memory.keep(key, trial_of(run))
        return run

    def _key(self, case: Case) -> str:
        """A verdict holds for the job as it is."""
        return case.key(self._job_key(case))

    def _job_key(self, case: Case) -> str:
        """The job as it is: its files, its environment and what is installed."""
        alone = golden.golden_scenario(case.scenario)
        return golden.golden_key(alone, root=self.root, seed=case.seed, target=case.target)


def trial_of(run: Run) -> Trial:
    """What is remembered of a run."""
    return Trial(
        outcome=run.verdict.outcome,
        signature=signature_of(run.verdict),
        run=str(run.directory.path.resolve()),
        markers=markers_before(run.history.events),
    )


def run_schedule(
    job: Scenario | Workload,
    schedule: Schedule,
    *,
    target: str = "local",
    seed: int = 0,
    runs_dir: Path = Path("runs"),
    root: Path = Path(),
    shrink_runs: int = RUNS_MAX,
) -> ScheduleRun:
    """Run a schedule on a job and judge it; what was run before is remembered.

    A failure is shrunk the first time that it is seen, which takes up to ``shrink_runs`` runs and some more to tell how often it comes, and
    is written to ``.failures`` below ``runs_dir``.

    Args:
        job: A scenario, whose promises then hold under the schedule, or a workload, which owes what any right job owes.
        schedule: The faults.
        target: Where it runs.
        seed: Of the job.
        runs_dir: Where run directories are made.
        root: What the workload's directory is relative to.
        shrink_runs: 0: a failure is written as it is.

    Raises:
        RefusedValueError: When the schedule is none of that job.
        HarnessError: As ``run_scenario``.
    """
    return _runner(target, seed, runs_dir.resolve(), root.resolve(), shrink_runs).run(job, schedule)


@functools.cache
def _runner(target: str, seed: int, runs_dir: Path, root: Path, shrink_runs: int) -> ScheduleRunner:
    """One for each place: it remembers."""
    clock = SystemClock()
    return ScheduleRunner(store=RunStore(runs_dir, clock), root=root, clock=clock, target=target, seed=seed, shrink_runs=shrink_runs)
