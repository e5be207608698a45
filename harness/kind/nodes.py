"""Nodes as containers: start, stop, kill, and put back what a restart loses."""

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import TypeVar

import msgspec

from harness.clock import Clock
from harness.errors import UnknownNameError
from harness.kind.cache import cluster_dir
from harness.kind.cluster import OWNER_MOUNT, KindCluster, kubectl
from harness.kind.commands import CommandFailedError, run_command
from harness.kind.node_network import put_back_network
from harness.kind.topology import TPU_RESOURCE

CLUSTER_LABEL = "io.x-k8s.kind.cluster"
"""kind labels its node containers so; there is no other record of them.

Source: kind v0.33.0, pkg/cluster/internal/providers/docker/constants.go.
"""

DOCKER_S = 30.0
"""Docker's own commands end in under two seconds; on a loaded machine they have taken ten."""

STOP_GRACE_S = 20
"""systemd in a node ends kubelet, containerd and the pods' shims in 2 to 10 s; then Docker kills."""

EXEC_S = 60.0
READY_S = 120.0
"""A restarted node is Ready in 2 to 15 s; four restarting at once on two cores need longer."""

POLL_S = 0.5

Answer = TypeVar("Answer")


class NodeState(StrEnum):
    """As Docker says it.

    Source: https://docs.docker.com/reference/cli/docker/container/ls/#status
    """

    RUNNING = "running"
    PAUSED = "paused"
    EXITED = "exited"
    CREATED = "created"
    RESTARTING = "restarting"
    REMOVING = "removing"
    DEAD = "dead"


class NodeContainer(msgspec.Struct, frozen=True, kw_only=True):
    """One node. ``pool`` is empty for the control plane."""

    name: str
    pool: str
    state: NodeState


def container_states(cluster_name: str) -> list[tuple[str, NodeState]]:
    """Names and states of a cluster's containers, stopped ones too.

    Raises:
        CommandFailedError: When Docker does not answer, or not with states that are known.
    """
    return [(name, state) for name, state, _ in _containers(cluster_name)]


def _containers(cluster_name: str) -> list[tuple[str, NodeState, str]]:
    """The same with their ids."""
    ours = ["--all", "--filter", f"label={CLUSTER_LABEL}={cluster_name}", "--format", "{{.Names}} {{.State}} {{.ID}}"]
    command = ["docker", "ps", *ours]
    lines = run_command(command, deadline_s=DOCKER_S).splitlines()
    try:
        return [(name, NodeState(state), container) for name, state, container in (line.split() for line in lines)]
    except ValueError as error:
        raise CommandFailedError(command=command, outcome="shows a state of a node that is not known", output="\n".join(lines)) from error


def foreign_containers(cluster_name: str, containers: Sequence[str]) -> list[str]:
    """Those of some node containers that were not made from this cache: their owner mount says so, from the moment that they exist.

    Raises:
        CommandFailedError: When Docker does not say, or one is gone.
    """
    owner = f'{{{{.Name}}}}{{{{range .Mounts}}}}{{{{if eq .Destination "{OWNER_MOUNT}"}}}} {{{{.Source}}}}{{{{end}}}}{{{{end}}}}'
    lines = run_command(["docker", "inspect", "--format", owner, *containers], deadline_s=DOCKER_S).splitlines() if containers else []
    owners = [line.lstrip("/").partition(" ") for line in lines]
    return [name for name, _, path in owners if path != str(cluster_dir(cluster_name))]


def control_plane_name(cluster: KindCluster) -> str:
    """The name of the machine of the API server. Source: kind names it so, where there is one."""
    return f"{cluster.name}-control-plane"


def machine_states(cluster: KindCluster) -> dict[str, NodeState | None]:
    """Of all nodes that the cluster was made with, none where a container is gone; empty when Docker does not say."""
    try:
        found = dict(container_states(cluster.name))
    except CommandFailedError:
        return {}
    return {name: found.get(name) for name in (control_plane_name(cluster), *pools_by_node(cluster))}


def is_control_plane_off(cluster: KindCluster) -> bool:
    """Whether the machine of the API server does not run, so that it is in vain to wait for an answer; false when Docker does not say."""
    return machine_states(cluster).get(control_plane_name(cluster), NodeState.RUNNING) is not NodeState.RUNNING


def pools_by_node(cluster: KindCluster) -> dict[str, str]:
    """Which pool each worker belongs to: kind numbers workers in the order of its configuration, which is that of the pools."""
    pools = [pool.name for pool in cluster.topology.pools for _ in range(pool.nodes)]
    return {worker_name(cluster.name, number): pool for number, pool in enumerate(pools, start=1)}


def worker_name(cluster_name: str, number: int) -> str:
    """The name of the nth worker, counted from 1. Source: kind names them so, the first without a number."""
    return f"{cluster_name}-worker{number if number > 1 else ''}"


class NodeContainers:
    """The nodes of one cluster; every operation has a deadline and none touches a container of another cluster.

    Not even of one that has the name of ours, and the names of its nodes: it was made from another cache. One that takes the place of ours
    later has other containers, which keep their ids for as long as they are.
    """

    def __init__(self, cluster: KindCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._ids: dict[str, str] = {}

    def list(self, pool: str | None = None) -> list[NodeContainer]:
        """All nodes in order of their names, or those of one pool.

        Raises:
            UnknownNameError: When the topology has no such pool.
            CommandFailedError: When Docker does not answer.
        """
        if pool is not None and self._cluster.topology.pool(pool) is None:
            raise UnknownNameError(kind="node pool", name=pool, known=[found.name for found in self._cluster.topology.pools])
        pool_of = pools_by_node(self._cluster)
        nodes = [NodeContainer(name=name, pool=pool_of.get(name, ""), state=state) for name, state in self._states().items()]
        return [node for node in sorted(nodes, key=lambda node: node.name) if pool is None or node.pool == pool]

    def state(self, name: str) -> NodeState:
        """The state of one node.

        Raises:
            UnknownNameError: When the cluster has no such node.
            CommandFailedError: When its container was removed, or another cluster's has its name, or has it by now.
        """
        states = self._states()
        if name not in states and name in (control_plane_name(self._cluster), *pools_by_node(self._cluster)):
            outcome = f"shows no container of node {name}: it was removed; run `harness up kind`, which makes the cluster again"
            raise CommandFailedError(command=["docker", "ps"], outcome=outcome)
        if name not in states:
            raise UnknownNameError(kind="node", name=name, known=sorted(states))
        return states[name]

    def _states(self) -> dict[str, NodeState]:
        found = _containers(self._cluster.name)
        self._refuse_foreign([container for name, _, container in found if name not in self._ids])
        others = [name for name, _, container in found if self._ids.setdefault(name, container) != container]
        if others:
            outcome = f"shows other containers than before for {', '.join(others)}: the cluster was made anew, and is not ours to touch"
            raise CommandFailedError(command=["docker", "ps"], outcome=outcome)
        return {name: state for name, state, _ in found}

    def _refuse_foreign(self, containers: Sequence[str]) -> None:
        """See that containers which are met for the first time are ours."""
        foreign = foreign_containers(self._cluster.name, containers)
        if foreign:
            outcome = f"shows {', '.join(foreign)}, which were not made from {cluster_dir(self._cluster.name)}, and are not ours to touch"
            raise CommandFailedError(command=["docker", "ps"], outcome=outcome)

    def start(self, name: str) -> None:
        """Start a node that is stopped; ``repair`` then puts back what the stop lost. Harmless on a running one."""
        self._docker("start", name)

    def stop(self, name: str, *, graceful: bool = True) -> None:
        """Stop a node: systemd ends its services first, or, not graceful, as `kill`."""
        if not graceful:
            self.kill(name)
        elif self.state(name) is not NodeState.EXITED:
            self._docker("stop", "--time", str(STOP_GRACE_S), name, deadline_s=STOP_GRACE_S + DOCKER_S)

    def kill(self, name: str) -> None:
        """End everything of a node at once, as a host error does; the node object stays until it is deleted."""
        if self.state(name) is not NodeState.EXITED:
            self._docker("kill", name)

    def exec(self, name: str, argv: Sequence[str], *, deadline_s: float = EXEC_S, stdin: str | None = None) -> str:
        """Run a command in a node and return what it printed.

        Raises:
            CommandFailedError: When it fails or does not end in time.
        """
        self.state(name)
        return run_command(["docker", "exec", "--interactive", name, *argv], deadline_s=deadline_s, stdin=stdin)

    def is_ready(self, name: str) -> bool:
        """Whether the API server holds the node for Ready; false when it knows no such node."""
        ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        found = kubectl(self._cluster, "get", "node", name, "--ignore-not-found", "--output", ready, deadline_s=DOCKER_S)
        return found.strip() == "True"

    def repair(self, names: Sequence[str] | None = None, *, deadline_s: float = READY_S) -> None:
        """Put back what restarts lose: pod network, routes between all running nodes, TPU capacity; wait until the nodes are Ready.

        Only running nodes are repaired; all of them when none is named. A node that was deleted registers again, with another pod range.

        Raises:
            CommandFailedError: When a node is not Ready in time.
        """
        running = [node for node in self.list() if node.state is NodeState.RUNNING]
        chosen = [node for node in running if names is None or node.name in names]
        end_s = self._clock.monotonic_s() + deadline_s
        self._wait([node.name for node in chosen], self._is_registered, end_s, f"not registered within {deadline_s:g} s")
        self._persist(lambda: put_back_network(self._cluster, [node.name for node in running]), end_s)
        for node in chosen:
            self._persist(partial(self._offer_tpus, node), end_s)
        self._wait([node.name for node in chosen], self.is_ready, end_s, f"not Ready within {deadline_s:g} s")

    def forget(self, name: str) -> None:
        """Delete the node object, as GKE does when the machine is gone; a kubelet that lives registers it again when it restarts."""
        self.state(name)
        words = ("delete", "node", name, "--ignore-not-found", "--wait=false")
        self._persist(lambda: kubectl(self._cluster, *words, deadline_s=DOCKER_S), self._clock.monotonic_s() + READY_S)

    def _offer_tpus(self, node: NodeContainer) -> None:
        pool = self._cluster.topology.pool(node.pool)
        if pool is None or not pool.tpu_chips:
            return
        offered = {TPU_RESOURCE: str(pool.tpu_chips)}
        patch = json.dumps({"status": {"capacity": offered, "allocatable": offered}})
        kubectl(self._cluster, "patch", "node", node.name, "--subresource", "status", "--patch", patch, deadline_s=DOCKER_S)

    def _is_registered(self, name: str) -> bool:
        found = kubectl(
            self._cluster, "get", "node", name, "--ignore-not-found", "--output", "jsonpath={.spec.podCIDR}", deadline_s=DOCKER_S
        )
        return bool(found.strip())

    def _wait(self, names: Sequence[str], holds: Callable[[str], bool], end_s: float, otherwise: str) -> None:
        for name in names:
            while not self._persist(partial(holds, name), end_s):
                if self._clock.monotonic_s() > end_s:
                    raise CommandFailedError(command=["kubectl", "get", "node", name], outcome=f"shows the node {otherwise}")
                self._clock.sleep(POLL_S)

    def _persist(self, act: Callable[[], Answer], end_s: float) -> Answer:
        """Do what needs the API server, again while it fails: one that restarts answers nothing for 5 to 20 s.

        Raises:
            CommandFailedError: When it fails when the time is over, or the machine of the API server is off.
        """
        while True:
            try:
                return act()
            except CommandFailedError:
                if self._clock.monotonic_s() > end_s or is_control_plane_off(self._cluster):
                    raise
                self._clock.sleep(POLL_S)

    def _docker(self, *arguments: str, deadline_s: float = DOCKER_S) -> None:
        self.state(arguments[-1])
        run_command(["docker", *arguments], deadline_s=deadline_s)
