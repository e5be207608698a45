"""Nodes that are hurt and mended: through the API where Kubernetes has a word for it, through their containers where it has none.

Only workers of the topology's pools are touched: the node that holds the control plane is none.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from harness.capabilities import Breakage
from harness.errors import BrokenHarnessError
from harness.kind import CommandFailedError, KindCluster, NodeContainers, NodeState
from harness.kind.nodes import control_plane_name
from harness.targets.kubernetes.api import CONFLICT, NODES, NOT_FOUND, Api, ApiError, Object, conditions_of, labels_of
from harness.targets.kubernetes.grounds import Hosting
from harness.targets.kubernetes.node_reading import NodeReading
from harness.targets.kubernetes.pools import NodePools
from harness.targets.kubernetes.refusals import told_as_lookup_errors

MAINTENANCE_LABEL = "cloud.google.com/active-node-maintenance"
"""``ONGOING``: pods are being stopped, as GKE documents it. Our choice: ``PENDING`` from the announcement on, where no document shows
this label. Source: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu."""

SCHEDULED_LABEL = "cloud.google.com/scheduled-maintenance-time"
"""When it begins, in seconds since 1970: what announces it, while it is not active.
Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/view-maintenance-events."""

TERMINATION_TAINT = "cloud.google.com/impending-node-termination"
"""With effect NoSchedule: no new pod comes to a node that is being terminated. GKE documents it for graceful termination, together with
``ONGOING`` and before pods are evicted; a node whose maintenance is only announced does not have it. Our choice: on a Spot machine too.
There the node termination handler set it, which GKE has replaced by the kubelet's own graceful shutdown; that refuses new pods as well.
Source: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu; for Spot
https://github.com/GoogleCloudPlatform/k8s-node-termination-handler."""

CUT_CHAIN = "chaos-cut"
"""The packet filter of a node that is cut off from the control plane alone: its pods still reach those of other nodes."""

TRIES = 5
"""For a change of a node: its kubelet and the node controllers write it too, every few seconds at most."""

_MENDING = threading.Lock()

MENDED_S = 180.0
"""A machine boots and registers in 2 to 15 s; several at once, on two cores that train as well, have taken a minute."""


@dataclass(slots=True)
class _Mending:
    """What the thread mends now or will: the machines that their pools held when it began, less those that were given back since."""

    names: tuple[str, ...]
    future: Future[None]


class NodeHosting(NodeReading, Hosting):
    """The part of the target ``kind`` that is a ``NodeHost``."""

    @property
    @abstractmethod
    def pools(self) -> NodePools:
        """The node pools.

        Raises:
            LookupError: When no execution runs.
        """

    def pool_names(self) -> tuple[str, ...]:
        """See ``NodeReading``."""
        return tuple(pool.name for pool in self.grounds.cluster.topology.pools)

    def break_nodes(self, nodes: Sequence[str], how: Breakage) -> None:
        """See ``NodeHost``."""
        pods = self.pods_by_node(nodes)
        ground = self.grounds
        with told_as_lookup_errors(), ThreadPoolExecutor(max_workers=len(nodes)) as together:
            for node, broken in [(node, together.submit(break_machine, ground.machines, ground.cluster, node, how)) for node in nodes]:
                broken.result()
                if how == "power-off":  # the others leave containers running: what ends those later says so itself
                    self.grounds.note_hurt(pods[node])

    def breakage_of(self, node: str, how: Breakage) -> str:
        """See ``NodeHost``."""
        try:
            return breakage_words(self.grounds.machines, node, how)
        except (CommandFailedError, LookupError):
            return ""  # it is asked again

    def lose_nodes(self, nodes: Sequence[str]) -> None:
        """See ``NodeHost``."""
        pods = self.pods_by_node(nodes)
        machines = self.grounds.machines
        with told_as_lookup_errors(), ThreadPoolExecutor(max_workers=len(nodes)) as together:
            for node, killed in [(node, together.submit(machines.kill, node)) for node in nodes]:
                killed.result()
                self.grounds.note_hurt(pods[node])
            for node in nodes:
                self.grounds.api.delete(NODES, node)

    def announce_maintenance(self, node: str, *, in_s: float) -> None:
        """See ``NodeHost``."""
        self.pool_of(node)
        begins = self.grounds.clock.utc().timestamp() + in_s
        pending = {MAINTENANCE_LABEL: "PENDING", SCHEDULED_LABEL: str(int(begins))}
        with told_as_lookup_errors():
            mark(self.grounds.api, node, pending if in_s else {MAINTENANCE_LABEL: "ONGOING"}, is_terminating=not in_s)

    def announce_termination(self, node: str) -> None:
        """See ``NodeHost``."""
        self.pool_of(node)
        with told_as_lookup_errors():
            mark(self.grounds.api, node, {}, is_terminating=True)

    def mend_nodes(self, nodes: Sequence[str]) -> None:
        """See ``NodeHost``."""
        ground, pools = self.grounds, self.pools
        if tuple(nodes) not in self._mendings or self._mendings[tuple(nodes)].future.done():
            names = tuple(node for node in nodes if pools.holds(node))
            future = self._mender.submit(mend, ground.api, ground.machines, names) if names else _done()
            self._mendings[tuple(nodes)] = _Mending(names, future)

    def are_whole(self, nodes: Sequence[str]) -> bool:
        """See ``NodeHost``."""
        mending = self._mendings.get(tuple(nodes))
        if mending is None or not mending.future.done():
            return False
        given_back = self._put_away_given_back(mending)
        try:
            mending.future.result()
        except BrokenHarnessError as error:
            if not given_back:
                raise LookupError(str(error)) from error
            self.mend_nodes(nodes)  # it may have waited for those in vain: the others are mended again
            return False
        return True

    def _put_away_given_back(self, mending: _Mending) -> bool:
        """Whether pools have given machines back while they were mended: what was started then is stopped."""
        pools = self.pools
        given_back = [name for name in mending.names if not pools.holds(name)]
        mending.names = tuple(name for name in mending.names if name not in given_back)
        for name in given_back:
            pools.put_away([name], f"what {name} was there for ended while a fault on it was mended")
        return bool(given_back)

    def end_mending(self) -> None:
        """Wait for what is being mended, at most as long as that may take; what was not begun is left to the undo."""
        self._mender.shutdown(cancel_futures=True)

    @cached_property
    def _mender(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="mend nodes")

    @cached_property
    def _mendings(self) -> dict[tuple[str, ...], _Mending]:
        return {}


def _done() -> Future[None]:
    """Where there is nothing to do."""
    future = Future[None]()
    future.set_result(None)
    return future


def break_machine(machines: NodeContainers, cluster: KindCluster, node: str, how: Breakage) -> None:
    """Break a node; its node object stays.

    Raises:
        CommandFailedError: When it was not done.
    """
    match how:
        case "power-off":
            machines.kill(node)
        case "kubelet":
            machines.exec(node, ["systemctl", "stop", "kubelet"])
        case "partition":
            machines.exec(node, ["sh", "-ec", cutting_script(control_plane_name(cluster))])


def breakage_words(machines: NodeContainers, node: str, how: Breakage) -> str:
    """How a node is seen to be broken; empty when it is not.

    Raises:
        CommandFailedError: When it does not say.
    """
    match how:
        case "power-off":
            return "its machine is off" if machines.state(node) is NodeState.EXITED else ""
        case "kubelet":
            state = machines.exec(node, ["sh", "-c", "systemctl is-active kubelet || true"]).strip()
            return f"its kubelet is {state}" if state in ("inactive", "failed") else ""
        case "partition":
            dropped = _packets(machines.exec(node, ["iptables", "-w", "-nvx", "-L", CUT_CHAIN]))
            return f"packets between it and the control plane that were dropped: {dropped}" if dropped else ""


def _packets(listing: str) -> int:
    """The packets that the rules of a chain have met: the first column below two lines of heading."""
    return sum(int(line.split()[0]) for line in listing.splitlines()[2:] if line.strip())


def cutting_script(control_plane: str) -> str:
    """Drop every packet between a node, its pods too, and the control plane, whose name the engine's own resolver knows."""
    hooks = ("INPUT -s", "OUTPUT -d", "FORWARD -d", "FORWARD -s")
    return "\n".join(
        [
            f"address=$(getent ahostsv4 {control_plane} | awk 'NR == 1 {{print $1}}')",
            'test -n "$address"',
            f"iptables -w -N {CUT_CHAIN} 2>/dev/null || iptables -w -F {CUT_CHAIN}",
            f"iptables -w -A {CUT_CHAIN} -j DROP",
            *(f"iptables -w -I {hook.split()[0]} {hook.split()[1]} $address -j {CUT_CHAIN}" for hook in hooks),
        ]
    )


def joining_script() -> str:
    """Remove what ``cutting_script`` made; harmless where nothing is."""
    rules = f"iptables-save -t filter | grep -- '-j {CUT_CHAIN}$' | sed 's/^-A/-D/'"
    return "\n".join(
        [
            f"{rules} | while read -r rule; do iptables -w $rule; done",
            f"iptables -w -F {CUT_CHAIN} 2>/dev/null || true",
            f"iptables -w -X {CUT_CHAIN} 2>/dev/null || true",
        ]
    )


def mark(api: Api, node: str, labels: dict[str, str], *, is_terminating: bool) -> None:
    """Give a node labels of maintenance, and one whose pods are being stopped the taint of a machine that is about to go.

    Raises:
        ApiError: When the API server does not do it.
    """

    def marks(found: Object) -> Object:
        marked: Object = {"metadata": {"labels": labels, **_version(found)}}
        if is_terminating:
            taints = [taint for taint in _taints(found) if taint["key"] != TERMINATION_TAINT]
            marked["spec"] = {"taints": [*taints, {"key": TERMINATION_TAINT, "effect": "NoSchedule"}]}
        return marked

    if not _change(api, node, marks):
        raise ApiError(attempted="mark", what=f"nodes/{node}", status=NOT_FOUND, reason="NotFound")


def unmark(api: Api, node: str) -> None:
    """Take labels and taint of maintenance away; harmless where there are none.

    Raises:
        ApiError: When the API server does not do it.
    """

    def whole(found: Object) -> Object | None:
        marked = {label: None for label in (MAINTENANCE_LABEL, SCHEDULED_LABEL) if label in labels_of(found)}
        kept = [taint for taint in _taints(found) if taint["key"] != TERMINATION_TAINT]
        is_marked = bool(marked) or len(kept) != len(_taints(found))
        return {"metadata": {"labels": marked, **_version(found)}, "spec": {"taints": kept}} if is_marked else None

    _change(api, node, whole)


def wrong_with(node: Object) -> str:
    """What keeps a node of a pool from being as a run may expect it, in words; empty when nothing is seen to."""
    ready = next((condition["status"] for condition in conditions_of(node) if condition["type"] == "Ready"), "True")
    if (node.get("spec") or {}).get("unschedulable"):
        return "is not schedulable"
    if {MAINTENANCE_LABEL, SCHEDULED_LABEL} & set(labels_of(node)) or any(taint["key"] == TERMINATION_TAINT for taint in _taints(node)):
        return "is marked for maintenance"
    return "" if ready == "True" else f"has the condition Ready {ready}"


def mend(api: Api, machines: NodeContainers, nodes: Sequence[str]) -> None:
    """Make nodes whole, whatever was done to them, and wait until the API server holds them for ready; nothing where there are none.

    One call at a time: the undo at the end of a run may come while a heal goes on, and then finds its nodes whole.

    Raises:
        BrokenHarnessError: When one could not be mended.
    """
    if nodes:
        with _MENDING:
            _mend(api, machines, nodes)


def _mend(api: Api, machines: NodeContainers, nodes: Sequence[str]) -> None:
    for node in nodes:
        if machines.state(node) is NodeState.RUNNING:
            machines.exec(node, ["sh", "-ec", joining_script()])
            # A kubelet whose node object was deleted registers again only when it starts.
            machines.exec(node, ["systemctl", "start" if api.get(NODES, node) is not None else "restart", "kubelet"])
        else:
            machines.start(node)
    machines.repair(nodes, deadline_s=MENDED_S)
    for node in nodes:
        unmark(api, node)


def _change(api: Api, node: str, patch_of: Callable[[Object], Object | None]) -> bool:
    """Patch a node by what it is, again where somebody else has changed it in between; false when it is not there.

    Raises:
        ApiError: When the API server does not do it.
    """
    for left in reversed(range(TRIES)):
        found = api.get(NODES, node)
        if found is None:
            return False
        patch = patch_of(found)
        try:
            if patch is not None:
                api.patch(NODES, node, patch)
        except ApiError as error:
            if error.status != CONFLICT or not left:
                raise
            continue
        return True
    return False


def _taints(node: Object) -> list[Object]:
    return list((node.get("spec") or {}).get("taints") or [])


def _version(node: Object) -> Object:
    """For a patch of a list: refused when somebody else has changed the node in between."""
    return {"resourceVersion": node["metadata"]["resourceVersion"]}
