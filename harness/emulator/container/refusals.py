"""What Kubernetes Engine refuses, in its words.

Source: messages quoted in public issues; where none was found the sentence is assumed, and says so.
"""

from harness.emulator.container.names import Name
from harness.emulator.failures import ApiError
from harness.emulator.project import Projects, ProjectState

DOMAIN = "container.googleapis.com"


def not_found(name: Name) -> ApiError:
    """There is no such cluster, node pool or operation."""
    return ApiError("NOT_FOUND", f"Not found: {name.path}.", reason="notFound")


def already_exists(name: Name) -> ApiError:
    """There is one of that name."""
    return ApiError("ALREADY_EXISTS", f"Already exists: {name.path}.", reason="alreadyExists")


def busy(operation: str) -> ApiError:
    """Another operation works on the cluster; there is one at a time."""
    return ApiError(
        "FAILED_PRECONDITION",
        f"Cluster is running incompatible operation {operation}.",
        reason="CLUSTER_ALREADY_HAS_OPERATION",
        domain=DOMAIN,
    )


def invalid(message: str) -> ApiError:
    """A field has no possible value; the words are assumed."""
    return ApiError("INVALID_ARGUMENT", message, reason="badRequest")


def stale_labels() -> ApiError:
    """The labels are not those that the caller has seen; the words are assumed."""
    return ApiError("FAILED_PRECONDITION", "Labels could not be set due to fingerprint mismatch.", reason="failedPrecondition")


def stale_etag(name: Name) -> ApiError:
    """The node pool is not as the caller has seen it; the words are assumed."""
    return ApiError("ABORTED", f"The etag of {name.path} is not the one of the request.", reason="aborted")


def not_cancellable(operation: str) -> ApiError:
    """Making a node pool, for one, cannot be cancelled; the words are assumed."""
    return ApiError("FAILED_PRECONDITION", f"Operation {operation} cannot be cancelled.", reason="failedPrecondition")


def short_of_quota(quota: str, *, wanted: float, limit: float, free: float, project: str) -> ApiError:
    """A quota of the region does not suffice: refused at once, as a permission that is missing."""
    return ApiError(
        "PERMISSION_DENIED",
        f"Insufficient regional quota to satisfy request: resource \"{quota}\": request requires '{wanted:.1f}' and is short "
        f"'{wanted - free:.1f}'. project has a quota of '{limit:.1f}' with '{free:.1f}' available. View and manage quotas at "
        f"https://console.cloud.google.com/iam-admin/quotas?usage=USED&project={project}.",
        reason="forbidden",
    )


def require_permission(projects: Projects, permission: str, name: Name) -> ProjectState:
    """The project, if the caller has the permission.

    Raises:
        ApiError: PERMISSION_DENIED in the words of Kubernetes Engine.
    """
    try:
        return projects.require(permission, name.path)
    except ApiError as error:
        raise ApiError(
            error.code,
            f'Required "{permission}" permission(s) for "{name.path}".',
            reason=error.reason,
            domain=error.domain,
            metadata=error.metadata,
        ) from error
