"""Takes back what faults did to the cluster: each action is harmless twice, waits until it is seen, and gives up after a while."""

from collections.abc import Callable, Collection, Sequence
from contextlib import closing, nullcontext
from functools import partial

from harness.clock import Clock
from harness.errors import BrokenHarnessError, UndoError
from harness.kind import KindCluster, NodeContainers, NodeState, find_cluster, lasting_problem
from harness.kind.cluster import is_unreadable, state_path
from harness.kind.lock import Turn
from harness.targets.kubernetes.api import NODES, Api, ApiError, Resource
from harness.targets.kubernetes.control_plane import ask_everything, restore_image
from harness.targets.kubernetes.node_reading import set_schedulable
from harness.targets.kubernetes.nodes import mend
from harness.targets.kubernetes.pools import NodePools, empty_at_rest
from harness.targets.kubernetes.queue import activate
from harness.targets.kubernetes.quota import restore_nominal_quota
from harness.targets.kubernetes.run_record import recorded_runs
from harness.undo import (
    AwaitControlPlane,
    ClusterAction,
    DeleteObject,
    MendNode,
    Reactivate,
    RestoreCluster,
    RestoreImage,
    RestoreQuota,
    Uncordon,
)

DELETED_S = 60.0
"""A job of sleeping pods is gone in a few seconds."""

SERVING_S = 120.0
"""Kueue restarts when it has lost the API server: its webhooks are back 20 to 40 s after that."""

ASKED_EVERY_S = 0.5


def restore(undo: RestoreCluster, clock: Clock, *, is_ours: bool) -> str:
    """Do all actions of an undo and say what was done and how it was seen; ``is_ours``: in a run that has the cluster to itself.

    Raises:
        UndoError: When one could not be done, or was not seen in time; the others were done all the same.
        TargetUnavailableError: When another run does not let go of the cluster.
    """
    cluster = find_cluster()
    if cluster is None and is_unreadable():
        reason = f"its state in {state_path()} is there, and cannot be read"
        raise UndoError(attempted=f"restore the cluster {undo.cluster}", reason=reason)
    if cluster is None or cluster.name != undo.cluster or undo.uid not in ("", cluster.uid):
        return f"the cluster {undo.cluster} is gone, and with it what was done to it"
    with nullcontext() if is_ours else Turn(cluster.name).held(clock):
        _await_answer(cluster, clock)
        machines = NodeContainers(cluster, clock)
        empty_pools = frozenset[str]() if is_ours else empty_at_rest(cluster.topology)
        with closing(Api(cluster.kubeconfig, cluster.context)) as api:
            done = Restorer(api, machines, clock, empty_pools=empty_pools).restore(undo.actions)
        if not is_ours and any(isinstance(action, MendNode) for action in undo.actions):
            _bring_to_rest(cluster, machines)
        return done


def _bring_to_rest(cluster: KindCluster, machines: NodeContainers) -> None:
    """Let no machine run on that nobody stops: where a run has left a record, its end does so."""
    if recorded_runs(cluster.name):
        return
    with closing(NodePools(machines, cluster.topology)) as pools:
        pools.read()
        pools.restore()


class Restorer:
    """Does actions on one cluster.

    Args:
        api: Of the cluster.
        machines: Its nodes.
        clock: For waiting.
        empty_pools: Pools that rest without machines, where no run goes on: one of theirs that is off is not started, for what asked for it
            is gone, and nobody would stop it.
    """

    def __init__(self, api: Api, machines: NodeContainers, clock: Clock, *, empty_pools: Collection[str] = ()) -> None:
        self._api, self._machines, self._clock = api, machines, clock
        self._empty_pools = empty_pools

    def restore(self, actions: Sequence[ClusterAction]) -> str:
        """Do them all, nodes together.

        Raises:
            UndoError: When one was not done; the others were done all the same.
        """
        broken = [action.node for action in actions if isinstance(action, MendNode)]
        steps: list[Callable[[], str]] = [partial(self._mend, broken)] if broken else []
        steps += [partial(self._do, action) for action in actions if not isinstance(action, MendNode)]
        done: list[str] = []
        problems: list[str] = []
        for step in steps:
            try:
                done.append(step())
            except (BrokenHarnessError, LookupError) as error:
                problems.append(str(error))
        if problems:
            raise UndoError(attempted="restore the cluster", reason="; ".join(problems))
        return "; ".join(done)

    def _do(self, action: ClusterAction) -> str:
        match action:
            case Uncordon():
                is_there = set_schedulable(self._api, action.node, is_schedulable=True)
                return f"node {action.node} is schedulable" if is_there else f"node {action.node} is gone"
            case RestoreQuota():
                return restore_nominal_quota(self._api, action)
            case DeleteObject():
                return self._delete(action)
            case Reactivate():
                is_there = activate(self._api, action.namespace, action.name, is_active=True)
                return f"workload {action.name} is {'active' if is_there else 'gone'}"
            case AwaitControlPlane():
                return self._await_control_plane()
            case RestoreImage():
                restore_image(self._machines, action.node, action.image)
                return f"{action.image} is known on {action.node}"
            case MendNode():
                return self._mend([action.node])

    def _await_control_plane(self) -> str:
        end_s = self._clock.monotonic_s() + SERVING_S
        while True:
            try:
                ask_everything(self._api)
            except ApiError:
                if self._clock.monotonic_s() > end_s:
                    raise
                self._clock.sleep(ASKED_EVERY_S)
            else:
                return "the API server answers, and Kueue behind it"

    def _mend(self, nodes: Sequence[str]) -> str:
        gone = self._given_back(nodes)
        for node in gone:
            self._api.delete(NODES, node)
        there = [node for node in nodes if node not in gone]
        mend(self._api, self._machines, there)
        missing = [node for node in there if self._api.get(NODES, node) is None]
        if missing:
            raise UndoError(attempted=f"mend {', '.join(missing)}", reason="the API server has no such node")
        told = {"ready": there, "gone with what asked for it": gone}
        return "; ".join(f"{state}: {', '.join(names)}" for state, names in told.items() if names)

    def _given_back(self, nodes: Sequence[str]) -> list[str]:
        """Those whose machine is off in a pool that rests without machines."""
        if not self._empty_pools:
            return []
        off = {node.name for node in self._machines.list() if node.pool in self._empty_pools and node.state is not NodeState.RUNNING}
        return [node for node in nodes if node in off]

    def _delete(self, action: DeleteObject) -> str:
        resource = Resource(action.api_version, action.resource, is_namespaced=bool(action.namespace))
        self._api.delete(resource, action.name, action.namespace)
        end_s = self._clock.monotonic_s() + DELETED_S
        while self._api.get(resource, action.name, action.namespace) is not None:
            if self._clock.monotonic_s() > end_s:
                what = f"{action.resource}/{action.namespace}/{action.name}"
                raise UndoError(attempted=f"delete {what}", reason=f"it is still there after {DELETED_S:g} s")
            self._clock.sleep(ASKED_EVERY_S)
        return f"{action.resource} {action.name} is gone"


def _await_answer(cluster: KindCluster, clock: Clock) -> None:
    """Wait until the cluster can be used: a fault may have killed its API server just now.

    Raises:
        UndoError: When it cannot.
    """
    problem = lasting_problem(cluster, clock)
    if problem:
        raise UndoError(attempted=f"restore the cluster {cluster.name}", reason=problem)
