"""Where the cluster keeps its things: a cache outside the checkout, and the storage that outlives nodes."""

import os
from pathlib import Path

CACHE_NAME = "chaos-harness"

CACHE_ADVICE = "check the disk and the permissions, or set HARNESS_CACHE_DIR to another place"
"""Where something in the cache cannot be read or written."""


def cache_dir() -> Path:
    """The cache: ``HARNESS_CACHE_DIR``, else ``chaos-harness`` in the user's cache directory.

    Everything in it can be made again, but for the state of a cluster that is up: `harness down kind` first, then remove it.
    """
    named = os.environ.get("HARNESS_CACHE_DIR")
    if named:
        return Path(named).absolute()
    parent = os.environ.get("XDG_CACHE_HOME")
    return (Path(parent) if parent else Path.home() / ".cache").absolute() / CACHE_NAME


def shared_dir() -> Path:
    """The storage that outlives nodes: ``HARNESS_CLUSTER_SHARED``, else ``shared`` in the cache.

    Mounted into every node at the path that it has here, so that event files, barrier sockets and checkpoints have one name on the host,
    in a node and in a pod.
    """
    named = os.environ.get("HARNESS_CLUSTER_SHARED")
    return Path(named).absolute() if named else cache_dir() / "shared"


def bundle_dir() -> Path:
    """Where the pieces of the offline bundle are, one directory a piece and key."""
    return cache_dir() / "bundle"


def engine_dir() -> Path:
    """Log, process id and runtime wrapper of a Docker engine that was started here."""
    return cache_dir() / "engine"


def cluster_dir(name: str) -> Path:
    """State and kubeconfig of one cluster."""
    return cache_dir() / "clusters" / name


def run_records_dir(name: str) -> Path:
    """What each run has made on a cluster and beside it; it outlives the cluster, for the storage of a run does."""
    return cluster_dir(name) / "runs"


def turn_path(name: str) -> Path:
    """The lock of whoever uses a cluster; it outlives the cluster, too."""
    return cluster_dir(name) / "turn.lock"


def next_path(lock: Path) -> Path:
    """The lock of whoever is next to have another lock."""
    return lock.with_suffix(".next")


def has_state(name: str) -> bool:
    """Whether there is anything of a cluster itself, whole or half."""
    directory, turn = cluster_dir(name), turn_path(name)
    outliving = (run_records_dir(name), turn, next_path(turn))
    return directory.is_dir() and any(path not in outliving for path in directory.iterdir())


def checkout_dir() -> Path:
    """The directory whose ``workloads`` the pods run: the harness's own checkout, else where the command was given."""
    checkout = Path(__file__).resolve().parents[2]
    return checkout if (checkout / "workloads").is_dir() else Path.cwd()
