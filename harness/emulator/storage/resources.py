"""Buckets and objects as the JSON API shows them.

Source: https://docs.cloud.google.com/storage/docs/json_api/v1/objects#resource, …/buckets#resource
"""

import base64
from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from harness.emulator.service import HttpResponse
from harness.emulator.storage.buckets import Bucket
from harness.emulator.storage.records import ObjectRecord

Document = Mapping[str, object]
JSON_HEADERS = {"Content-Type": "application/json; charset=UTF-8"}
DEFAULT_CONTENT_TYPE = "application/octet-stream"


def json_response(document: Document, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """An answer with a document."""
    return HttpResponse(headers={**JSON_HEADERS, **(headers or {})}, body=msgspec.json.encode(document))


def etag_of(generation: int, metageneration: int) -> str:
    """Google's own form: the two numbers as fields of a protocol buffer, in base64."""
    return base64.b64encode(b"\x08" + _varint(generation) + b"\x10" + _varint(metageneration)).decode()


def object_document(record: ObjectRecord, bucket: str, host: str) -> dict[str, object]:
    """An object's resource; ``host`` is where its links lead."""
    place = f"b/{quote(bucket, safe='')}/o/{quote(record.name, safe='')}"
    document: dict[str, object] = {
        "kind": "storage#object",
        "id": f"{bucket}/{record.name}/{record.generation}",
        "selfLink": f"http://{host}/storage/v1/{place}",
        "mediaLink": f"http://{host}/download/storage/v1/{place}?generation={record.generation}&alt=media",
        "name": record.name,
        "bucket": bucket,
        "generation": str(record.generation),
        "metageneration": str(record.metageneration),
        "contentType": DEFAULT_CONTENT_TYPE,
        "storageClass": "STANDARD",
        "size": str(record.size),
        "crc32c": record.crc32c,
        "etag": etag_of(record.generation, record.metageneration),
        "timeCreated": record.created,
        "updated": record.updated,
        "timeStorageClassUpdated": record.created,
        "timeFinalized": record.created,
    }
    if record.component_count:
        document["componentCount"] = record.component_count  # and no MD5: Google has none of composed objects
    else:
        document["md5Hash"] = record.md5
    set_by_callers: dict[str, object] = msgspec.to_builtins(record.metadata)
    return document | {name: value for name, value in set_by_callers.items() if value is not None}


def bucket_document(bucket: Bucket, host: str) -> dict[str, object]:
    """A bucket's resource."""
    settings: dict[str, object] = msgspec.to_builtins(bucket.settings)
    return {
        "kind": "storage#bucket",
        "id": bucket.name,
        "selfLink": f"http://{host}/storage/v1/b/{bucket.name}",
        "name": bucket.name,
        "projectNumber": str(bucket.project_number),
        "generation": str(bucket.generation),
        "metageneration": str(bucket.metageneration),
        "location": bucket.settings.location.upper(),
        "locationType": "region" if "-" in bucket.settings.location else "multi-region",
        "storageClass": bucket.settings.storage_class,
        "timeCreated": bucket.created,
        "updated": bucket.updated,
        "etag": etag_of(bucket.generation, bucket.metageneration),
        **{name: value for name, value in settings.items() if name not in ("location", "storageClass")},
    }


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])
