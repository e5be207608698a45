"""Takes a cluster down: its containers, their volumes, its network and its state, and nothing that this harness did not make."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.errors import UsageError
from harness.kind.cache import cluster_dir, shared_dir
from harness.kind.cluster import CLUSTER_NAME, NETWORK_NAME, OWNER_MOUNT, state_path
from harness.kind.commands import CommandFailedError, run_command
from harness.kind.engine import require_engine
from harness.kind.nodes import container_states

REMOVE_S = 120.0
"""Six nodes and their volumes go in 5 to 15 s."""

INSPECT_S = 30.0
OWNER_LABEL = "chaos-harness.owner"


def take_down(say: Callable[[str], None]) -> None:
    """Remove the cluster, whole or half; harmless when there is none.

    Raises:
        UsageError: When a cluster of that name was made by something else.
        TargetUnavailableError: When no Docker engine answers.
    """
    with only_one_works(say):
        require_engine()
        had = remove_cluster()
        say(f"the cluster {CLUSTER_NAME} is gone: {had}" if had else f"there is no cluster {CLUSTER_NAME}")


def remove_cluster() -> str:
    """Remove whatever there is of the cluster, and say what it was; the caller holds the lock.

    Raises:
        UsageError: When a cluster of that name was made by something else.
    """
    names = [name for name, _ in container_states(CLUSTER_NAME)]
    foreign = [name for name in names if not is_ours(name)]
    if foreign:
        raise UsageError(
            f"{', '.join(foreign)} belong to a cluster {CLUSTER_NAME} that was not made from {cluster_dir(CLUSTER_NAME)}; "
            "they are left alone: remove that cluster by its own means, or set HARNESS_CACHE_DIR to the cache that made it"
        )
    state_path().unlink(missing_ok=True)  # first, so that nobody takes it for a cluster that is up
    if names:
        run_command(["docker", "rm", "--force", "--volumes", *names], deadline_s=REMOVE_S)
    has_network = _remove_network()
    had_state = cluster_dir(CLUSTER_NAME).exists()
    if had_state:
        shutil.rmtree(cluster_dir(CLUSTER_NAME))
    if shared_dir().is_dir() and not any(shared_dir().iterdir()):
        shared_dir().rmdir()
    parts = [f"{len(names)} nodes"] * bool(names) + ["its network"] * has_network + ["its state"] * had_state
    return ", ".join(parts)


def is_ours(container: str) -> bool:
    """Whether a node was made from this cache: its owner mount says so, from the moment that the container exists."""
    mounts = '{{range .Mounts}}{{.Destination}} {{.Source}}{{"\\n"}}{{end}}'
    try:
        lines = run_command(["docker", "inspect", "--format", mounts, container], deadline_s=INSPECT_S).splitlines()
    except CommandFailedError:
        return False
    return f"{OWNER_MOUNT} {cluster_dir(CLUSTER_NAME)}" in lines


@contextmanager
def only_one_works(say: Callable[[str], None]) -> Iterator[None]:
    """One process at a time brings the cluster up or down; a second waits. The lock goes with the process, however that ends."""
    path = cluster_dir(CLUSTER_NAME).with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process brings the cluster {CLUSTER_NAME} up or down; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_network() -> bool:
    """Remove the network when its label says that it is ours."""
    ours = ["--filter", f"label={OWNER_LABEL}={cluster_dir(CLUSTER_NAME)}", "--format", "{{.Name}}"]
    if NETWORK_NAME not in run_command(["docker", "network", "ls", *ours], deadline_s=INSPECT_S).split():
        return False
    run_command(["docker", "network", "rm", NETWORK_NAME], deadline_s=REMOVE_S)
    return True
