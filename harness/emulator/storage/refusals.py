"""What Cloud Storage answers when it does not do what was asked.

Its JSON API uses statuses of HTTP that no ``google.rpc.Code`` stands for: 412, 304, 416.

Source: https://docs.cloud.google.com/storage/docs/json_api/v1/status-codes
"""

from harness.emulator.failures import ApiError

DOMAIN = "global"


def no_such_bucket() -> ApiError:
    """The bucket is not there."""
    return ApiError("NOT_FOUND", "The specified bucket does not exist.", reason="notFound", domain=DOMAIN)


def no_such_object(bucket: str, name: str) -> ApiError:
    """The object, or the generation asked for, is not there."""
    return ApiError("NOT_FOUND", f"No such object: {bucket}/{name}", reason="notFound", domain=DOMAIN)


def conflict(message: str) -> ApiError:
    """What is there forbids it."""
    return ApiError("ALREADY_EXISTS", message, reason="conflict", domain=DOMAIN)


def taken(*, is_own: bool) -> ApiError:
    """A bucket of the name is there already: names are unique in the world."""
    if is_own:
        return conflict("Your previous request to create the named bucket succeeded and you already own it.")
    return conflict(
        "The requested bucket name is not available. The bucket namespace is shared by all users of the system. "
        "Please select a different name and try again."
    )


def condition_not_met() -> ApiError:
    """A precondition does not hold."""
    message = "At least one of the pre-conditions you specified did not hold."
    return ApiError("FAILED_PRECONDITION", message, reason="conditionNotMet", domain=DOMAIN, http_status=412)


def not_modified() -> ApiError:
    """A read that was only wanted of something newer."""
    return ApiError("FAILED_PRECONDITION", "Not Modified", reason="notModified", domain=DOMAIN, http_status=304)


def range_not_satisfiable() -> ApiError:
    """The object has no such bytes."""
    message = "Request range not satisfiable"
    return ApiError("OUT_OF_RANGE", message, reason="requestedRangeNotSatisfiable", domain=DOMAIN, http_status=416)


def invalid(message: str) -> ApiError:
    """A parameter, name or body that cannot be taken."""
    return ApiError("INVALID_ARGUMENT", message, reason="invalid", domain=DOMAIN)


def required(parameter: str) -> ApiError:
    """A parameter is missing."""
    return ApiError("INVALID_ARGUMENT", f"Required parameter: {parameter}", reason="required", domain=DOMAIN)


def not_covered(what: str) -> ApiError:
    """Google can do this; the emulator cannot, and does not pretend to."""
    return ApiError("UNIMPLEMENTED", f"the emulator does not cover {what}", reason="notImplemented", domain=DOMAIN)
