"""Objects below one prefix of a bucket, by generation; every call through the caller of the run."""

import base64
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.targets.gcp.calling import Caller, Effect, Page, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.failures import Failure, PreconditionError, ResourceMissingError, ServiceFailureError
from harness.targets.gcp.guard import require_allowed

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Client

SERVICE = "storage.googleapis.com"

LISTED = "items(name,generation,size,crc32c,updated),prefixes,nextPageToken"
"""Of a listing; nothing else of an object is looked at."""

PAGE_ITEMS = 1000

DELETED_DEADLINE_S = 60.0

CHUNK_BYTES = 8 << 20
"""Of an object that becomes a file, or the other way round: what is in memory at once, and read before anybody looks elsewhere."""

READS_MAX = 3
"""Of an object whose content is not what its checksum says: what damages it on the way each time is no accident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSeen:
    """An object as a listing shows it; ``name`` is relative to the prefix, ``crc32c`` empty where it does not say."""

    name: str
    generation: int
    size_bytes: int
    crc32c: str = ""


class Listing(Protocol):
    """Objects as Google's client lists them; ``prefixes`` are of the pages that were taken."""

    pages: "Iterator[Iterable[Blob]]"
    prefixes: Collection[str]
    next_page_token: str | None


def list_page(client: "Client", bucket: str, token: str, timeout_s: float, **asked: str | bool | None) -> Listing:
    """A listing from a page's token on, of which one page is taken; the next is a call of its own."""
    found: Listing = client.list_blobs(bucket, page_token=token or None, page_size=PAGE_ITEMS, timeout=timeout_s, retry=None, **asked)
    return found


class BucketPrefix:
    """What lies below a prefix; names are relative to it.

    Attributes:
        bucket: The bucket's name.
        prefix: Ends with a slash.
    """

    def __init__(self, client: "Client", caller: Caller, *, bucket: str, prefix: str) -> None:
        self._client, self._caller = client, caller
        self.bucket, self.prefix = bucket, prefix

    def below(self, name: str) -> "BucketPrefix":
        """A prefix in this one."""
        return BucketPrefix(self._client, self._caller, bucket=self.bucket, prefix=f"{self.prefix}{name}/")

    def list_objects(self, *, below: str = "", from_name: str = "") -> Iterator[ObjectSeen]:
        """All objects whose names begin with ``below``, by name; with ``from_name``, those from there on.

        Raises:
            CallError: When they cannot be listed.
        """
        start = f"{self.prefix}{from_name}" if from_name else None

        def fetch(token: str, timeout_s: float) -> Page[ObjectSeen]:
            asked = {"prefix": f"{self.prefix}{below}", "start_offset": start, "fields": LISTED}
            found = list_page(self._client, self.bucket, token, timeout_s, **asked)
            page = next(found.pages, ())
            items = [
                ObjectSeen(
                    name=blob.name.removeprefix(self.prefix),
                    generation=int(blob.generation or 0),
                    size_bytes=int(blob.size or 0),
                    crc32c=blob.crc32c or "",
                )
                for blob in page
            ]
            return Page(items=items, token=found.next_page_token or "")

        return self._caller.pages(self._request("objects.list", below), fetch)

    def list_folders(self, below: str, *, versions: bool = False) -> list[str]:
        """The names between ``below`` and the next slash; ``versions``: of objects that are not live any more, too.

        Raises:
            CallError: When they cannot be listed.
        """
        prefix = f"{self.prefix}{below}"

        def fetch(token: str, timeout_s: float) -> Page[str]:
            asked = {"prefix": prefix, "delimiter": "/", "versions": versions or None, "fields": LISTED}
            found = list_page(self._client, self.bucket, token, timeout_s, **asked)
            for _ in next(found.pages, ()):
                pass
            names = [name.removeprefix(prefix).rstrip("/") for name in found.prefixes]
            return Page(items=sorted(names), token=found.next_page_token or "")

        return list(self._caller.pages(self._request("objects.list", below), fetch))

    def read(self, name: str, *, generation: int = 0) -> bytes | None:
        """An object's content, of that very generation where one is named; None when it is not there, or is another by now.

        Raises:
            CallError: When it cannot be read.
        """
        blob = self._client.bucket(self.bucket).blob(f"{self.prefix}{name}")
        match = generation or None

        def send(timeout_s: float) -> bytes:
            content = blob.download_as_bytes(if_generation_match=match, timeout=timeout_s, retry=None, raw_download=True)
            return bytes(content)

        try:
            return self._caller.call(self._request("objects.get", name), send)
        except (ResourceMissingError, PreconditionError):
            return None

    def read_file(self, seen: ObjectSeen, path: Path, *, beat: Callable[[], None] = lambda: None) -> bool:
        """Read an object that was listed into a file, chunk by chunk, of that very generation; false when it is another by now, or gone.

        Args:
            seen: The object.
            path: Of the file.
            beat: Called after each chunk: what else must be looked at.

        Raises:
            CallError: When it cannot be read, or comes damaged again and again.
            OSError: When the file cannot be written.
        """
        for _ in range(READS_MAX):
            checksum = _Crc32c()
            try:
                with path.open("wb") as file:
                    for chunk in self._chunks(seen):
                        checksum.update(chunk)
                        file.write(chunk)
                        beat()
            except (ResourceMissingError, PreconditionError):
                return False
            if not seen.crc32c or checksum.text == seen.crc32c:
                return True
        failure = Failure(code="DATA_LOSS", message=f"what comes has another checksum than {seen.crc32c}, {READS_MAX} times")
        request = self._request("objects.get", seen.name)
        raise ServiceFailureError(service=SERVICE, method=request.method, resource=request.resource, failure=failure)

    def _chunks(self, seen: ObjectSeen) -> Iterator[bytes]:
        import requests

        blob = self._client.bucket(self.bucket).blob(f"{self.prefix}{seen.name}")
        for first in range(0, max(1, seen.size_bytes), CHUNK_BYTES):
            count = min(CHUNK_BYTES, seen.size_bytes - first)

            def send(timeout_s: float, first: int = first, count: int = count) -> bytes:
                place = {"start": first, "end": first + count - 1} if count else {}  # of nothing there is no range
                content = bytes(
                    blob.download_as_bytes(
                        **place, if_generation_match=seen.generation, timeout=timeout_s, retry=None, raw_download=True, checksum=None
                    )
                )
                if len(content) != count:
                    raise requests.exceptions.ChunkedEncodingError(f"{len(content)} bytes came of {count}")
                return content

            yield self._caller.call(self._request("objects.get", seen.name), send)

    def write(self, name: str, data: bytes, *, generation: int | None = None) -> int:
        """Write an object whole: over that very generation, over nothing (0), or over whatever is there (None).

        Returns:
            Its generation.

        Raises:
            PreconditionError: When another is there.
            CallError: When it cannot be written.
        """
        blob = self._client.bucket(self.bucket).blob(f"{self.prefix}{name}")

        def send(timeout_s: float) -> int:
            blob.upload_from_string(
                data, content_type="application/octet-stream", if_generation_match=generation, timeout=timeout_s, retry=None
            )
            return int(blob.generation or 0)

        def look(timeout_s: float) -> int | None:
            """What an attempt whose answer was lost has written."""
            found = self._client.bucket(self.bucket).get_blob(f"{self.prefix}{name}", timeout=timeout_s, retry=None)
            if found is None or int(found.size or 0) != len(data) or int(found.generation or 0) == generation:
                return None
            content = found.download_as_bytes(if_generation_match=found.generation, timeout=timeout_s, retry=None, raw_download=True)
            return int(found.generation or 0) if content == data else None

        effect = Effect.IDEMPOTENT if generation is not None else Effect.WRITE
        return self._caller.call(self._request("objects.insert", name, effect), send, look=look)

    def write_file(self, name: str, path: Path, *, generation: int) -> int:
        """Write an object from a file, chunk by chunk, over that very generation, or over nothing (0).

        Returns:
            Its generation.

        Raises:
            PreconditionError: When another is there.
            CallError: When it cannot be written.
            OSError: When the file cannot be read.
        """
        blob = self._client.bucket(self.bucket).blob(f"{self.prefix}{name}", chunk_size=CHUNK_BYTES)

        def send(timeout_s: float) -> int:
            blob.upload_from_filename(
                str(path), content_type="application/octet-stream", if_generation_match=generation, timeout=timeout_s, retry=None
            )
            return int(blob.generation or 0)

        def look(timeout_s: float) -> int | None:
            """What an attempt whose answer was lost has written."""
            found = self._client.bucket(self.bucket).get_blob(f"{self.prefix}{name}", timeout=timeout_s, retry=None)
            if found is None or int(found.generation or 0) == generation or found.crc32c != _crc32c_of(path):
                return None
            return int(found.generation or 0)

        return self._caller.call(self._request("objects.insert", name, Effect.IDEMPOTENT), send, look=look)

    def delete(self, name: str, *, generation: int | None = None) -> bool:
        """Delete an object; whether it was there.

        Raises:
            PreconditionError: When it is another by now.
            CallError: When it cannot be deleted.
        """
        blob = self._client.bucket(self.bucket).blob(f"{self.prefix}{name}")

        def send(timeout_s: float) -> None:
            blob.delete(if_generation_match=generation, timeout=timeout_s, retry=None)

        try:
            self._caller.call(self._request("objects.delete", name, Effect.IDEMPOTENT), send, deadline_s=DELETED_DEADLINE_S)
        except ResourceMissingError:
            return False
        return True

    def _request(self, method: str, name: str, effect: Effect = Effect.READ) -> Request:
        return Request(service=SERVICE, method=method, resource=f"gs://{self.bucket}/{self.prefix}{name}", effect=effect)


class _Crc32c:
    """The checksum of what comes piece by piece, as the service writes it."""

    def __init__(self) -> None:
        from google_crc32c import extend

        self._extend: Callable[[int, bytes], int] = extend
        self._value = 0

    def update(self, data: bytes) -> None:
        self._value = self._extend(self._value, data)

    @property
    def text(self) -> str:
        return base64.b64encode(self._value.to_bytes(4)).decode()


def _crc32c_of(path: Path) -> str:
    checksum = _Crc32c()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            checksum.update(chunk)
    return checksum.text


def require_allowed_bucket(clients: Clients, caller: Caller, name: str) -> None:
    """See that the owner of a bucket allows faults on what is in it.

    Raises:
        NotAllowedError: When he does not.
        CallError: When it cannot be asked for.
    """
    bucket = clients.storage.bucket(name)
    request = Request(service=SERVICE, method="buckets.get", resource=f"b/{name}")
    caller.call(request, lambda timeout_s: bucket.reload(timeout=timeout_s, retry=None))
    require_allowed("bucket", name, dict(bucket.labels))
