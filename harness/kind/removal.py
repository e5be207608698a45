"""Takes a cluster down: its containers, their volumes, its network and its state, and nothing that this harness did not make."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from harness.clock import Clock
from harness.errors import UsageError
from harness.kind.cache import cluster_dir, has_state, run_records_dir, shared_dir, turn_path
from harness.kind.cluster import CLUSTER_NAME, NETWORK_NAME, state_path
from harness.kind.commands import CommandFailedError, run_command
from harness.kind.engine import require_engine
from harness.kind.lock import Lock, Turn
from harness.kind.nodes import container_states, foreign_containers

REMOVE_S = 120.0
"""Six nodes and their volumes go in 5 to 15 s."""

INSPECT_S = 30.0

WORK_S_MAX = 3600.0
"""It may wait half an hour for a run to end, pull for a quarter, and make a cluster in ten minutes on a loaded machine."""

OWNER_LABEL = "chaos-harness.owner"


def take_down(clock: Clock, say: Callable[[str], None]) -> None:
    """Remove the cluster, whole or half, once no run uses it; harmless when there is none.

    Raises:
        UsageError: When a cluster of that name was made by something else.
        TargetUnavailableError: When no Docker engine answers, or a run does not end.
    """
    with only_one_works(clock, say), Turn(CLUSTER_NAME).held(clock, say):
        require_engine()
        had = remove_cluster()
        say(f"the cluster {CLUSTER_NAME} is gone: {had}" if had else f"there is no cluster {CLUSTER_NAME}")


def remove_cluster() -> str:
    """Remove whatever there is of the cluster, and say what it was; the caller holds the lock, and the turn where it may be in use.

    What runs have written down of themselves stays: `harness clean` gives their storage back by it.

    Raises:
        UsageError: When a cluster of that name was made by something else.
    """
    names = [name for name, _ in container_states(CLUSTER_NAME)]
    foreign = _foreign(names)
    if foreign:
        raise UsageError(
            f"{', '.join(foreign)} belong to a cluster {CLUSTER_NAME} that was not made from {cluster_dir(CLUSTER_NAME)}; "
            "they are left alone: remove that cluster by its own means, or set HARNESS_CACHE_DIR to the cache that made it"
        )
    had_state = has_state(CLUSTER_NAME)
    state_path().unlink(missing_ok=True)  # first, so that nobody takes it for a cluster that is up
    if names:
        run_command(["docker", "rm", "--force", "--volumes", *names], deadline_s=REMOVE_S)
    has_network = _remove_network()
    _remove_state()
    if shared_dir().is_dir() and not any(shared_dir().iterdir()):
        shared_dir().rmdir()
    parts = [f"{len(names)} nodes"] * bool(names) + ["its network"] * has_network + ["its state"] * had_state
    return ", ".join(parts)


def _foreign(names: Sequence[str]) -> list[str]:
    """Those that are not known to be ours."""
    try:
        return foreign_containers(CLUSTER_NAME, names)
    except CommandFailedError:
        return list(names)


@contextmanager
def only_one_works(clock: Clock, say: Callable[[str], None]) -> Iterator[None]:
    """One process at a time brings the cluster up or down; a second waits.

    Raises:
        TargetUnavailableError: When the first does not end.
    """
    path = cluster_dir(CLUSTER_NAME).with_suffix(".lock")
    others = f"brings the cluster {CLUSTER_NAME} up or down"
    with Lock(path, target="kind", others=others, patience_s=WORK_S_MAX).held(clock, say):
        yield


def _remove_state() -> None:
    """Remove the cluster's folder but for what outlives it."""
    directory = cluster_dir(CLUSTER_NAME)
    for path in directory.iterdir() if directory.is_dir() else ():
        if path.is_dir() and path != run_records_dir(CLUSTER_NAME):
            shutil.rmtree(path)
        elif path.is_file() and path != turn_path(CLUSTER_NAME):
            path.unlink()
    with suppress(OSError):  # records are in it, or it is not there
        run_records_dir(CLUSTER_NAME).rmdir()


def _remove_network() -> bool:
    """Remove the network when its label says that it is ours."""
    ours = ["--filter", f"label={OWNER_LABEL}={cluster_dir(CLUSTER_NAME)}", "--format", "{{.Name}}"]
    if NETWORK_NAME not in run_command(["docker", "network", "ls", *ours], deadline_s=INSPECT_S).split():
        return False
    run_command(["docker", "network", "rm", NETWORK_NAME], deadline_s=REMOVE_S)
    return True
