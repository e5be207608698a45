"""Which engine a run makes containers on, written down before the first one: ``harness clean`` may be given another engine, or none."""

import os
from pathlib import Path

from harness.errors import StoreError
from harness.kind.cache import cache_dir


def footprint_path(run_id: str) -> Path:
    """Where it is written while the run may have containers."""
    return cache_dir() / "containers" / run_id


def write_footprint(run_id: str, host: str) -> None:
    """Make it durable.

    Raises:
        StoreError: When it cannot be; no container may then be made.
    """
    path = footprint_path(run_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            file.write(host)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(path=path, attempted="write", reason=error.strerror or str(error)) from error


def read_footprint(run_id: str) -> str:
    """The address of the engine; empty when the run has no containers.

    Raises:
        StoreError: When it is there and cannot be read.
    """
    path = footprint_path(run_id)
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(path=path, attempted="read", reason=error.strerror or str(error)) from error


def remove_footprint(run_id: str) -> None:
    """The run has no containers any more."""
    footprint_path(run_id).unlink(missing_ok=True)
