"""Kubernetes Engine v1 over gRPC."""

from collections.abc import Callable, Sequence
from typing import Any

from google.cloud import container_v1 as api
from google.protobuf import empty_pb2

from harness.emulator.container.checks import check_autoscaling, check_name, check_pool, check_size, pools_of, require_quota
from harness.emulator.container.clusters import Cluster, new_cluster, new_pool, shown_pool
from harness.emulator.container.durations import Durations
from harness.emulator.container.engine import Engine
from harness.emulator.container.groups import InstanceGroups, NamedInstances
from harness.emulator.container.names import EVERYWHERE, Name, name_in, told_name
from harness.emulator.container.operations import FAMILY, Course
from harness.emulator.container.pools import Pool
from harness.emulator.container.refusals import invalid, not_cancellable, not_found, require_permission, stale_etag, stale_labels
from harness.emulator.container.updates import is_upgrade, updated
from harness.emulator.failures import ApiError
from harness.emulator.operations import Operation
from harness.emulator.project import ProjectState
from harness.emulator.service import CallContext, Method, Route
from harness.emulator.world import World

_PREFIX = "/google.container.v1.ClusterManager/"


class ContainerService:
    """Kubernetes Engine.

    Args:
        world: What the services share.
        groups: Makes the instances of node pools; None: they are there in name only.
        durations: How long operations take.

    Attributes:
        engine: Acts on clusters; for tests, and for what the platform does by itself.
        groups: As given.
    """

    def __init__(self, world: World, groups: InstanceGroups | None = None, durations: Durations | None = None) -> None:
        self.groups = NamedInstances() if groups is None else groups
        self.engine = Engine(world, self.groups, durations or Durations())
        self._world = world

    def methods(self) -> Sequence[Method]:
        """See ``Service``."""
        reads = [
            self._method(api.ListClustersRequest, self._list_clusters),
            self._method(api.GetClusterRequest, self._get_cluster),
            self._method(api.ListNodePoolsRequest, self._list_pools),
            self._method(api.GetNodePoolRequest, self._get_pool),
            self._method(api.ListOperationsRequest, self._list_operations),
            self._method(api.GetOperationRequest, self._get_operation),
        ]
        writes = [
            self._method(api.CreateClusterRequest, self._create_cluster, is_write=True),
            self._method(api.DeleteClusterRequest, self._delete_cluster, is_write=True),
            self._method(api.SetLabelsRequest, self._set_labels, is_write=True),
            self._method(api.CreateNodePoolRequest, self._create_pool, is_write=True),
            self._method(api.DeleteNodePoolRequest, self._delete_pool, is_write=True),
            self._method(api.SetNodePoolSizeRequest, self._set_size, is_write=True),
            self._method(api.SetNodePoolAutoscalingRequest, self._set_autoscaling, is_write=True),
            self._method(api.UpdateNodePoolRequest, self._update_pool, is_write=True),
            self._method(api.CancelOperationRequest, self._cancel, is_write=True),
        ]
        return reads + writes

    def routes(self) -> Sequence[Route]:
        """Over REST it speaks nothing."""
        return ()

    def close(self) -> None:
        """Nothing runs."""

    def _method(self, request: type[Any], handle: Callable[[Any, Name], Any], *, is_write: bool = False) -> Method:
        def answer(asked: Any, context: CallContext) -> Any:  # noqa: ARG001
            return handle(asked, name_in(asked))

        name = _PREFIX + request.__name__.removesuffix("Request")
        return Method(name=name, request=request, handle=answer, is_write=is_write, resource=told_name)

    def _list_clusters(self, request: api.ListClustersRequest, place: Name) -> api.ListClustersResponse:  # noqa: ARG002
        self._require("container.clusters.list", place)
        with self.engine.lock:
            return api.ListClustersResponse(clusters=[cluster.shown(self.groups) for cluster in self.engine.registry.clusters(place)])

    def _get_cluster(self, request: api.GetClusterRequest, name: Name) -> api.Cluster:  # noqa: ARG002
        self._require("container.clusters.get", name)
        with self.engine.lock:
            return self.engine.registry.cluster(name).shown(self.groups)

    def _create_cluster(self, request: api.CreateClusterRequest, place: Name) -> api.Operation:
        asked = request.cluster
        check_name("cluster", asked.name)
        name = Name(project=place.project, location=place.location, cluster=asked.name)
        project = self._require("container.clusters.create", place)
        pools = pools_of(asked)
        with self.engine.lock:
            draft = new_cluster(name, asked, "")
            require_quota(project, self.groups, [need for pool in pools for need in _needs(new_pool(name, pool, draft))])
            return self._shown(self.engine.create(name, asked, pools))

    def _delete_cluster(self, request: api.DeleteClusterRequest, name: Name) -> api.Operation:  # noqa: ARG002
        self._require("container.clusters.delete", name)
        with self.engine.lock:
            return self._shown(self.engine.delete(self.engine.registry.cluster(name)))

    def _set_labels(self, request: api.SetLabelsRequest, name: Name) -> api.Operation:
        self._require("container.clusters.update", name)
        with self.engine.lock:
            cluster = self.engine.registry.cluster(name)
            if request.label_fingerprint != cluster.label_fingerprint:
                raise stale_labels()
            return self._shown(self.engine.label(cluster, dict(request.resource_labels)))

    def _list_pools(self, request: api.ListNodePoolsRequest, name: Name) -> api.ListNodePoolsResponse:  # noqa: ARG002
        self._require("container.clusters.get", name)
        with self.engine.lock:
            return api.ListNodePoolsResponse(node_pools=[shown_pool(pool) for pool in self.engine.registry.cluster(name).pools.values()])

    def _get_pool(self, request: api.GetNodePoolRequest, name: Name) -> api.NodePool:  # noqa: ARG002
        self._require("container.clusters.get", name)
        with self.engine.lock:
            return shown_pool(self.engine.registry.pool(name))

    def _create_pool(self, request: api.CreateNodePoolRequest, name: Name) -> api.Operation:
        check_pool(request.node_pool)
        project = self._require("container.clusters.update", name)
        with self.engine.lock:
            cluster = self.engine.registry.cluster(name)
            require_quota(project, self.groups, _needs(new_pool(name, request.node_pool, cluster)))
            return self._shown(self.engine.create_pool(cluster, request.node_pool))

    def _delete_pool(self, request: api.DeleteNodePoolRequest, name: Name) -> api.Operation:  # noqa: ARG002
        with self.engine.lock:
            cluster, pool = self._writable(name)
            return self._shown(self.engine.delete_pool(cluster, pool))

    def _set_size(self, request: api.SetNodePoolSizeRequest, name: Name) -> api.Operation:
        check_size(request.node_count)
        project = self._require("container.clusters.update", name)
        with self.engine.lock:
            cluster, pool = self._writable(name)
            if pool.is_queued:
                raise invalid("node_count: a node pool with queued provisioning gets its nodes by provisioning requests.")
            more = max(0, request.node_count - pool.size)
            require_quota(project, self.groups, [(group, more) for group in pool.groups()])
            return self._shown(self.engine.resize(cluster, pool, request.node_count))

    def _set_autoscaling(self, request: api.SetNodePoolAutoscalingRequest, name: Name) -> api.Operation:
        check_autoscaling(request.autoscaling)
        with self.engine.lock:
            cluster, pool = self._writable(name)
            if pool.is_queued and not request.autoscaling.enabled:
                raise invalid("node_pool.queued_provisioning: autoscaling must be enabled.")

            def change() -> None:
                pool.message.autoscaling = request.autoscaling

            return self._shown(self.engine.change_pool("UPDATE_CLUSTER", cluster, pool, change))

    def _update_pool(self, request: api.UpdateNodePoolRequest, name: Name) -> api.Operation:
        with self.engine.lock:
            cluster, pool = self._writable(name)
            if request.etag not in ("", pool.etag):
                raise stale_etag(name)
            wanted = updated(pool.message, request)

            def change() -> None:
                pool.message, pool.zones = wanted, list(wanted.locations)

            is_new = is_upgrade(request)
            kind = "UPGRADE_NODES" if is_new else "UPDATE_CLUSTER"
            return self._shown(self.engine.change_pool(kind, cluster, pool, change, is_cancellable=is_new))

    def _list_operations(self, request: api.ListOperationsRequest, place: Name) -> api.ListOperationsResponse:  # noqa: ARG002
        self._require("container.operations.list", place)
        parent = f"projects/{place.project}" if place.location == EVERYWHERE else place.parent
        found = self._world.operations.below(parent, family=FAMILY)
        return api.ListOperationsResponse(operations=[self._shown(operation) for operation in found])

    def _get_operation(self, request: api.GetOperationRequest, name: Name) -> api.Operation:  # noqa: ARG002
        self._require("container.operations.get", name)
        return self._shown(self._operation(name))

    def _cancel(self, request: api.CancelOperationRequest, name: Name) -> empty_pb2.Empty:  # noqa: ARG002
        self._require("container.operations.update", name)
        operation = self._operation(name)
        if operation.on_cancel is None or operation.is_done:
            raise not_cancellable(name.operation)
        operation.on_cancel()
        self._world.operations.fail(operation, ApiError("CANCELLED", "Operation was cancelled."))
        return empty_pb2.Empty()

    def _operation(self, name: Name) -> Operation:
        found = self._world.operations.find(f"{name.parent}/operations/{name.operation}")
        if found is None or not isinstance(found.metadata, Course):
            raise not_found(name)
        return found

    def _writable(self, name: Name) -> tuple[Cluster, Pool]:
        self._require("container.clusters.update", name)
        return self.engine.registry.cluster(name), self.engine.registry.pool(name)

    def _require(self, permission: str, name: Name) -> ProjectState:
        return require_permission(self._world.projects, permission, name)

    def _shown(self, operation: Operation) -> api.Operation:
        return self.engine.works.shown(operation)


def _needs(pool: Pool) -> list[tuple[Any, int]]:
    return [(group, pool.size) for group in pool.groups()]
