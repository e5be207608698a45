"""What ``UpdateNodePool`` changes: the fields of the request that were given."""

from typing import Any

from google.cloud import container_v1

from harness.emulator.container.checks import check_pool

_OF_CONFIG = (
    *("machine_type", "disk_type", "disk_size_gb", "image_type", "workload_metadata_config", "kubelet_config", "linux_node_config"),
    *("accelerators", "flex_start", "max_run_duration", "consolidation_delay"),
)
_OF_POOL = ("queued_provisioning", "node_drain_config", "upgrade_settings", "locations")
_WRAPPED = {"labels": "labels", "resource_labels": "labels", "taints": "taints", "tags": "tags"}
"""Fields of the configuration that the request has within a message of their own."""
_NEW_NODES = ("node_version", "image_type", "machine_type", "disk_type", "disk_size_gb")
"""With one of these all nodes are made anew: an upgrade, which can be cancelled (assumed)."""


def updated(pool: container_v1.NodePool, request: container_v1.UpdateNodePoolRequest) -> container_v1.NodePool:
    """The pool as the request wants it.

    Raises:
        ApiError: INVALID_ARGUMENT when it cannot be so.
    """
    wanted = container_v1.NodePool(pool)
    given = _given(request)
    for field in given & set(_OF_CONFIG):
        setattr(wanted.config, field, getattr(request, field))
    for field in given & set(_OF_POOL):
        setattr(wanted, field, getattr(request, field))
    for field in given & set(_WRAPPED):
        setattr(wanted.config, field, getattr(getattr(request, field), _WRAPPED[field]))
    if request.node_version not in ("", "-"):
        wanted.version = request.node_version
    check_pool(wanted)
    return wanted


def is_upgrade(request: container_v1.UpdateNodePoolRequest) -> bool:
    """Whether the nodes are made anew."""
    return bool(_given(request) & set(_NEW_NODES))


def _given(request: container_v1.UpdateNodePoolRequest) -> set[str]:
    plain: Any = container_v1.UpdateNodePoolRequest.pb(request)
    return {field.name for field, _ in plain.ListFields()}
