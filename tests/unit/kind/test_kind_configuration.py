"""kind's configuration says what the topology says."""

import json
from pathlib import Path

from harness.kind.kind_configuration import Mount, NodeImage, kind_configuration
from harness.kind.topology import DEFAULT_TOPOLOGY

BUILT = NodeImage(control_plane="node:1", worker="worker:1", repository="local")
PULLED = NodeImage(control_plane="published:1", worker="published:1")


def configuration(images: NodeImage = BUILT, *mounts: Mount) -> dict[str, object]:
    decoded: dict[str, object] = json.loads(kind_configuration(DEFAULT_TOPOLOGY, images, mounts))
    return decoded


def test_workers_stand_in_the_order_of_the_pools() -> None:
    nodes = configuration()["nodes"]
    assert isinstance(nodes, list)

    assert [node["role"] for node in nodes] == ["control-plane", *["worker"] * 5]
    pools = [node["labels"]["cloud.google.com/gke-nodepool"] for node in nodes[1:]]
    assert pools == ["default-pool", "on-demand-pool", "on-demand-pool", "dws-pool", "dws-pool"]


def test_taints_go_through_the_kubelet_so_that_they_return_with_the_node() -> None:
    nodes = configuration()["nodes"]
    assert isinstance(nodes, list)

    patch = json.loads(nodes[-1]["kubeadmConfigPatches"][0])

    assert patch == {
        "kind": "JoinConfiguration",
        "nodeRegistration": {
            "taints": [
                {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"},
                {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"},
            ]
        },
    }


def test_every_node_has_the_mounts() -> None:
    nodes = configuration(BUILT, Mount(path=Path("/shared")), Mount(path=Path("/code"), is_read_only=True, inside=Path("/in")))["nodes"]
    assert isinstance(nodes, list)

    assert all(
        node["extraMounts"]
        == [
            {"hostPath": "/shared", "containerPath": "/shared", "readOnly": False},
            {"hostPath": "/code", "containerPath": "/in", "readOnly": True},
        ]
        for node in nodes
    )


def test_images_built_here_come_from_their_own_repository_and_network() -> None:
    built = configuration()

    assert built["networking"] == {"disableDefaultCNI": True}
    assert built["kubeadmConfigPatches"] == ['{"kind": "ClusterConfiguration", "imageRepository": "local"}']


def test_a_published_node_image_keeps_what_it_brings() -> None:
    pulled = configuration(PULLED)

    assert pulled["networking"] == {"disableDefaultCNI": False}
    assert "kubeadmConfigPatches" not in pulled
