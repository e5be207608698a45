"""What Compute Engine answers when it does not do what was asked, in its own words.

Source: https://docs.cloud.google.com/compute/docs/troubleshooting/troubleshooting-errors-and-validation, and what its clients show.
"""

from harness.emulator.failures import ApiError

DOMAIN = "global"


def not_found(resource: str) -> ApiError:
    """It is not there."""
    return ApiError("NOT_FOUND", f"The resource '{resource}' was not found", reason="notFound", domain=DOMAIN)


def already_exists(resource: str) -> ApiError:
    """It is there."""
    return ApiError("ALREADY_EXISTS", f"The resource '{resource}' already exists", reason="alreadyExists", domain=DOMAIN)


def permission_required(permission: str, resource: str) -> ApiError:
    """The caller lacks a permission, or the project is not there."""
    message = f"Required '{permission}' permission for '{resource}'"
    return ApiError("PERMISSION_DENIED", message, reason="forbidden", domain=DOMAIN, metadata={"permission": permission})


def invalid_field(field: str, value: object, problem: str) -> ApiError:
    """A field has no possible value."""
    return ApiError("INVALID_ARGUMENT", f"Invalid value for field '{field}': '{value}'. {problem}", reason="invalid", domain=DOMAIN)


def not_ready(resource: str) -> ApiError:
    """The instance is in no state for it."""
    return ApiError("FAILED_PRECONDITION", f"The resource '{resource}' is not ready", reason="resourceNotReady", domain=DOMAIN)


def protected(resource: str) -> ApiError:
    """It is protected against deletion."""
    message = f"Invalid resource usage: 'Resource cannot be deleted if it's protected against deletion. Resource: {resource}'."
    return ApiError("FAILED_PRECONDITION", message, reason="invalidResourceUsage", domain=DOMAIN)


def labels_changed() -> ApiError:
    """Somebody else has changed the labels meanwhile."""
    message = "Labels fingerprint either invalid or resource labels have changed"
    return ApiError("FAILED_PRECONDITION", message, reason="conditionNotMet", domain=DOMAIN, http_status=412)


def global_quota_exceeded(quota: str, limit: float) -> ApiError:
    """A quota of the whole project is used up."""
    return ApiError(
        "RESOURCE_EXHAUSTED",
        f"Quota '{quota}' exceeded.  Limit: {limit:.1f} globally.",
        reason="QUOTA_EXCEEDED",
        domain="compute.googleapis.com",
        metadata={"quota_metric": quota, "quota_limit_value": f"{limit:g}"},
    )
