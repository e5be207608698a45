"""Where the lock of a project lies, and where others would have theirs: in any bucket of the project whose owner allows faults on it."""

from collections.abc import Iterator

from harness.errors import TargetUnavailableError
from harness.targets.gcp.calling import Caller, Page, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.failures import PermissionMissingError
from harness.targets.gcp.guard import is_allowed
from harness.targets.gcp.lock_objects import BucketLockObject, lock_name
from harness.targets.gcp.place import Place

LIST_PERMISSION = "storage.buckets.list"
"""Source: https://cloud.google.com/storage/docs/access-control/iam-permissions."""


class UnseenLocksError(TargetUnavailableError):
    """Nobody can tell whether somebody else has the project."""

    def __init__(self, *, project: str, reason: str) -> None:
        super().__init__(
            target="gcp",
            reason=f"whether somebody else uses project {project} cannot be seen: {reason}",
            advice=f"grant {LIST_PERMISSION} on the project, or name a bucket for the locks of all who use it: lock_bucket in [gcp]",
        )


class ForeignLockError(TargetUnavailableError):
    """A lock where nobody who uses the project would look."""

    def __init__(self, *, project: str, bucket: str) -> None:
        super().__init__(
            target="gcp",
            reason=f"bucket {bucket} is none of project {project}, so nobody else who uses the project looks for a lock in it",
            advice="name one of the project, labelled harness-chaos=allowed, as lock_bucket in [gcp]",
        )


class LockPlaces:
    """Of one place.

    Attributes:
        own: The object that is our lock.
        are_seen: Whether buckets could be listed when they were last; None: they were not.
    """

    def __init__(self, clients: Clients, caller: Caller, place: Place) -> None:
        self._clients, self._caller, self._place = clients, caller, place
        self.own = self._object(place.locks_in)
        self.are_seen: bool | None = None

    def others(self) -> list[BucketLockObject]:
        """The objects that would be others' locks. Where a bucket for locks is named and buckets may not be listed, there are none.

        Raises:
            UnseenLocksError: When buckets may not be listed, and none is named for locks.
            ForeignLockError: When our own is in no bucket of the project.
            CallError: When the buckets cannot be listed.
        """
        place = self._place
        try:
            labels = dict(self._buckets())
            self.are_seen = True
        except PermissionMissingError as error:
            self.are_seen = False
            if place.lock_bucket:
                return []
            raise UnseenLocksError(project=place.project, reason=str(error)) from error
        if place.locks_in not in labels:
            raise ForeignLockError(project=place.project, bucket=place.locks_in)
        return [self._object(name) for name, found in labels.items() if name != place.locks_in and is_allowed(found)]

    def _object(self, bucket: str) -> BucketLockObject:
        return BucketLockObject(self._clients, self._caller, bucket, lock_name(self._place.project))

    def _buckets(self) -> Iterator[tuple[str, dict[str, str]]]:
        project = self._place.project
        request = Request(service="storage.googleapis.com", method="buckets.list", resource=f"projects/{project}")

        def fetch(token: str, timeout_s: float) -> Page[tuple[str, dict[str, str]]]:
            found = self._clients.storage.list_buckets(
                project=project,
                page_token=token or None,
                fields="items(name,labels),nextPageToken",
                timeout=timeout_s,
                retry=None,
            )
            page = next(found.pages, ())
            return Page(items=[(bucket.name, dict(bucket.labels)) for bucket in page], token=found.next_page_token or "")

        return self._caller.pages(request, fetch)
