"""The object that a lock of a project is: one name in a bucket, written under generation preconditions."""

from typing import Protocol

from harness.targets.gcp.calling import Caller, Effect, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.failures import PreconditionError, ResourceMissingError
from harness.targets.gcp.lock_holders import Stored

READS_MAX = 10
"""Each time somebody else changed it in between; they take turns of ten seconds at least."""


def lock_name(project: str) -> str:
    """The object that locks a project."""
    return f"harness/locks/{project.replace(':', '_')}.json"


class LockObject(Protocol):
    """One object, in a bucket or in a test."""

    @property
    def where(self) -> str:
        """Its full name, for a person."""
        ...

    def read(self) -> Stored | None:
        """What is there; None: nothing."""
        ...

    def write(self, data: bytes, *, if_generation: int) -> int:
        """Write it and return its generation, if it has that generation still (0: is not there).

        Raises:
            PreconditionError: When it has not.
            CallError: When nobody knows whether it was written, or for any other reason.
        """
        ...

    def delete(self, *, if_generation: int) -> None:
        """Delete it, if it has that generation still.

        Raises:
            PreconditionError: When it has not.
            ResourceMissingError: When it is not there.
        """
        ...


class BucketLockObject:
    """The lock object in a bucket."""

    def __init__(self, clients: Clients, caller: Caller, bucket: str, name: str) -> None:
        self._blob = clients.storage.bucket(bucket).blob(name)
        self._clients, self._caller, self._bucket, self._name = clients, caller, bucket, name

    @property
    def where(self) -> str:
        """See ``LockObject``."""
        return f"gs://{self._bucket}/{self._name}"

    def read(self) -> Stored | None:
        """See ``LockObject``. Generation and content are of one answer's moment: the content of that generation is asked for."""
        bucket = self._clients.storage.bucket(self._bucket)

        def send(timeout_s: float) -> Stored | None:
            blob = bucket.get_blob(self._name, timeout=timeout_s, retry=None)
            if blob is None:
                return None
            data = blob.download_as_bytes(if_generation_match=blob.generation, timeout=timeout_s, retry=None)
            return Stored(data, int(blob.generation), blob.updated)

        for _ in range(READS_MAX):
            try:
                return self._caller.call(self._request("objects.get"), send)
            except (ResourceMissingError, PreconditionError):  # it was freed, or renewed, between the two
                continue
        return None

    def write(self, data: bytes, *, if_generation: int) -> int:
        """See ``LockObject``."""

        def send(timeout_s: float) -> int:
            self._blob.upload_from_string(
                data, content_type="application/json", if_generation_match=if_generation, timeout=timeout_s, retry=None
            )
            return int(self._blob.generation)

        return self._caller.call(self._request("objects.insert", Effect.IDEMPOTENT), send)

    def delete(self, *, if_generation: int) -> None:
        """See ``LockObject``."""
        request = self._request("objects.delete", Effect.IDEMPOTENT)
        # not the blob that was written: the client would ask for the generation of its last answer, and a renewal's may have been lost
        blob = self._clients.storage.bucket(self._bucket).blob(self._name, generation=if_generation)
        self._caller.call(request, lambda timeout_s: blob.delete(if_generation_match=if_generation, timeout=timeout_s, retry=None))

    def _request(self, method: str, effect: Effect = Effect.READ) -> Request:
        return Request(service="storage.googleapis.com", method=method, resource=self.where, effect=effect)
