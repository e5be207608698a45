"""The scratch directory of an attempt: its ``TMPDIR``, which goes with it as the file system of a container does.

Only what a job puts there by itself: a path that it writes out, like ``/tmp/x``, is this machine's and stays.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

SHORT_ROOT = Path("/tmp")  # noqa: S108 - mkdtemp makes what is in it ours alone; every POSIX system has it, and nothing shorter

PATH_BYTES_MAX = 37
"""Jobs make sockets below it, whose paths have 107 bytes on Linux; Ray takes 70 of them below ``TMPDIR``. Source: ray 2.60.0, on disk."""


def make_scratch_directory(run_id: str) -> Path:
    """A new directory, ours alone, with a path short enough for a job's sockets: away from a long ``TMPDIR`` where there is one."""
    prefix = _prefix(run_id)
    length = len(os.fsencode(tempfile.gettempdir())) + len(f"/{prefix}12345678")
    return Path(tempfile.mkdtemp(prefix=prefix, dir=None if length <= PATH_BYTES_MAX else SHORT_ROOT))


def find_scratch_directories(run_id: str) -> list[Path]:
    """Those of a run, wherever they were made."""
    return sorted({path for root in (Path(tempfile.gettempdir()), SHORT_ROOT) for path in root.glob(f"{_prefix(run_id)}*")})


def remove_scratch_directories(run_id: str) -> None:
    """Remove what a run that was killed has left."""
    for path in find_scratch_directories(run_id):
        shutil.rmtree(path, ignore_errors=True)


def _prefix(run_id: str) -> str:
    """How the names of a run's directories begin: found again by ``harness clean``."""
    return f"h{hashlib.sha256(run_id.encode()).hexdigest()[:8]}-"
