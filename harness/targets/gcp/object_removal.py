"""Removes the objects of a run from a bucket: every version of each, by its generation, so that none stays and is billed.

Source: https://docs.cloud.google.com/storage/docs/deleting-objects (a generation that is named is deleted for good, but for soft deletion),
    https://docs.cloud.google.com/storage/docs/object-versioning.
"""

from harness.errors import BrokenHarnessError
from harness.targets.gcp.bucket import DELETED_DEADLINE_S, SERVICE, list_page
from harness.targets.gcp.calling import Caller, Effect, Page, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.failures import ResourceMissingError
from harness.targets.gcp.guard import require_run_owned, run_prefix

LISTED = "items(name,generation),nextPageToken"

Version = tuple[str, int]
"""Name and generation."""


def remove_objects(clients: Clients, caller: Caller, bucket: str, run_id: str) -> int:
    """Remove all that lies below a run's prefix; how many versions were there.

    Those first that lie deepest, so that a mount that still stands sees no directory without its files.

    Raises:
        NotAllowedError: When one is listed that is not the run's.
        BrokenHarnessError: When some are there still: they must not be forgotten.
        CallError: When they cannot be listed, or deleted.
    """
    count = 0
    for version in sorted(_versions(clients, caller, bucket, run_id), reverse=True):
        require_run_owned(version[0], run_id)
        count += _delete(clients, caller, bucket, version)
    still = len(_versions(clients, caller, bucket, run_id))
    if still:
        where = f"gs://{bucket}/{run_prefix(run_id)}"
        raise BrokenHarnessError(f"{still} objects below {where} are there still after they were deleted; run `harness clean` again")
    return count


def _versions(clients: Clients, caller: Caller, bucket: str, run_id: str) -> list[Version]:
    prefix = run_prefix(run_id)

    def fetch(token: str, timeout_s: float) -> Page[Version]:
        found = list_page(clients.storage, bucket, token, timeout_s, prefix=prefix, versions=True, fields=LISTED)
        page = next(found.pages, ())
        return Page(items=[(blob.name, int(blob.generation or 0)) for blob in page], token=found.next_page_token or "")

    request = Request(service=SERVICE, method="objects.list", resource=f"gs://{bucket}/{prefix}")
    return list(caller.pages(request, fetch))


def _delete(clients: Clients, caller: Caller, bucket: str, version: Version) -> bool:
    name, generation = version
    blob = clients.storage.bucket(bucket).blob(name, generation=generation)
    request = Request(service=SERVICE, method="objects.delete", resource=f"gs://{bucket}/{name}", effect=Effect.IDEMPOTENT)
    try:
        caller.call(request, lambda timeout_s: blob.delete(timeout=timeout_s, retry=None), deadline_s=DELETED_DEADLINE_S)
    except ResourceMissingError:
        return False
    return True
