"""``harness explore`` on one job, as a person types it."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

import msgspec

from benchmarks import ROOT
from benchmarks.answer import Answer, Says
from benchmarks.saving_jobs import Job
from harness.explore.result import Exploration, Surface

SURFACES = (("posix", "process"), ("posix-weak", "node"))
"""What a kill can leave on a local disk, and what can be missing because it was not synced: as much as the other tool looks at."""

BUDGET = "45s"
"""As long as judging may take; a state that has begun is finished."""

SAYS: Mapping[int, Says] = {0: "right", 1: "wrong", 2: "unknown"}


def explore(job: Job, environment: Mapping[str, str], *, jobs: int, budget: str = BUDGET) -> Answer:
    """Record it once, and judge recovery from what crashes leave."""
    with tempfile.TemporaryDirectory(prefix="explore-") as runs:
        surfaces = [word for model, scope in SURFACES for word in ("--storage", model, "--scope", scope)]
        options = ["--budget", budget, "--jobs", str(jobs), "--result", f"{{checkpoint_dir}}/{job.result}", "--runs-dir", runs, "--json"]
        command = [sys.executable, "-m", "harness", "explore", *surfaces, *options, "--", sys.executable, *job.words]
        begin_s = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
        seconds = time.perf_counter() - begin_s
    assert done.returncode in SAYS, done.stderr.decode(errors="replace")
    surfaces_seen = [each for each in msgspec.json.decode(done.stdout, type=Exploration).surfaces if (each.model, each.scope) in SURFACES]
    points, in_recovery = (sum(map(points_of, found)) for found in (surfaces_seen, [each for each in surfaces_seen if each.after]))
    return Answer(kill_points=points, says=SAYS[done.returncode], seconds=seconds, in_recovery=in_recovery)


def points_of(surface: Surface) -> int:
    """How many different moments were judged: many may leave the same state, which is tried once."""
    judged = [state for state in surface.states if state.outcome is not None]
    return len({moment.point for state in judged for moment in state.moments})
