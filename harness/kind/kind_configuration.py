"""kind's configuration of a topology, as data: JSON, which YAML contains."""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.kind.topology import NodePool, Topology


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A directory of the host, at the same path in every node unless another is named."""

    path: Path
    is_read_only: bool = False
    inside: Path | None = None

    def document(self) -> dict[str, object]:
        """As kind writes it."""
        return {"hostPath": str(self.path), "containerPath": str(self.inside or self.path), "readOnly": self.is_read_only}


class NodeImage(msgspec.Struct, frozen=True, kw_only=True):
    """The images of nodes, and where kubeadm takes Kubernetes' own images from; its default when empty."""

    control_plane: str
    worker: str
    repository: str = ""


def kind_configuration(topology: Topology, images: NodeImage, mounts: Sequence[Mount]) -> str:
    """One control plane, then the workers of every pool in order: their names follow from it."""
    mounted = [mount.document() for mount in mounts]
    workers = [_worker(pool, images.worker, mounted) for pool in topology.pools for _ in range(pool.nodes)]
    document: dict[str, object] = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": {"disableDefaultCNI": bool(images.repository)},
        "nodes": [{"role": "control-plane", "image": images.control_plane, "extraMounts": mounted}, *workers],
    }
    if images.repository:
        patch = {"kind": "ClusterConfiguration", "imageRepository": images.repository}
        document["kubeadmConfigPatches"] = [json.dumps(patch)]
    return json.dumps(document, indent=2)


def _worker(pool: NodePool, image: str, mounted: Sequence[dict[str, object]]) -> dict[str, object]:
    """Labels and taints go through kubelet's arguments, so that a node that registers again has them again."""
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in pool.taints]
    patch = {"kind": "JoinConfiguration", "nodeRegistration": {"taints": taints}}
    return {
        "role": "worker",
        "image": image,
        "labels": pool.labels(),
        "extraMounts": list(mounted),
        "kubeadmConfigPatches": [json.dumps(patch)],
    }
