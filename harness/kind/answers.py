"""What a cluster that was pulled says of its own versions: they are the node image's and the installed kind's, not ours."""

import json
from pathlib import Path

from harness.kind.cluster import API_S, KindCluster, kubectl
from harness.kind.commands import CommandFailedError, run_command

PARTS = ("etcd", "coredns")
"""Components that are images in pods of kube-system; their tags are what kubeadm calls their versions."""


def answered_versions(cluster: KindCluster, kind: Path) -> dict[str, str]:
    """Versions by name, as API server, pods and program say.

    Raises:
        CommandFailedError: When one does not answer, or not in a form that is known.
    """
    server = kubectl(cluster, "version", "--output", "json", deadline_s=API_S)
    columns = 'jsonpath={range .items[*].spec.containers[*]}{.image}{"\\n"}{end}'
    listed = kubectl(cluster, "get", "pods", "--namespace", "kube-system", "--output", columns, deadline_s=API_S)
    program = run_command([str(kind), "version"], deadline_s=API_S)
    try:
        return {"kubernetes": json.loads(server)["serverVersion"]["gitVersion"], "kind": program.split()[1], **_tags(listed)}
    except (ValueError, KeyError, IndexError) as error:
        output = f"{server}\n{program}"
        raise CommandFailedError(command=["kubectl", "version"], outcome="or `kind version` names no version", output=output) from error


def _tags(images: str) -> dict[str, str]:
    """Tags of the parts among the images, one a line."""
    pairs = [line.rpartition(":") for line in images.split()]
    return {name.rpartition("/")[2]: tag for name, _, tag in pairs if name.rpartition("/")[2] in PARTS}
