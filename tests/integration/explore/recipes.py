"""Recipes of small jobs, and states for them."""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.explore.recipe import Piece, Recipe, StateTask

ROOT = Path(__file__).resolve().parents[3]

LINEAR: Mapping[str, Any] = {
    "command": (sys.executable, "-m", "workloads.linear.train"),
    "directory": str(ROOT),
    "environment": {"STEPS": "12", "STEP_SECONDS": "0", "SAVE_EVERY": "4"},
    "result": "{checkpoint_dir}/final.json",
}
"""The right job: quick, and it says all."""

WARM = "workloads.linear.train:main"


def linear(**fields: Any) -> Recipe:
    return Recipe(**{**LINEAR, "timeout_s": 20.0, **fields})


def python(code: str, **fields: Any) -> Recipe:
    """A job that is run again, in a few lines."""
    prelude = "import os, signal, subprocess, sys, threading, time\nfrom pathlib import Path\nroot = Path(os.environ['CHECKPOINT_DIR'])\n"
    return Recipe(**{"command": (sys.executable, "-S", "-c", prelude + code), "directory": str(ROOT), "timeout_s": 20.0, **fields})


def shell(code: str, **fields: Any) -> Recipe:
    return Recipe(**{"command": ("sh", "-c", code), "speaks_protocol": False, "timeout_s": 20.0, **fields})


def warm(directory: Path, code: str, **fields: Any) -> Recipe:
    """A job with a recovery function, ``recover``, in a module of its own."""
    prelude = "import os, signal, subprocess, sys, threading, time\nfrom pathlib import Path\n"
    (directory / "job.py").write_text(prelude + code)
    return Recipe(**{"command": ("false",), "recover": "job:recover", "directory": str(directory), "timeout_s": 20.0, **fields})


def state(blobs: Path, files: Mapping[str, bytes] | None = None, **fields: Any) -> StateTask:
    """A state with these files at its top; the blobs are put where they belong."""
    blobs.mkdir(exist_ok=True)
    pieces = []
    for name, content in sorted((files or {}).items()):
        sha = hashlib.sha256(content).hexdigest()
        (blobs / sha).write_bytes(content)
        pieces.append(Piece(path=name, kind="file", content=sha))
    name = hashlib.sha256(repr(pieces).encode()).hexdigest()
    return StateTask(**{"state": name, "pieces": tuple(pieces), **fields})
