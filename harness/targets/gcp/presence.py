"""Whether the target can be used here: Google's clients are installed, and a place is named. Nothing is asked of any service."""

import os
from collections.abc import Mapping
from importlib.util import find_spec

from harness.errors import UsageError
from harness.targets.gcp.connection import EXTRA, emulator_addresses
from harness.targets.gcp.place import PREFIX, resolve_place

CLIENTS = ("google.cloud.run_v2", "google.cloud.logging_v2", "google.cloud.storage", "google.cloud.container_v1", "google.cloud.compute_v1")


def problem_and_advice() -> tuple[str, str]:
    """Why it cannot be used, and what to do; two times nothing when it can."""
    needed = (*CLIENTS, *(("kubernetes",) if is_of_cluster() else ()))
    missing = [name for name in needed if not _is_installed(name)]
    if missing:
        return f"{', '.join(missing)} is not installed", EXTRA
    try:
        emulator_addresses(os.environ)
        resolve_place({}, os.environ)
    except UsageError as error:
        return str(error).removeprefix("target gcp: "), "or run on an emulator: --emulator"
    return "", ""


def is_of_cluster(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the place that the environment names is a cluster, and no job of Cloud Run; what it lacks is told by whoever needs it."""
    said = {name: environment.get(f"{PREFIX}{name.upper()}", "") for name in ("cluster", "job")}
    return bool(said["cluster"]) and not said["job"]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of a package above it
        return False
