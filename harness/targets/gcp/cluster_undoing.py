"""Takes back what faults did inside a GKE cluster."""

from collections.abc import Iterator

from harness.errors import UndoError
from harness.targets.gcp.calling import Caller, Request
from harness.targets.gcp.cluster_api import ClusterApi, api_of, path_of
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.failures import ConflictError, ResourceMissingError
from harness.undo import DeleteObject, Reactivate, RestoreInCluster, RestoreQuota, Uncordon

QUEUES = "kueue.x-k8s.io/v1beta1"

WORKLOADS = "kueue.x-k8s.io/v1beta2"
"""In v1beta1 a rule of the schema refuses every change of an admitted workload without a priority class. Seen with Kueue 0.17.0."""

CHANGES_MAX = 5
"""Somebody else may change a queue between our look and our change: look again."""

GONE_S = 120.0
ASKED_EVERY_S = 2.0


def restore_in_cluster(clients: Clients, caller: Caller, action: RestoreInCluster) -> str:
    """Do one action, and say what was done; harmless twice.

    Raises:
        UndoError: When it could not be done, or was not seen.
        CallError: When Kubernetes Engine or the cluster does not answer, or refuses.
    """
    request = Request(service="container.googleapis.com", method="ClusterManager.GetCluster", resource=action.cluster)
    asked = {"name": action.cluster}
    try:
        cluster = caller.call(request, lambda timeout_s: clients.clusters.get_cluster(request=asked, retry=None, timeout=timeout_s))
    except ResourceMissingError:
        return f"the cluster {action.cluster} is gone, and with it what was done to it"
    if action.uid and cluster.id != action.uid:
        return f"the cluster {action.cluster} is another one by now, to which nothing was done"
    return act(api_of(clients, caller, cluster, action.cluster), caller, action.action)


def act(api: ClusterApi, caller: Caller, action: Uncordon | DeleteObject | RestoreQuota | Reactivate) -> str:
    """Do one action on a cluster.

    Raises:
        UndoError: When it could not be done, or was not seen.
    """
    match action:
        case Uncordon():
            return _uncordon(api, action.node)
        case DeleteObject():
            return _delete(api, caller, action)
        case RestoreQuota():
            return _restore_quota(api, action)
        case Reactivate():
            return _reactivate(api, action)


def _uncordon(api: ClusterApi, node: str) -> str:
    try:
        api.patch(path_of("v1", "nodes", "", node), {"spec": {"unschedulable": None}})
    except ResourceMissingError:
        return f"node {node} is gone"
    return f"node {node} is schedulable"


def _reactivate(api: ClusterApi, action: Reactivate) -> str:
    try:
        api.patch(path_of(WORKLOADS, "workloads", action.namespace, action.name), {"spec": {"active": True}})
    except ResourceMissingError:
        return f"workload {action.name} is gone"
    return f"workload {action.name} is active"


def _delete(api: ClusterApi, caller: Caller, action: DeleteObject) -> str:
    path = path_of(action.api_version, action.resource, action.namespace, action.name)
    end_s = caller.clock.monotonic_s() + GONE_S
    try:
        api.delete(path)
        while caller.clock.monotonic_s() < end_s:
            api.get(path)
            caller.clock.sleep(ASKED_EVERY_S)
    except ResourceMissingError:
        return f"{action.resource} {action.name} is gone"
    raise UndoError(attempted=f"delete {path}", reason=f"it is still there after {GONE_S:g} s")


def _restore_quota(api: ClusterApi, action: RestoreQuota) -> str:
    path = path_of(QUEUES, "clusterqueues", "", action.queue)
    for attempt in range(1, CHANGES_MAX + 1):
        try:
            found = api.get(path)
            stands = _quota_of(found, action)
            if stands and (why := action.why_left(stands)):
                return why
            groups = _with_quota(found, action)
            if groups is None:
                return f"no quota to restore: queue {action.queue} has no flavor {action.flavor} with {action.resource}"
            api.patch(path, {"metadata": {"resourceVersion": _version(found)}, "spec": {"resourceGroups": groups}})
        except ResourceMissingError:
            return f"no quota to restore: queue {action.queue} is gone"
        except ConflictError:
            if attempt == CHANGES_MAX:
                raise
        else:
            break
    return f"the quota of flavor {action.flavor} is {action.quota} again"


def _quota_of(queue: dict[str, object], action: RestoreQuota) -> str:
    """The quota that stands there now; empty where there is no such flavor and resource."""
    return next((str(entry.get("nominalQuota", "")) for entry in _entries(queue, action)), "")


def _with_quota(queue: dict[str, object], action: RestoreQuota) -> list[object] | None:
    """The resource groups with the quota as it was; None where there is no such flavor and resource."""
    entries = list(_entries(queue, action))
    for entry in entries:
        entry["nominalQuota"] = action.quota
    spec = queue.get("spec")
    groups = spec.get("resourceGroups") if isinstance(spec, dict) else None
    return groups if entries and isinstance(groups, list) else None


def _entries(queue: dict[str, object], action: RestoreQuota) -> Iterator[dict[str, object]]:
    """Where the quota stands in the specification of a queue."""
    spec = queue.get("spec")
    groups = spec.get("resourceGroups") if isinstance(spec, dict) else None
    for group in groups if isinstance(groups, list) else ():
        for flavor in group.get("flavors", ()):
            for resource in flavor.get("resources", ()) if flavor.get("name") == action.flavor else ():
                if resource.get("name") == action.resource:
                    yield resource


def _version(queue: dict[str, object]) -> str:
    metadata = queue.get("metadata")
    return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""
