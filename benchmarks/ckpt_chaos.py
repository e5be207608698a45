"""``ckpt-chaos`` of PyPI on one job, as its documentation says, in a virtual environment of its own outside of the checkout.

It counts what Python itself does below the output directory (audit events of open, rename, remove, mkdir; ``open`` and some libraries'
writers replaced), runs the job once for each such event and mode, dies there by ``os._exit``, and runs the job again.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks import ROOT
from benchmarks.answer import Answer, Says
from benchmarks.saving_jobs import Job
from harness.kind.cache import cache_dir

REQUIREMENTS = ROOT / "requirements" / "ckpt-chaos.txt"

MODES = "before,torn,unsynced"
"""All that kill: before a file event, with the file cut in half, and with what was not synced lost. The fourth, SIGTERM, is no kill."""

POINTS_MAX = 100_000
"""None is left out: by default it takes forty."""

FAILS_ON = "HARD_FAIL,SILENT_DIVERGENCE,LOST_WORK,CONTROL_FAIL"
"""All that it can find, the work that is lost included, which it does not count as a failure by itself."""

PREPARED = 'mkdir -p "$0" && CHECKPOINT_DIR="$0" exec "$@"'
"""The job finds its directory by the environment, and wants it to be there: ``ckpt-chaos`` puts it into the command, and makes none."""


def crash(job: Job, environment: Mapping[str, str], *, jobs: int) -> Answer:
    """Kill the job at every event that it sees, and have it judge what comes back."""
    with tempfile.TemporaryDirectory(prefix="ckpt-chaos-") as scratch:
        work = Path(scratch, "work")
        command = [str(installed()), "run", *_options(job, work, jobs), "--", "sh", "-c", PREPARED, "{out}", sys.executable, *job.words]
        begin_s = time.perf_counter()
        done = subprocess.run(
            command, cwd=ROOT, env={**environment, "HARNESS_EVENTS": "/dev/null"}, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - begin_s
        points = sum("point" in json.loads(path.read_bytes()) for path in work.glob("pt_*/result.json"))
    return Answer(kill_points=points, says=_said(done, points), seconds=seconds)


def _options(job: Job, work: Path, jobs: int) -> list[str]:
    fixed = ["--max-points", str(POINTS_MAX), "--modes", MODES, "--fail-on", FAILS_ON, "--jobs", str(jobs), "--work", str(work)]
    contract = ["--checkpoint-glob", "{out}/step_*[0-9]", "--step-regex", r"Resuming from step (\d+)"]
    return [*fixed, *(contract if job.has_numbered_checkpoints else []), "--result-file", f"{{out}}/{job.result}"]


def version() -> str:
    """The pinned one."""
    return REQUIREMENTS.read_text(encoding="utf-8").partition("==")[2].split()[0]


def _said(done: subprocess.CompletedProcess[str], points: int) -> Says:
    """Its exit code is 1 where it found something, and where it could not begin."""
    if points == 0:
        return "unknown"
    return "wrong" if done.returncode else "right"


def installed() -> Path:
    """The program; made once for each version of the requirements."""
    key = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:16]
    place = cache_dir() / "ckpt-chaos" / key
    program = place / "bin" / "ckpt-chaos"
    if not program.exists():
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)
    return program
