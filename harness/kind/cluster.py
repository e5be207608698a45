"""The state of the cluster that this harness made, and whether it fits what the harness is now."""

import os
from pathlib import Path

import msgspec

from harness.kind.cache import checkout_dir, cluster_dir, shared_dir
from harness.kind.commands import run_command
from harness.kind.topology import Topology
from harness.kind.versions import versions

CLUSTER_NAME = "chaos-harness"
NETWORK_NAME = "chaos-harness"
"""A Docker network of its own: bringing the cluster down never touches the network of another kind cluster."""

ALLOW_LABEL = "chaos-harness-allow"
"""On a namespace, ``"true"``: the harness may act in it."""

RUN_ID_LABEL = "chaos-harness/run-id"

ENVIRONMENT_MOUNT = Path("/opt/environment")
"""Where job containers see the Python environment; built at this path, so it works nowhere else. The job image has its ``bin`` on PATH."""

API_S = 15.0
"""An API server on a busy machine answers in a few seconds; a dead one never does."""


class KindCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that is up, as its state file says.

    Attributes:
        name: Of the cluster; its context is ``kind-<name>``.
        kubeconfig: Ours alone; the user's own is never touched.
        kubectl: The command line that fits the cluster's version.
        uid: Of the namespace kube-system: tells this cluster from another at the same address.
        topology: Its pools.
        versions: What it was made of; of a pulled one also what its components say that they are.
        shared_dir: Storage that outlives nodes, at the same path on the host and in every node.
        checkout_dir: Mounted read-only into every node, at the same path.
        environment_dir: Python for the pods, read-only in every node at the same path; pods mount it at ``ENVIRONMENT_MOUNT``.
        job_image: What pods run, present on every node.
        made_from: ``bundle`` or ``pulled``.
    """

    name: str
    kubeconfig: Path
    kubectl: Path
    uid: str
    topology: Topology
    versions: dict[str, str]
    shared_dir: Path
    checkout_dir: Path
    environment_dir: Path
    job_image: str
    made_from: str

    @property
    def context(self) -> str:
        """The name of its context in the kubeconfig."""
        return f"kind-{self.name}"


OWNER_MOUNT = Path("/chaos-harness-owner")
"""In every node: the cluster's folder in the cache that made it. It tells our nodes from those of another cluster of the same name."""


def state_path(name: str = CLUSTER_NAME) -> Path:
    """The state file: it exists once the cluster is up, and until it begins to go down."""
    return cluster_dir(name) / "cluster.json"


def find_cluster() -> KindCluster | None:
    """The cluster that this harness brought up, as recorded; whether it still answers is ``health.problem_with``'s to say."""
    try:
        return msgspec.json.decode(state_path().read_bytes(), type=KindCluster, dec_hook=_path_from_text)
    except (OSError, msgspec.MsgspecError):
        return None


def is_unreadable() -> bool:
    """Whether a state file is there that cannot be read, or is none that we know: the cluster is then not known to be gone."""
    try:
        msgspec.json.decode(state_path().read_bytes(), type=KindCluster, dec_hook=_path_from_text)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, msgspec.MsgspecError):
        return True
    return False


def _path_from_text(wanted: type, value: object) -> object:
    """Paths are the one type here that JSON does not know."""
    return wanted(value)


def write_state(cluster: KindCluster) -> None:
    """Record a cluster that is up: whole or not at all."""
    path = state_path(cluster.name)
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(cluster, enc_hook=str)))
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def kubectl(cluster: KindCluster, *arguments: str, deadline_s: float, stdin: str | None = None) -> str:
    """Run kubectl on this cluster and no other: its own kubeconfig, its own context.

    Raises:
        CommandFailedError: When it fails or does not end in time.
    """
    command = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig), "--context", cluster.context, *arguments]
    return run_command(command, deadline_s=deadline_s, stdin=stdin)


def cluster_uid(cluster: KindCluster) -> str:
    """What the API server says it is.

    Raises:
        CommandFailedError: When it does not answer, or the kubeconfig has another context.
    """
    uid = ("get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}")
    return kubectl(cluster, *uid, deadline_s=API_S).strip()


def problem_with_record(cluster: KindCluster) -> str:
    """What no longer fits between the cluster as it was made and the harness as it is now."""
    again = "run `harness down kind`, then `harness up kind`"
    changed = [
        f"{name} {cluster.versions.get(name, 'none')} instead of {wanted}"
        for name, wanted in versions(is_pulled=cluster.made_from == "pulled").items()
        if cluster.versions.get(name) != wanted
    ]
    if changed:
        return f"the cluster {cluster.name} is of another version: {', '.join(changed)}; {again}"
    if cluster.checkout_dir != checkout_dir():
        return f"the cluster {cluster.name} has {cluster.checkout_dir} mounted, and this is {checkout_dir()}; {again}"
    if cluster.shared_dir != shared_dir():
        return f"the cluster {cluster.name} has the storage {cluster.shared_dir} mounted, and {shared_dir()} is asked for; {again}"
    gone = next((path for path in (cluster.kubeconfig, cluster.kubectl, cluster.environment_dir) if not path.exists()), None)
    return f"{gone} is gone, which the cluster {cluster.name} needs; {again}" if gone else ""
