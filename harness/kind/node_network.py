"""The pod network of the cluster, as a script that runs in a node.

A `ptp` interface a pod, addresses by `host-local` out of the node's pod range, and one route to every other node: the least that
Kubernetes asks for, from Debian's own plugins. No masquerading: pods reach pods, nodes and services, nothing outside.
"""

import json
from collections.abc import Sequence

import msgspec

from harness.kind.cluster import KindCluster, kubectl
from harness.kind.commands import run_command

NETWORK_S = 30.0
"""A few `ip` commands in a node take well under a second; on a loaded machine an exec alone has taken five."""

ROUTE_PROTOCOL = 117
"""Marks our routes, so that stale ones are told from the node's own; any number that iproute2 does not name."""


class NodeAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a node and its pods are."""

    name: str
    pod_range: str
    address: str


def put_back_network(cluster: KindCluster, names: Sequence[str]) -> None:
    """Write the network configuration and the routes of running nodes; harmless where they are right.

    Raises:
        CommandFailedError: When a node does not take them.
    """
    nodes = _addresses(cluster, names)
    for node in nodes:
        others = [other for other in nodes if other.name != node.name]
        script = network_script(others)
        run_command(
            ["docker", "exec", "--interactive", node.name, "sh", "-ec", script],
            deadline_s=NETWORK_S,
            stdin=network_configuration(node.pod_range),
        )


def network_configuration(pod_range: str) -> str:
    """The configuration that containerd reads; a node without one is not Ready."""
    addresses = {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",  # emptied by a restart, as the pods are
        "routes": [{"dst": "0.0.0.0/0"}],
        "ranges": [[{"subnet": pod_range}]],
    }
    interface = {"type": "ptp", "ipMasq": False, "ipam": addresses, "mtu": 1500}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.3.1", "name": "chaos-harness", "plugins": [interface, ports]})


def network_script(others: Sequence[NodeAddress]) -> str:
    """Write the configuration from standard input, set the routes, then remove ours that are no longer wanted."""
    wanted = " ".join(other.pod_range for other in others)
    lines = [
        "mkdir -p /etc/cni/net.d",
        "new=/etc/cni/net.d/.new.$$",  # another node's repair may write the same here
        'cat > "$new"',
        'mv "$new" /etc/cni/net.d/10-chaos-harness.conflist',
        *(f"ip route replace {other.pod_range} via {other.address} proto {ROUTE_PROTOCOL}" for other in others),
        f"ip -o route show proto {ROUTE_PROTOCOL} | while read -r range rest; do",
        f'  case " {wanted} " in *" $range "*) ;; *) ip route del "$range" proto {ROUTE_PROTOCOL};; esac',
        "done",
    ]
    return "\n".join(lines)


def _addresses(cluster: KindCluster, names: Sequence[str]) -> list[NodeAddress]:
    """Those of running nodes that have a pod range; addresses as Docker says them, for those of the API are old just after a restart."""
    columns = 'jsonpath={range .items[*]}{.metadata.name} {.spec.podCIDR}{"\\n"}{end}'
    listed = kubectl(cluster, "get", "nodes", "--output", columns, deadline_s=NETWORK_S)
    pairs = [line.split() for line in listed.splitlines()]
    ranges = {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0] in names}  # one whose container was removed is listed still
    address = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    found = run_command(["docker", "inspect", "--format", "{{.Name}} " + address, *ranges], deadline_s=NETWORK_S) if ranges else ""
    pairs = [line.lstrip("/").split() for line in found.splitlines()]
    return [NodeAddress(name=pair[0], pod_range=ranges[pair[0]], address=pair[1]) for pair in pairs if len(pair) == 2]
