"""Reads the real things that a plan is about: the job, its bucket, the cluster and its pools, and who may do what. Nothing is changed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.targets.gcp.calling import Caller, Request, Send
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.failures import CallError, ResourceMissingError
from harness.targets.gcp.guard import is_allowed
from harness.targets.gcp.job_volumes import volume_problems
from harness.targets.gcp.lock_places import LIST_PERMISSION, ForeignLockError, LockPlaces, UnseenLocksError
from harness.targets.gcp.permissions import BUCKET_PERMISSIONS, JOB_PERMISSIONS, UNASKED_CLUSTER_PERMISSIONS, UNASKED_PERMISSIONS
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Permission, Quota, Resource
from harness.targets.gcp.pool_nodes import nodes_by_zone
from harness.targets.gcp.resource_facts import JobShape, bucket_facts, cluster_facts, job_facts, pool_facts, pool_size_max, shape_of

if TYPE_CHECKING:
    from google.cloud.container_v1 import NodePool

RUN_SERVICE = "run.googleapis.com"
STORAGE_SERVICE = "storage.googleapis.com"
CONTAINER_SERVICE = "container.googleapis.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What there is.

    Attributes:
        resources: Each with its facts.
        permissions: Each with whether it is held.
        job: What an adopted job is; None: it would be made.
        pool_sizes: Nodes that each pool has or may have, by name.
        problems: What could not be read, and why.
        quotas: Of GPUs.
    """

    resources: tuple[Resource, ...]
    permissions: tuple[Permission, ...]
    job: JobShape | None
    pool_sizes: Mapping[str, int]
    problems: tuple[str, ...] = ()
    quotas: tuple[Quota, ...] = ()


class Resolver:
    """Reads one place."""

    def __init__(self, clients: Clients, caller: Caller, place: Place) -> None:
        self._clients, self._caller, self._place = clients, caller, place
        self._resources: list[Resource] = []
        self._permissions: list[Permission] = []
        self._problems: list[str] = []
        self._sizes: dict[str, int] = {}

    def resolve(self) -> Resolved:
        """Read everything; what cannot be read is a problem of the plan, so that all of them are told at once."""
        shape = None if self._place.is_of_cluster else self._job()
        self._bucket(self._place.bucket)
        if self._place.locks_in != self._place.bucket:
            self._bucket(self._place.locks_in)
        self._locks()
        if self._place.cluster:
            self._cluster()
        self._permissions += [
            Permission(resource=f"projects/{self._place.project}", name=name, is_held=None, why="no service that is used here tells")
            for name in (*UNASKED_PERMISSIONS, *(UNASKED_CLUSTER_PERMISSIONS if self._place.cluster else ()))
        ]
        return Resolved(
            resources=tuple(self._resources),
            permissions=tuple(self._permissions),
            job=shape,
            pool_sizes=self._sizes,
            problems=tuple(self._problems),
        )

    def _job(self) -> JobShape | None:
        name = self._place.job_name
        jobs = self._clients.jobs
        request = Request(service=RUN_SERVICE, method="Jobs.GetJob", resource=name)
        try:
            job = self._caller.call(request, lambda timeout_s: jobs.get_job(request={"name": name}, retry=None, timeout=timeout_s))
        except ResourceMissingError:
            self._resources.append(Resource(kind="job", name=name, action="make" if self._place.image else "missing"))
            return None
        except CallError as error:
            self._problems.append(str(error))
            return None
        self._resources.append(Resource(kind="job", name=name, action="adopt", facts=job_facts(job)))
        self._problems += volume_problems(job)
        ask = Request(service=RUN_SERVICE, method="Jobs.TestIamPermissions", resource=name)
        wanted = {"resource": name, "permissions": list(JOB_PERMISSIONS)}
        self._ask(
            ask,
            JOB_PERMISSIONS,
            lambda timeout_s: jobs.test_iam_permissions(request=wanted, retry=None, timeout=timeout_s).permissions,
        )
        return shape_of(job)

    def _bucket(self, name: str) -> None:
        bucket = self._clients.storage.bucket(name)
        request = Request(service=STORAGE_SERVICE, method="buckets.get", resource=f"b/{name}")
        try:
            self._caller.call(request, lambda timeout_s: bucket.reload(timeout=timeout_s, retry=None))
        except ResourceMissingError:
            self._resources.append(Resource(kind="bucket", name=name, action="missing"))
            return
        except CallError as error:
            self._problems.append(str(error))
            return
        facts = bucket_facts(bucket._properties)
        self._resources.append(Resource(kind="bucket", name=name, action="adopt", facts=facts))
        ask = Request(service=STORAGE_SERVICE, method="buckets.testIamPermissions", resource=f"b/{name}")
        self._ask(
            ask,
            BUCKET_PERMISSIONS,
            lambda timeout_s: bucket.test_iam_permissions(list(BUCKET_PERMISSIONS), timeout=timeout_s, retry=None),
        )

    def _locks(self) -> None:
        """Whether another harness on the project would be seen, whatever bucket it works with."""
        places = LockPlaces(self._clients, self._caller, self._place)
        try:
            places.others()
        except (CallError, ForeignLockError, UnseenLocksError) as error:
            self._problems.append(str(error))
        is_needed = not self._place.lock_bucket
        held = places.are_seen if places.are_seen or is_needed else None
        why = "" if held is not None else f"buckets may not be listed, so only a lock in {self._place.locks_in} is seen"
        self._permissions.append(Permission(resource=f"projects/{self._place.project}", name=LIST_PERMISSION, is_held=held, why=why))

    def _cluster(self) -> None:
        name, clusters = self._place.cluster_name, self._clients.clusters
        request = Request(service=CONTAINER_SERVICE, method="ClusterManager.GetCluster", resource=name)
        try:
            cluster = self._caller.call(
                request, lambda timeout_s: clusters.get_cluster(request={"name": name}, retry=None, timeout=timeout_s)
            )
        except ResourceMissingError:
            self._resources.append(Resource(kind="cluster", name=name, action="missing"))
            return
        except CallError as error:
            self._problems.append(str(error))
            return
        self._resources.append(Resource(kind="cluster", name=name, action="adopt", facts=cluster_facts(cluster)))
        for pool in cluster.node_pools:
            if not is_allowed(dict(pool.config.resource_labels)):
                continue  # left alone: a fault on it is over every limit
            full = f"{name}/nodePools/{pool.name}"
            self._resources.append(Resource(kind="node-pool", name=full, action="adopt", facts=pool_facts(pool)))
            self._sizes[pool.name] = max(pool_size_max(pool), self._nodes_there(full, pool))

    def _nodes_there(self, name: str, pool: "NodePool") -> int:
        """Nodes that a pool has now: more than it was made with where its autoscaler has grown it, and was switched off since."""
        try:
            return sum(nodes_by_zone(self._clients, self._caller, name, pool).values())
        except CallError as error:
            self._problems.append(str(error))
            return 0

    def _ask(self, request: Request, names: Sequence[str], send: Send[Iterable[str]]) -> None:
        """Which permissions of a resource we hold; where nobody says, they are unknown."""
        try:
            held = frozenset(self._caller.call(request, send))
        except CallError as error:
            self._permissions += [Permission(resource=request.resource, name=name, is_held=None, why=str(error)) for name in names]
        else:
            self._permissions += [Permission(resource=request.resource, name=name, is_held=name in held) for name in names]
