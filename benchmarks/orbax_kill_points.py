"""Kill points of Orbax: what recording costs a job, and what a judged crash state costs, beside a live kill and restart.

Recording is measured on the JAX workload. Crash states are those of a job that does little else than save: a recovery of the JAX workload
takes seconds, in a warm process too, so that its own work would be measured and not the judging.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ROOT
from benchmarks.figure import Effort, Figure, Goal, Measured, Row
from harness.clock import Clock, SystemClock
from harness.explore.blobs import BlobStore
from harness.explore.budget import Budget
from harness.explore.campaign import Campaign
from harness.explore.data_file import DataFile
from harness.explore.executors.local import LocalExecutor
from harness.explore.frontier import Frontier, SurfaceName
from harness.explore.judgement import Broken
from harness.explore.ranks import RANKS
from harness.explore.recipe import Executor, Recipe, Tried
from harness.explore.recording import record
from harness.explore.rehearsal import EMPTY, RECORD_S_MAX, Recorder, rehearse
from harness.explore.result import Recorded, Surface
from harness.explore.subject import Subject
from harness.explore.trials_file import TrialsFile
from harness.store import RunStore
from harness.verdict import Outcome

RECORDED = Row(name="recorder-wall-time", what="wall time with the recorder over the bare job's, JAX with Orbax", goal=Goal(limit=1.30))
STATE = Row(name="state-time", what="time for a judged crash state over that of a live kill and restart, Orbax", goal=Goal(limit=0.2))
STATES = Row(
    name="states",
    what="distinct crash states judged from one recording of three saves of Orbax",
    goal=Goal(limit=200.0, kind="at least"),
    decimals=0,
)
CUT = Row(name="states-not-judged", what="states of that recording that were not judged", goal=Goal(limit=0.0), decimals=0)

JAX = (sys.executable, "-m", "workloads.jax_gpu.train")
ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "STEPS": "15", "SAVE_EVERY": "5", "STEP_SECONDS": "0"}
"""Three saves and no idle time, so that what recording costs shows."""

JOBS = ROOT / "tests" / "integration" / "explore" / "jobs"
SAVING = (sys.executable, str(JOBS / "saves_with_orbax.py"))
RECOVER = "saves_with_orbax:main"
"""Three saves too, one a step; two are kept."""

SURFACES: tuple[SurfaceName, ...] = (("posix", "process"), ("gcsfuse-flat", "node"))
"""What live kills of the process would find one at a time, and a lost node on a mounted bucket."""

QUICK_STATES = 10
POLL_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of an exploration."""

    surfaces: tuple[Surface, ...]
    seconds: float

    def count(self, *outcomes: Outcome | None) -> int:
        """How many distinct trees were judged so; None: not at all."""
        return len({state.state for surface in self.surfaces for state in surface.states if state.outcome in outcomes})

    @property
    def judged(self) -> int:
        """How many were."""
        return self.count(*Outcome)

    @property
    def seconds_each(self) -> float:
        """For one state: two recoveries of it, the second on what the first one left, and all that is said of them."""
        return self.seconds / self.judged


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Alternate bare and recorded runs; kill and restart live; explore once."""
    ratios = [_recorded_over_bare(recorded_first=number % 2 == 1) for number in range(effort.rounds(5, 1))]
    live_s = Measured([_killed_and_restarted_s() for _ in range(effort.rounds(5, 1))]).median
    judged = _judged(Budget(seconds=None, states=QUICK_STATES if effort.is_quick else None))
    wrong = [f"{surface.model} × {surface.scope}: {surface.count(Outcome.INVALID)}" for surface in judged.surfaces]
    note = f"{judged.seconds:.0f} s by one worker; invalid of {', of '.join(wrong)}"
    return {
        RECORDED.name: Measured(ratios),
        STATE.name: Measured([judged.seconds_each / live_s], f"{judged.seconds_each:.2f} s over {live_s:.2f} s"),
        STATES.name: Measured([judged.judged], note),
        CUT.name: Measured([judged.count(None)]),
    }


def _recorded_over_bare(*, recorded_first: bool) -> float:
    first, second = (_recorded_s, _bare_s) if recorded_first else (_bare_s, _recorded_s)
    seconds = {first: first(), second: second()}
    return seconds[_recorded_s] / seconds[_bare_s]


def _environment(scratch: str) -> dict[str, str]:
    checkpoints = Path(scratch, "checkpoints")
    checkpoints.mkdir(exist_ok=True)
    return {**os.environ, **ENVIRONMENT, "CHECKPOINT_DIR": str(checkpoints)}


def _bare_s() -> float:
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**_environment(scratch), "HARNESS_EVENTS": f"{scratch}/events.jsonl"}  # it says as much as under the recorder
        begin_s = time.perf_counter()
        subprocess.run(JAX, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begin_s


def _recorded_s() -> float:
    with tempfile.TemporaryDirectory() as scratch:
        environment = _environment(scratch)
        root, log = Path(environment["CHECKPOINT_DIR"]), Path(scratch, "log")
        begin_s = time.perf_counter()
        done = record(JAX, root=root, log_directory=log, environment=environment, cwd=ROOT, timeout_s=RECORD_S_MAX)
        seconds = time.perf_counter() - begin_s
        assert done.exit_code == 0, done.errors()
        return seconds


def _killed_and_restarted_s() -> float:
    """Until it is killed in its second save, and from there to its end."""
    with tempfile.TemporaryDirectory() as scratch:
        events = Path(scratch, "events.jsonl")
        environment = {**_environment(scratch), "HARNESS_EVENTS": str(events)}
        begin_s = time.perf_counter()
        process = subprocess.Popen(SAVING, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (events.exists() and events.read_bytes().count(b'"save.begin"') >= 2):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(POLL_S)
        process.kill()
        process.wait()
        subprocess.run(SAVING, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begin_s


class Silence:
    """A watcher that tells nobody."""

    def recorded(self, recorded: Recorded) -> None:
        """See ``campaign.Watcher``."""

    def planned(self, states: int) -> None:
        """See ``campaign.Watcher``."""

    def judged(self, surface: str, outcome: Outcome, worst: Broken | None) -> None:
        """See ``campaign.Watcher``."""


def _judged(budget: Budget) -> Judged:
    """Record once and judge every state that a kill of the process leaves, by one worker; without the crashes of recoveries."""
    clock = SystemClock()
    recipe = Recipe(command=SAVING, recover=RECOVER, directory=str(JOBS), environment={"JAX_PLATFORMS": "cpu"})
    subject = Subject(name="saves-with-orbax", recipe=recipe)
    with tempfile.TemporaryDirectory() as scratch:
        run, run_id = RunStore(Path(scratch, "runs"), clock).create("explore-saves-with-orbax", 0)
        recorder = Recorder(Path(scratch, "recorded"), run.recorded, run_id)
        with LocalExecutor(run.blobs, jobs=1, run_id=run_id, clock=clock) as executor:
            rehearsal = rehearse(subject, recorder, lambda recipe: _tried_bare(executor, recipe, clock))
            with DataFile(rehearsal.replayed.log.data_path) as data, TrialsFile(run.tried_path) as trials:
                frontier = Frontier(rehearsal.replayed, data, rehearsal.expected(data), SURFACES)
                blobs = BlobStore(run.blobs)
                campaign = Campaign(executor, rehearsal.recipe, trials, blobs, budget=budget, clock=clock, watcher=Silence())
                for rank in range(RANKS):
                    campaign.judge(frontier, data, rank=rank, deadline_s=campaign.deadline_s(rank))
                seconds = campaign.seconds
                surfaces = frontier.surfaces((), run_directory=str(run.path))
    return Judged(surfaces=surfaces, seconds=seconds)


def _tried_bare(executor: Executor, recipe: Recipe, clock: Clock) -> Tried:
    return next(iter(executor.try_all([EMPTY], recipe, deadline_s=clock.monotonic_s() + RECORD_S_MAX)))


FIGURE = Figure(rows=(RECORDED, STATE, STATES, CUT), measure=measure)
