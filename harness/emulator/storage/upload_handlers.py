"""Uploads: at once, in two parts, or resumable in pieces.

Source: https://docs.cloud.google.com/storage/docs/json_api/v1/objects/insert, …/docs/performing-resumable-uploads
"""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from harness.emulator.service import HttpRequest, HttpResponse, Route
from harness.emulator.storage.handling import Premises
from harness.emulator.storage.multipart import split_parts
from harness.emulator.storage.object_handlers import OBJECTS
from harness.emulator.storage.object_names import split_name
from harness.emulator.storage.objects import BucketObjects
from harness.emulator.storage.ranges import Brought, read_brought
from harness.emulator.storage.reading import Document, conditions_of, document_of, host_of, shape_of
from harness.emulator.storage.records import ObjectMetadata, ObjectRecord
from harness.emulator.storage.refusals import invalid, not_covered, required
from harness.emulator.storage.resources import json_response, object_document
from harness.emulator.storage.uploads import Upload, Uploads, check_claims

INCOMPLETE = 308
CANCELLED = 499
UPLOAD = f"/upload{OBJECTS}"


class UploadHandlers:
    """Of one emulator."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._uploads = Uploads()

    def routes(self) -> Sequence[Route]:
        """What is served: two ways to begin, and for sessions to send and to cancel."""
        return (
            Route(verb="POST", pattern=UPLOAD, name="storage.objects.insert", handle=self.insert, is_write=True),
            Route(verb="PUT", pattern=UPLOAD, name="storage.objects.insert", handle=self.send_piece, is_write=True),
            Route(verb="DELETE", pattern=UPLOAD, name="storage.objects.insert", handle=self.cancel, is_write=True),
        )

    def close(self) -> None:
        """Forget what is incomplete."""
        self._uploads.close()

    def insert(self, request: HttpRequest) -> HttpResponse:
        """Begin an upload; all but a resumable one are complete with it."""
        objects = self._premises.objects(request.parameters["bucket"], "storage.objects.create")
        match request.query_value("uploadType"):
            case "media":
                metadata: Document = {"contentType": request.headers.get("content-type") or None}
                return self._insert(request, objects, metadata, request.body)
            case "multipart":
                described, content = split_parts(request.headers.get("content-type", ""), request.body)
                metadata = {"contentType": content.content_type or None} | document_of(described.data)
                return self._insert(request, objects, metadata, content.data)
            case "resumable":
                return self._begin(request, objects)
            case other:
                raise invalid(f"Invalid upload type '{other[:40]}': media, multipart or resumable")

    def send_piece(self, request: HttpRequest) -> HttpResponse:
        """Take a piece of a resumable upload, or say how much there is."""
        upload = self._uploads.get(request.query_value("upload_id"))
        header = request.headers.get("content-range", "")
        brought = read_brought(header) if header else Brought(first=0, last=len(request.body) - 1, total=len(request.body))
        with upload.lock:
            if upload.result is None:
                is_question = brought.first is None and (brought.total is None or brought.total > upload.size)
                upload.claimed |= _claimed_in_header(request)
                if is_question or not upload.take(brought, request.body):
                    return _incomplete(upload)
                upload.result = self._finish(upload)
            return json_response(object_document(upload.result, upload.bucket, host_of(request)))

    def cancel(self, request: HttpRequest) -> HttpResponse:
        """Give a resumable upload up."""
        upload = self._uploads.get(request.query_value("upload_id"))
        with upload.lock:
            upload.is_cancelled = True
            upload.path.unlink(missing_ok=True)
        return HttpResponse(status=CANCELLED)

    def _insert(self, request: HttpRequest, objects: BucketObjects, document: Document, data: bytes) -> HttpResponse:
        name = _name_of(request, document)
        with objects.staging.stage([data]) as staged:
            check_claims(staged, _claimed_in_document(document) | _claimed_in_header(request))
            record = objects.write(name, staged, shape_of(document, ObjectMetadata), conditions=conditions_of(request))
        return json_response(object_document(record, objects.bucket, host_of(request)))

    def _begin(self, request: HttpRequest, objects: BucketObjects) -> HttpResponse:
        document = document_of(request.body)
        name = _name_of(request, document)
        split_name(name)  # refused now rather than after all of it was sent
        conditions = conditions_of(request)
        if not conditions.are_empty:
            conditions.check(objects.find(name))
        content_type = request.headers.get("x-upload-content-type") or None
        upload = Upload(
            bucket=objects.bucket,
            name=name,
            metadata=shape_of({"contentType": content_type} | document, ObjectMetadata),
            conditions=conditions,
            claimed=_claimed_in_document(document),
            path=objects.staging.new_path(),
        )
        identifier = self._uploads.begin(upload)
        place = f"http://{host_of(request)}/upload/storage/v1/b/{objects.bucket}/o?uploadType=resumable&name={quote(name, safe='')}"
        return HttpResponse(headers={"Location": f"{place}&upload_id={identifier}", "X-GUploader-UploadID": identifier})

    def _finish(self, upload: Upload) -> ObjectRecord:
        objects = self._premises.buckets.objects(upload.bucket)
        return objects.write(upload.name, upload.finish(), upload.metadata, conditions=upload.conditions)


def _incomplete(upload: Upload) -> HttpResponse:
    return HttpResponse(status=INCOMPLETE, headers={"Range": f"bytes=0-{upload.size - 1}"} if upload.size else {})


def _name_of(request: HttpRequest, document: Mapping[str, object]) -> str:
    if request.headers.get("x-goog-encryption-algorithm"):
        raise not_covered("keys that the caller supplies")
    name = request.query_value("name") or document.get("name")
    if not isinstance(name, str) or not name:
        raise required("name")
    return name


def _claimed_in_document(document: Mapping[str, object]) -> dict[str, str]:
    named = {"crc32c": document.get("crc32c"), "md5": document.get("md5Hash")}
    return {kind: value for kind, value in named.items() if isinstance(value, str)}


def _claimed_in_header(request: HttpRequest) -> dict[str, str]:
    claims = [claim.strip().partition("=") for claim in request.headers.get("x-goog-hash", "").split(",")]
    return {kind: value for kind, _, value in claims if kind in ("crc32c", "md5") and value}
