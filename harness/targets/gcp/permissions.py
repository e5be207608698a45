"""The permissions that runs on a project need: those that a service tells us of, and those that only the calls themselves will."""

from harness.targets.gcp.lock_places import LIST_PERMISSION

JOB_PERMISSIONS = ("run.jobs.get", "run.jobs.run", "run.jobs.delete")
"""Asked of the adopted job, and used on the run's own one: what is held on the project is held on each job, so what lacks here lacks.

Source: https://cloud.google.com/run/docs/reference/iam/permissions, https://cloud.google.com/iam/docs/resource-hierarchy-access-control.
"""

BUCKET_PERMISSIONS = (
    "storage.buckets.get",
    "storage.objects.create",
    "storage.objects.delete",
    "storage.objects.get",
    "storage.objects.list",
    "storage.objects.update",
)
"""Source: https://cloud.google.com/storage/docs/access-control/iam-permissions."""

READING_VERBS = ("get", "list")


def is_of_writing(permission: str) -> bool:
    """Whether a permission lets somebody change something; who only makes plans needs none of those."""
    return permission.rpartition(".")[2] not in READING_VERBS


PROJECT_PERMISSIONS = (LIST_PERMISSION,)
"""Of the project; whether it is held is told by using it."""

UNASKED_PERMISSIONS = (
    "run.jobs.create",
    "run.jobs.list",
    "iam.serviceAccounts.actAs",
    "run.executions.get",
    "run.executions.list",
    "run.executions.cancel",
    "run.tasks.get",
    "run.tasks.list",
    "run.operations.get",
    "logging.logEntries.list",
    "logging.logEntries.create",
)
"""Of the project; which are held is told by the Resource Manager, that has no client here."""

UNASKED_CLUSTER_PERMISSIONS = (
    "container.clusters.get",
    "container.clusters.update",
    "container.operations.get",
    "compute.instances.get",
    "compute.instances.list",
    "compute.instances.delete",
    "compute.instances.reset",
    "compute.instances.simulateMaintenanceEvent",
    "compute.zoneOperations.get",
    *(f"container.namespaces.{verb}" for verb in ("get", "create", "update", "delete")),
    *(f"container.nodes.{verb}" for verb in ("get", "list", "update")),
    *(f"container.pods.{verb}" for verb in ("list", "getLogs", "delete", "evict")),
    *(f"container.jobs.{verb}" for verb in ("get", "list", "create", "delete")),
    *(f"container.resourceQuotas.{verb}" for verb in ("get", "create", "update", "delete")),
    *(f"container.{kind}.{verb}" for kind in ("configMaps", "services") for verb in ("create", "update")),
    "container.events.list",
    *(f"container.thirdPartyObjects.{verb}" for verb in ("get", "list", "create", "update", "delete")),
)
"""The last are of objects in the cluster, which its own roles (RBAC) may grant as well; third parties' are Kueue's and KubeRay's.

Source: https://cloud.google.com/compute/docs/access/iam-permissions, https://cloud.google.com/iam/docs/roles-permissions/container.
"""
