"""What exploring finds in jobs that are known to be right or wrong; ``python -m tests.detection.kill_points`` prints the matrix."""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.clock import SystemClock
from harness.explore.budget import Budget
from harness.explore.exploring import Explorer, Options
from harness.explore.frontier import SurfaceName, surfaces_of
from harness.explore.judgement import Broken
from harness.explore.models import MODELS
from harness.explore.recipe import Recipe
from harness.explore.result import Exploration, Recorded
from harness.explore.subject import Subject
from harness.store import RunStore
from harness.verdict import Outcome

ROOT = Path(__file__).resolve().parents[2]

PROCESS: SurfaceName = ("posix", "process")
NODE: SurfaceName = ("posix-weak", "node")

KEEPS, RESTORES, RECOVERS = "keeps-what-was-acknowledged", "restores-what-was-saved", "recovers"
COMPLETES, SAVES = "completes-as-uninterrupted", "saves-at-its-cadence"

WRONG: dict[str, tuple[SurfaceName, str]] = {
    "crashes_on_stale_lock": (PROCESS, RECOVERS),
    "crashes_on_stale_temporary": (PROCESS, RECOVERS),
    "deletes_old_before_new": (PROCESS, KEEPS),
    "forgets_average": (PROCESS, COMPLETES),
    "forgets_optimizer": (PROCESS, RESTORES),
    "forgets_rng": (PROCESS, RESTORES),
    "latest_before_data": (PROCESS, KEEPS),
    "latest_names_a_path": (PROCESS, KEEPS),
    "off_by_one_on_resume": (PROCESS, COMPLETES),
    "picks_incomplete_checkpoint": (PROCESS, RECOVERS),
    "renames_without_fsync": (NODE, KEEPS),
    "restarts_data_order": (PROCESS, RESTORES),
    "saves_in_place": (PROCESS, KEEPS),
    "skips_saves_after_resume": (PROCESS, SAVES),
    "stale_learning_rate": (PROCESS, COMPLETES),
    "starts_from_scratch": (PROCESS, KEEPS),
}
"""Where each shows, and the promise that it breaks; the others need another fault than a crash: a notice, a full disk, a second writer."""

SAVES_NOTHING = "saves_nothing"
"""Acknowledges nothing, so that nothing can be claimed of it."""

RIGHT = "linear"


class Silence:
    """A watcher that tells nobody."""

    def recorded(self, recorded: Recorded) -> None: ...

    def planned(self, states: int) -> None: ...

    def judged(self, surface: str, outcome: Outcome, worst: Broken | None) -> None: ...


def explore(job: str, runs: Path, *, surfaces: tuple[SurfaceName, ...] = (PROCESS, NODE), seconds: float = 8.0) -> Exploration:
    """Explore one job of ``workloads.linear`` or ``workloads.broken``, without a hint what is wrong with it."""
    module = "workloads.linear.train" if job == RIGHT else f"workloads.broken.{job}"
    recipe = Recipe(
        command=(sys.executable, "-m", module),
        recover=f"tests.detection.warm_jobs:{job}",
        directory=str(ROOT),
        environment={"STEPS": "12", "STEP_SECONDS": "0", "SAVE_EVERY": "4"},
        result="{checkpoint_dir}/final.json",
    )
    clock = SystemClock()
    directory, run_id = RunStore(runs, clock).create(f"explore-{job.replace('_', '-')}", 0)
    explorer = Explorer(
        Subject(name=job.replace("_", "-"), recipe=recipe, speaks_protocol=True),
        Options(surfaces=surfaces, budget=Budget(seconds=seconds, representatives_s=120.0), jobs=2),
        directory=directory,
        name=str(directory.path),
        run_id=run_id,
        clock=clock,
        watcher=Silence(),
    )
    return explorer.explore().exploration


@dataclass(frozen=True, slots=True)
class Found:
    """What an exploration says of one surface."""

    invalid: int
    judged: int
    promises: frozenset[str]


def found_on(exploration: Exploration, surface: SurfaceName) -> Found:
    """The states of a surface, without crashes in recovery."""
    states = [
        state
        for each in exploration.surfaces
        if (each.model, each.scope) == surface and not each.after
        for state in each.states
        if state.outcome
    ]
    wrong = [state for state in states if state.outcome is Outcome.INVALID]
    promises = {broken.promise for state in wrong for broken in state.broken if broken.outcome is Outcome.INVALID}
    return Found(len(wrong), len(states), frozenset(promises))


def main() -> int:
    """Print what is found on every surface."""
    surfaces = surfaces_of(MODELS, ())
    jobs, failures = [RIGHT, *WRONG, SAVES_NOTHING], 0
    width = max(map(len, jobs))
    for number, (model, scope) in enumerate(surfaces):
        print(" " * width + "  " + "│ " * number + f"{model} × {scope}")
    with tempfile.TemporaryDirectory(prefix="kill-points-") as runs:
        for job in jobs:
            exploration = explore(job, Path(runs), surfaces=surfaces, seconds=30.0)
            cells = [_cell(exploration, surface) for surface in surfaces]
            is_right = _is_as_it_must_be(job, exploration)
            failures += not is_right
            says = exploration.reasons[0] if exploration.reasons else "keeps every promise"
            print(
                f"{job:{width}}  {' '.join(cells)}  {exploration.outcome:8}{'' if is_right else ' NOT AS IT MUST BE'} {says[:90]}",
                flush=True,
            )
    print("✗ found   · valid   ? unknown   = as another scope   blank: not judged")
    return 1 if failures else 0


def _cell(exploration: Exploration, surface: SurfaceName) -> str:
    twin = next((each.same_as for each in exploration.surfaces if (each.model, each.scope) == surface and not each.after), "")
    found = found_on(exploration, surface)
    return "=" if twin else " " if not found.judged else "✗" if found.invalid else "·"


def _is_as_it_must_be(job: str, exploration: Exploration) -> bool:
    if job == RIGHT:
        return exploration.outcome is Outcome.VALID
    if job == SAVES_NOTHING:
        return exploration.outcome is Outcome.UNKNOWN
    surface, promise = WRONG[job]
    return promise in found_on(exploration, surface).promises


if __name__ == "__main__":
    raise SystemExit(main())
