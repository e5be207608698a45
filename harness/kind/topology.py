"""What a cluster consists of, as data: one control plane, and node pools with GKE's labels, taints and TPU capacity."""

import tomllib
from pathlib import Path

import msgspec

from harness.errors import InvalidDocumentError

POOL_LABEL = "cloud.google.com/gke-nodepool"
"""GKE sets it on every node of a pool; guide B's ResourceFlavors select by it.

Source: https://docs.cloud.google.com/kubernetes-engine/docs/tutorials/ray-kueue-dws.
"""

ACCELERATOR_LABEL = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
TPU_RESOURCE = "google.com/tpu"

TPU_TAINT = "google.com/tpu"
"""GKE taints every TPU node with it, effect NoSchedule; pods that ask for chips tolerate it.

Source: https://docs.cloud.google.com/kubernetes-engine/docs/tutorials/ray-kueue-dws (its tolerations).
"""

QUEUED_TAINT = "cloud.google.com/gke-queued"
"""GKE taints nodes of a pool with queued provisioning with it, effect NoSchedule.

Source: as above, and https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest.
"""


class Taint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps pods without a toleration away."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class NodePool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes that are alike, and live and die together.

    Attributes:
        name: As GKE would call it; also the value of the pool label.
        nodes: Workers of the local cluster.
        tpu_chips: ``google.com/tpu`` that each offers; 0 for none.
        accelerator: GKE's name of the TPU, such as ``tpu-v6e-slice``.
        tpu_topology: Chips of one slice, such as ``4x4``.
        taints: What pods must tolerate.
    """

    name: str
    nodes: int
    tpu_chips: int = 0
    accelerator: str = ""
    tpu_topology: str = ""
    taints: tuple[Taint, ...] = ()

    def labels(self) -> dict[str, str]:
        """What GKE puts on the nodes of such a pool."""
        found = {POOL_LABEL: self.name}
        if self.accelerator:
            found[ACCELERATOR_LABEL] = self.accelerator
        if self.tpu_topology:
            found[TOPOLOGY_LABEL] = self.tpu_topology
        return found


class Topology(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The node pools of a cluster, beside its one control plane."""

    pools: tuple[NodePool, ...]

    def pool(self, name: str) -> NodePool | None:
        """The pool of that name."""
        return next((pool for pool in self.pools if pool.name == name), None)


def _tpu_pool(name: str, *, is_queued: bool) -> NodePool:
    """Two workers that each stand for two hosts of four chips: one 4x4 slice fills the pool.

    On GKE a `ct6e-standard-4t` node is one host; four workers a pool would double the kubelets for nothing that a scenario needs.
    """
    taints = (Taint(key=TPU_TAINT, value="present"), *((Taint(key=QUEUED_TAINT, value="true"),) if is_queued else ()))
    return NodePool(name=name, nodes=2, tpu_chips=8, accelerator="tpu-v6e-slice", tpu_topology="4x4", taints=taints)


DEFAULT_TOPOLOGY = Topology(
    pools=(
        NodePool(name="default-pool", nodes=1),
        _tpu_pool("on-demand-pool", is_queued=False),
        _tpu_pool("dws-pool", is_queued=True),
    )
)
"""Guide B's three pools, in sizes for two cores."""


def load_topology(path: Path) -> Topology:
    """Read a topology from a TOML file: ``[[pools]]`` with the fields of ``NodePool``.

    Raises:
        InvalidDocumentError: When it cannot be read or does not validate.
    """
    try:
        topology = msgspec.convert(tomllib.loads(path.read_text()), Topology)
    except (OSError, ValueError) as error:  # msgspec's and tomllib's errors are ValueErrors
        raise InvalidDocumentError(document=str(path), field="", problem=str(error), advice="see docs/clusters.md") from error
    check_topology(topology, document=str(path))
    return topology


def check_topology(topology: Topology, *, document: str) -> None:
    """Refuse what no cluster can be made of.

    Raises:
        InvalidDocumentError: Naming the pool and the field.
    """
    names = [pool.name for pool in topology.pools]
    problems = [
        ("pools", "there is none", "name at least one pool", not names),
        ("pools", f"two are named {next((n for n in names if names.count(n) > 1), '')!r}", "rename one", len(set(names)) < len(names)),
        *((f"pools.{pool.name}.nodes", f"it is {pool.nodes}", "count from 1", pool.nodes < 1) for pool in topology.pools),
        *((f"pools.{pool.name}.tpu_chips", f"it is {pool.tpu_chips}", "count from 0", pool.tpu_chips < 0) for pool in topology.pools),
    ]
    for field, problem, advice, is_wrong in problems:
        if is_wrong:
            raise InvalidDocumentError(document=document, field=field, problem=problem, advice=advice)
