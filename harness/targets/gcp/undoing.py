"""Takes back what faults did to a project: each action is harmless twice, waits until it is seen, and gives up after a while."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from harness.clock import Clock
from harness.errors import BrokenHarnessError, TargetUnavailableError, UndoError
from harness.targets.gcp.calling import Caller, Effect, Request, Send
from harness.targets.gcp.connection import EMULATOR_VARIABLE, Clients, EmulatorGoneError, connect
from harness.targets.gcp.failures import CallError, ConflictError, PreconditionError, ResourceMissingError, UnreachableError
from harness.targets.gcp.guard import ALLOWED_LABEL, ALLOWED_VALUE, RUN_LABEL, is_allowed
from harness.targets.gcp.operation_states import await_cluster_operation, await_zone_operation
from harness.targets.gcp.pool_nodes import nodes_by_zone, settled_pool, told
from harness.targets.gcp.secrets import Secrets
from harness.undo import (
    CancelRunExecution,
    DeleteInstance,
    DeleteNodePool,
    ProjectAction,
    ResizeNodePool,
    RestoreAutoscaling,
    RestoreInCluster,
    RestoreProject,
)

if TYPE_CHECKING:
    from google.cloud.container_v1 import NodePool
    from google.cloud.container_v1 import Operation as ClusterOperation

CLUSTER_S = 1800.0
"""An operation on a node pool takes minutes, and waits for whatever else the cluster does."""

MACHINE_S = 600.0

ENDED_S = 120.0
"""A cancelled execution: the grace, and the time until the platform has counted its tasks."""

ASKED_EVERY_S = 5.0


def restore(undo: RestoreProject, clock: Clock, *, environment: Mapping[str, str] = os.environ) -> str:
    """Do all actions of an undo and say what was done and how it was seen.

    Raises:
        UndoError: When one could not be done, or was not seen in time; the others were done all the same.
        TargetUnavailableError: When there are no clients or credentials.
    """
    secrets = Secrets.of(environment)
    said = {name: value for name, value in environment.items() if name != EMULATOR_VARIABLE}
    if undo.emulator:
        said[EMULATOR_VARIABLE] = undo.emulator
    gone = f"the emulator at {undo.emulator} is gone, and with it what was done to its project {undo.project}"
    try:
        clients = connect(undo.project, said, secrets)
    except EmulatorGoneError:
        return gone
    with closing(clients):
        caller = Caller(clock=clock, secrets=secrets, renew=clients.renew, problem=clients.problem)
        if undo.emulator and not answers(clients, caller, undo.project):
            return gone
        return ProjectRestorer(clients, caller, undo.project).restore(undo.actions)


def answers(clients: Clients, caller: Caller, project: str) -> bool:
    """Whether an emulator is there still: it ends with what it holds."""
    request = Request(service="storage.googleapis.com", method="buckets.list", resource=f"projects/{project}")

    def send(timeout_s: float) -> bool:
        next(iter(clients.storage.list_buckets(max_results=1, timeout=timeout_s, retry=None)), None)
        return True

    try:
        return caller.call(request, send, deadline_s=ASKED_EVERY_S)
    except UnreachableError:
        return False
    except CallError:
        return True


class ProjectRestorer:
    """Does actions on one project."""

    def __init__(self, clients: Clients, caller: Caller, project: str) -> None:
        self._clients, self._caller, self._project = clients, caller, project

    def restore(self, actions: Sequence[ProjectAction]) -> str:
        """Do them all, in order.

        Raises:
            UndoError: When one was not done; the others were done all the same.
        """
        done: list[str] = []
        problems: list[str] = []
        for action in actions:
            try:
                done.append(self._do(action))
            except (BrokenHarnessError, TargetUnavailableError) as error:
                problems.append(str(error))
        if problems:
            raise UndoError(attempted=f"restore the project {self._project}", reason="; ".join(problems))
        return "; ".join(done)

    def _do(self, action: ProjectAction) -> str:
        match action:
            case ResizeNodePool():
                return self._resize(action)
            case RestoreAutoscaling():
                return self._set_autoscaling(action)
            case DeleteNodePool():
                return self._delete_pool(action)
            case DeleteInstance():
                return self._delete_instance(action)
            case CancelRunExecution():
                return self._cancel(action)
            case RestoreInCluster():
                from harness.targets.gcp.cluster_undoing import restore_in_cluster

                return restore_in_cluster(self._clients, self._caller, action)

    def _resize(self, action: ResizeNodePool) -> str:
        self._require_ours(action.name)
        try:
            settled = self._why_size_stays(action)
        except ResourceMissingError:
            return f"node pool {action.name} is gone"
        if settled:
            return settled
        clusters = self._clients.clusters
        asked = {"name": action.name, "node_count": action.node_count}
        is_there = self._operate(
            "SetNodePoolSize", action.name, lambda timeout_s: clusters.set_node_pool_size(request=asked, retry=None, timeout=timeout_s)
        )
        return f"node pool {action.name} has {action.node_count} nodes a zone" if is_there else f"node pool {action.name} is gone"

    def _why_size_stays(self, action: ResizeNodePool) -> str:
        """Why a pool is not resized: it has its size, or one that the fault has not given it; empty: it is.

        Raises:
            CallError: When it cannot be read, or is gone.
            UndoError: When something is done on it for too long.
        """
        if action.wrote is None:
            return ""
        pool = settled_pool(self._clients, self._caller, action.name, within_s=CLUSTER_S)
        counts = nodes_by_zone(self._clients, self._caller, action.name, pool)
        if set(counts.values()) == {action.node_count}:
            return f"node pool {action.name} has {action.node_count} nodes a zone"
        if set(counts.values()) == {action.wrote}:
            return ""
        return (
            f"node pool {action.name} has {told(counts)}, and the fault had given it {action.wrote} a zone: somebody has resized it since, "
            f"and it is left; before the fault it had {action.node_count} a zone"
        )

    def _set_autoscaling(self, action: RestoreAutoscaling) -> str:
        self._require_ours(action.name)
        try:
            settled = self._why_autoscaling_stays(action)
        except ResourceMissingError:
            return f"node pool {action.name} is gone"
        if settled:
            return settled
        clusters = self._clients.clusters
        autoscaling: dict[str, object] = {"enabled": action.enabled}  # it is replaced as a whole
        if action.enabled:
            fields = (
                *("min_node_count", "max_node_count", "total_min_node_count", "total_max_node_count"),
                *("location_policy", "autoprovisioned"),
            )
            autoscaling |= {name: value for name in fields if (value := getattr(action, name))}
        asked = {"name": action.name, "autoscaling": autoscaling}
        is_there = self._operate(
            "SetNodePoolAutoscaling",
            action.name,
            lambda timeout_s: clusters.set_node_pool_autoscaling(request=asked, retry=None, timeout=timeout_s),
        )
        return _as_it_was(action) if is_there else f"node pool {action.name} is gone"

    def _why_autoscaling_stays(self, action: RestoreAutoscaling) -> str:
        """Why autoscaling is not set: it is as it was, or as the fault has not left it; empty: it is.

        Raises:
            CallError: When it cannot be read, or its pool is gone.
            UndoError: When something is done on the pool for too long.
        """
        if not action.is_off_by_fault:
            return ""
        pool = settled_pool(self._clients, self._caller, action.name, within_s=CLUSTER_S)
        if _is_as_it_was(pool, action):
            return _as_it_was(action)
        if not pool.autoscaling.enabled:
            return ""
        before = "on" if action.enabled else "off"
        return (
            f"the autoscaling of node pool {action.name} is on, and the fault had switched it off: somebody has set it since, "
            f"and it is left; before the fault it was {before}"
        )

    def _delete_pool(self, action: DeleteNodePool) -> str:
        self._require_ours(action.name)
        clusters = self._clients.clusters
        request = self._request("container.googleapis.com", "ClusterManager.GetNodePool", action.name)
        try:
            pool = self._caller.call(
                request, lambda timeout_s: clusters.get_node_pool(request={"name": action.name}, retry=None, timeout=timeout_s)
            )
        except ResourceMissingError:
            return f"node pool {action.name} is gone"
        self._require_made_by(action.name, dict(pool.config.resource_labels), action.run_id)
        self._operate(
            "DeleteNodePool",
            action.name,
            lambda timeout_s: clusters.delete_node_pool(request={"name": action.name}, retry=None, timeout=timeout_s),
        )
        return f"node pool {action.name} is gone"

    def _delete_instance(self, action: DeleteInstance) -> str:
        where = {"project": self._project, "zone": action.zone, "instance": action.name}
        full = f"projects/{self._project}/zones/{action.zone}/instances/{action.name}"
        instances, service = self._clients.instances, "compute.googleapis.com"
        try:
            found = self._caller.call(
                self._request(service, "instances.get", full),
                lambda timeout_s: instances.get(request=where, retry=None, timeout=timeout_s),
            )
            self._require_made_by(full, dict(found.labels), action.run_id)
            operation = self._caller.call(
                self._request(service, "instances.delete", full, Effect.IDEMPOTENT),
                lambda timeout_s: instances.delete_unary(request=where, retry=None, timeout=timeout_s),
            )
        except ResourceMissingError:
            return f"instance {full} is gone"
        await_zone_operation(self._clients, self._caller, operation.name, project=self._project, zone=action.zone, deadline_s=MACHINE_S)
        return f"instance {full} is gone"

    def _cancel(self, action: CancelRunExecution) -> str:
        self._require_ours(action.name)
        executions, asked = self._clients.executions, {"name": action.name}
        reading = self._request("run.googleapis.com", "Executions.GetExecution", action.name)
        cancelling = self._request("run.googleapis.com", "Executions.CancelExecution", action.name, Effect.IDEMPOTENT)

        def has_ended() -> bool:
            found = self._caller.call(reading, lambda timeout_s: executions.get_execution(request=asked, retry=None, timeout=timeout_s))
            return bool(found.completion_time)

        try:
            if has_ended():
                return f"execution {action.name} has ended"
            self._caller.call(cancelling, lambda timeout_s: executions.cancel_execution(request=asked, retry=None, timeout=timeout_s))
            self._await(has_ended, f"execution {action.name} has not ended", within_s=ENDED_S)
        except ResourceMissingError:
            return f"execution {action.name} is gone"
        except PreconditionError:
            if not has_ended():
                raise
        return f"execution {action.name} was cancelled, and has ended"

    def _operate(self, method: str, pool: str, send: Send["ClusterOperation"]) -> bool:
        """Start an operation on a pool and wait for its end; whether the pool is there. A cluster does one thing at a time."""
        request = self._request("container.googleapis.com", f"ClusterManager.{method}", pool, Effect.IDEMPOTENT)
        clock = self._caller.clock
        end_s = clock.monotonic_s() + CLUSTER_S
        while True:
            try:
                operation = self._caller.call(request, send)
            except ResourceMissingError:
                return False
            except (PreconditionError, ConflictError):
                if clock.monotonic_s() + ASKED_EVERY_S > end_s:
                    raise
                clock.sleep(ASKED_EVERY_S)
            else:
                cluster = pool.rpartition("/nodePools/")[0]
                left_s = max(ASKED_EVERY_S, end_s - clock.monotonic_s())
                await_cluster_operation(self._clients, self._caller, operation, cluster=cluster, deadline_s=left_s)
                return True

    def _await(self, holds: Callable[[], bool], otherwise: str, *, within_s: float) -> None:
        clock = self._caller.clock
        end_s = clock.monotonic_s() + within_s
        while not holds():
            if clock.monotonic_s() > end_s:
                raise UndoError(attempted=f"restore the project {self._project}", reason=f"{otherwise} after {within_s:g} s")
            clock.sleep(ASKED_EVERY_S)

    def _require_ours(self, name: str) -> None:
        """A journal that was edited must not reach into another project."""
        if not name.startswith(f"projects/{self._project}/"):
            raise UndoError(attempted=f"restore {name}", reason=f"it is not in the project {self._project}")

    def _require_made_by(self, name: str, labels: Mapping[str, str], run_id: str) -> None:
        found = labels.get(RUN_LABEL, "")
        if not run_id or found != run_id:
            reason = f"its label {RUN_LABEL} is {found or 'not there'}, not {run_id}: it is another's, and left alone"
            raise UndoError(attempted=f"delete {name}", reason=reason)
        if not is_allowed(labels):
            reason = f"it does not carry {ALLOWED_LABEL}={ALLOWED_VALUE}: no run has made it, and it is left alone"
            raise UndoError(attempted=f"delete {name}", reason=reason)

    def _request(self, service: str, method: str, resource: str, effect: Effect = Effect.READ) -> Request:
        return Request(service=service, method=method, resource=resource, effect=effect)


def _as_it_was(action: RestoreAutoscaling) -> str:
    return f"the autoscaling of node pool {action.name} is {'on' if action.enabled else 'off'} as it was"


def _is_as_it_was(pool: "NodePool", action: RestoreAutoscaling) -> bool:
    """Whether the autoscaling of a pool is that which an undo gives it."""
    found = pool.autoscaling
    bounds = ("min_node_count", "max_node_count", "total_min_node_count", "total_max_node_count")
    return bool(found.enabled) is action.enabled and all(getattr(found, name) == getattr(action, name) for name in bounds)
