"""A record of a cluster that is not there."""

from pathlib import Path

import msgspec

from harness.kind import DEFAULT_TOPOLOGY, KindCluster


def cluster_at(directory: Path, **changes: object) -> KindCluster:
    """With all its places in one directory, but for changes."""
    cluster = KindCluster(
        name="chaos-harness",
        kubeconfig=directory / "kubeconfig",
        kubectl=directory / "kubectl",
        uid="uid",
        topology=DEFAULT_TOPOLOGY,
        versions={},
        shared_dir=directory,
        checkout_dir=directory,
        environment_dir=directory,
        job_image="chaos-harness-job:1",
        made_from="bundle",
    )
    return msgspec.structs.replace(cluster, **changes)
