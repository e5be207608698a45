"""What drawn schedules of earlier sessions have hit of a job, so that a session begins with what is left."""

from collections.abc import Collection
from pathlib import Path

from harness.clock import SystemClock
from harness.errors import HarnessError
from harness.explore.aims.choice import FAULTS_MAX
from harness.explore.schedules.cases import Case
from harness.explore.schedules.coverage import Coverage
from harness.explore.schedules.memory import VerdictMemory
from harness.explore.schedules.running import VERDICTS_NAME
from harness.history import Event, History, RunOpened, read_history
from harness.runner.golden import golden_key, golden_scenario
from harness.scenario import Fault, Scenario, Workload, encode, read_scenario
from harness.store import RunDirectory, RunStore


def coverage_in(
    runs_dir: Path,
    job: Scenario | Workload,
    faults: Collection[Fault],
    *,
    faults_max: int = FAULTS_MAX,
    target: str = "local",
    root: Path = Path(),
) -> Coverage:
    """What drawn schedules have hit of a job as it is now, and what such faults can hit of it.

    A run counts while its verdict is remembered: not one that proved nothing or cannot be read, nor one of the job before it was changed.

    Args:
        runs_dir: Where runs are made; it need not be there yet.
        job: The job.
        faults: What may happen to it.
        faults_max: In one schedule.
        target: Where it ran.
        root: What the workload's directory is relative to; in a test that is pytest's root directory.
    """
    coverage = Coverage()
    coverage.add(job, faults, (), faults_max=faults_max)
    looker = _Looker(VerdictMemory(runs_dir / VERDICTS_NAME), target, root.resolve())
    workload = job.workload if isinstance(job, Scenario) else job
    for directory in RunStore(runs_dir, SystemClock()).runs():
        events = looker.remembered(directory, workload)
        if events:
            coverage.add(job, faults, events, faults_max=faults_max)
    return coverage


class _Looker:
    """Reads runs whose verdicts hold."""

    def __init__(self, memory: VerdictMemory, target: str, root: Path) -> None:
        self._memory, self._target, self._root = memory, target, root
        self._keys: dict[tuple[bytes, int], str] = {}

    def remembered(self, directory: RunDirectory, workload: Workload) -> tuple[Event, ...]:
        """What happened in a run of a job; nothing where it does not count."""
        try:
            scenario = read_scenario(directory.scenario_path)
            if not directory.is_over() or scenario.workload != workload:
                return ()
            history = read_history(directory.history_path)
            return history.events if self._is_remembered(scenario, history) else ()
        except HarnessError:
            return ()

    def _is_remembered(self, scenario: Scenario, history: History) -> bool:
        opened = next((event for event in history.events if isinstance(event, RunOpened)), None)
        if opened is None or opened.target != self._target:
            return False
        case = Case(scenario=scenario, target=self._target, seed=opened.seed)
        return self._memory.find(case.key(self._key_of_workload(scenario, opened.seed))) is not None

    def _key_of_workload(self, scenario: Scenario, seed: int) -> str:
        """Made once for all runs of a job: it reads the job's files."""
        alone = golden_scenario(scenario)
        key = (encode(alone), seed)
        if key not in self._keys:
            self._keys[key] = golden_key(alone, root=self._root, seed=seed, target=self._target)
        return self._keys[key]
