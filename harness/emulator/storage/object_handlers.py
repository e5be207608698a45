"""Objects: list, get, download, change, delete.

Source: https://docs.cloud.google.com/storage/docs/json_api/v1/objects
"""

import os
from collections.abc import Callable, Iterator, Sequence

from harness.emulator.service import HttpRequest, HttpResponse, Route
from harness.emulator.storage.checksums import read_pieces
from harness.emulator.storage.handling import Premises
from harness.emulator.storage.ranges import read_wanted
from harness.emulator.storage.reading import (
    conditions_of,
    document_of,
    generation_of,
    host_of,
    list_query_of,
    merge,
    require_live,
    shape_of,
)
from harness.emulator.storage.records import ObjectMetadata, ObjectRecord
from harness.emulator.storage.resources import DEFAULT_CONTENT_TYPE, etag_of, json_response, object_document

OBJECTS = "/storage/v1/b/{bucket}/o"
OBJECT = f"{OBJECTS}/{{object}}"

WHOLE_BYTES_MAX = 8 << 20
"""Content up to this size is sent in one piece, with its length, as Google does; more comes in chunks, for it is never all in memory."""


class ObjectHandlers:
    """Of one emulator."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises

    def routes(self) -> Sequence[Route]:
        """What is served."""
        return (
            Route(verb="GET", pattern=OBJECTS, name="storage.objects.list", handle=self.list),
            Route(verb="GET", pattern=OBJECT, name="storage.objects.get", handle=self.get),
            Route(verb="GET", pattern=f"/download{OBJECT}", name="storage.objects.get", handle=self.download),
            Route(verb="PATCH", pattern=OBJECT, name="storage.objects.patch", handle=self.patch, is_write=True),
            Route(verb="PUT", pattern=OBJECT, name="storage.objects.update", handle=self.update, is_write=True),
            Route(verb="DELETE", pattern=OBJECT, name="storage.objects.delete", handle=self.delete, is_write=True),
        )

    def list(self, request: HttpRequest) -> HttpResponse:
        """One page of objects and prefixes; with ``versions=true`` of all versions that are kept."""
        objects = self._premises.objects(request.parameters["bucket"], "storage.objects.list")
        if request.query_value("versions").lower() == "true":
            versions, page = objects.page_of_versions(list_query_of(request))
        else:
            live, page = objects.page(list_query_of(request))
            versions = [(record, "") for record in live]
        document: dict[str, object] = {"kind": "storage#objects"}
        if page.prefixes:
            document["prefixes"] = list(page.prefixes)
        if versions:
            document["items"] = [_of_version(record, deleted, objects.bucket, request) for record, deleted in versions]
        if page.next_token:
            document["nextPageToken"] = page.next_token
        return json_response(document)

    def get(self, request: HttpRequest) -> HttpResponse:
        """The resource, or with ``alt=media`` the content."""
        if request.query_value("alt") == "media":
            return self.download(request)
        require_live(request)
        objects = self._premises.objects(request.parameters["bucket"], "storage.objects.get")
        record = objects.get(request.parameters["object"], generation_of(request))
        conditions_of(request).check(record, is_read=True)
        return json_response(object_document(record, objects.bucket, host_of(request)))

    def download(self, request: HttpRequest) -> HttpResponse:
        """The content, or a range of it."""
        objects = self._premises.objects(request.parameters["bucket"], "storage.objects.get")
        with objects.read(request.parameters["object"], generation_of(request), conditions_of(request)) as (record, descriptor):
            headers = _content_headers(record)
            wanted = read_wanted(request.headers.get("range", ""), record.size)
            first, last = wanted or (0, record.size - 1)
            if wanted is not None:
                headers["Content-Range"] = f"bytes {first}-{last}/{record.size}"
            is_short = last + 1 - first <= WHOLE_BYTES_MAX
            content = _OpenContent(descriptor, first, last) if not is_short else b"".join(read_pieces(descriptor, first, last))
        return HttpResponse(status=206 if wanted is not None else 200, headers=headers, body=content)

    def patch(self, request: HttpRequest) -> HttpResponse:
        """Change what is named in the body."""
        change = document_of(request.body)
        return self._change(request, lambda metadata: merge(metadata, change))

    def update(self, request: HttpRequest) -> HttpResponse:
        """Replace all that a caller may set."""
        metadata = shape_of(document_of(request.body), ObjectMetadata)
        return self._change(request, lambda _: metadata)

    def delete(self, request: HttpRequest) -> HttpResponse:
        """Remove it."""
        objects = self._premises.objects(request.parameters["bucket"], "storage.objects.delete")
        objects.delete(request.parameters["object"], generation=generation_of(request), conditions=conditions_of(request))
        return HttpResponse(status=204)

    def _change(self, request: HttpRequest, change: Callable[[ObjectMetadata], ObjectMetadata]) -> HttpResponse:
        objects = self._premises.objects(request.parameters["bucket"], "storage.objects.update")
        record = objects.patch(request.parameters["object"], change, generation=generation_of(request), conditions=conditions_of(request))
        return json_response(object_document(record, objects.bucket, host_of(request)))


def _of_version(record: ObjectRecord, deleted: str, bucket: str, request: HttpRequest) -> dict[str, object]:
    document = object_document(record, bucket, host_of(request))
    return document | {"timeDeleted": deleted} if deleted else document


class _OpenContent(Iterator[bytes]):
    """Content that is read as it is sent, from a file that stays open until then even if the object is replaced."""

    def __init__(self, descriptor: int, first: int, last: int) -> None:
        self._file = os.fdopen(os.dup(descriptor), "rb")
        self._pieces = read_pieces(self._file.fileno(), first, last)

    def __next__(self) -> bytes:
        piece = next(self._pieces, b"")
        if not piece:
            self._file.close()
            raise StopIteration
        return piece

    def __del__(self) -> None:
        self._file.close()


def _content_headers(record: ObjectRecord) -> dict[str, str]:
    hashes = [f"crc32c={record.crc32c}", *([f"md5={record.md5}"] if not record.component_count else [])]
    metadata = record.metadata
    headers = {
        "Content-Type": metadata.content_type or DEFAULT_CONTENT_TYPE,
        "ETag": etag_of(record.generation, record.metageneration),
        "X-Goog-Generation": str(record.generation),
        "X-Goog-Metageneration": str(record.metageneration),
        "X-Goog-Hash": ",".join(hashes),
        "X-Goog-Stored-Content-Encoding": metadata.content_encoding or "identity",
        "X-Goog-Stored-Content-Length": str(record.size),
        "X-Goog-Storage-Class": metadata.storage_class or "STANDARD",
    }
    optional = {
        "Content-Encoding": metadata.content_encoding,
        "Content-Disposition": metadata.content_disposition,
        "Content-Language": metadata.content_language,
        "Cache-Control": metadata.cache_control,
    }
    return headers | {name: value for name, value in optional.items() if value and value.isascii() and value.isprintable()}
