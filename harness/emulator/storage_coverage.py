"""What of the public methods of ``google.cloud.storage`` the emulator takes: each is called, and the calls that it makes are seen."""

import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.storage.exceptions import InvalidResponse

from harness.emulator.coverage import UserCoverage
from harness.emulator.emulator import Emulator

BUCKET, CONTENT = "coverage", b"0123456789"
TIMEOUT_S = 10.0
NO_PERMISSIONS = ("storage.objects.get",)


class Subjects:
    """What a method is called on: a client, its bucket, an object in it that is made anew for each call, and a file."""

    def __init__(self, client: storage.Client, file: Path) -> None:
        self.client = client
        self.bucket = client.bucket(BUCKET)
        self.blob = self.bucket.blob("a/object")
        self.other = self.bucket.blob("a/other")
        self.file = file


def _write_and_read(subjects: Subjects) -> None:
    with subjects.other.open("wb") as file:
        file.write(CONTENT)
    with subjects.other.open("rb") as file:
        file.read()


def _batch(subjects: Subjects) -> None:
    with subjects.client.batch():
        subjects.blob.patch()


def _make_and_delete(subjects: Subjects) -> None:
    subjects.client.create_bucket("coverage-made").delete()


USES: Mapping[str, Callable[[Subjects], object]] = MappingProxyType(
    {
        "Client.batch": _batch,
        "Client.create_bucket": _make_and_delete,
        "Client.download_blob_to_file": lambda on: on.client.download_blob_to_file(on.blob, io.BytesIO()),
        "Client.get_bucket": lambda on: on.client.get_bucket(BUCKET),
        "Client.get_service_account_email": lambda on: on.client.get_service_account_email(),
        "Client.list_blobs": lambda on: list(on.client.list_blobs(BUCKET)),
        "Client.list_buckets": lambda on: list(on.client.list_buckets()),
        "Client.lookup_bucket": lambda on: on.client.lookup_bucket(BUCKET),
        "Bucket.copy_blob": lambda on: on.bucket.copy_blob(on.blob, on.bucket, "a/copy"),
        "Bucket.create": _make_and_delete,
        "Bucket.delete": _make_and_delete,
        "Bucket.delete_blob": lambda on: on.bucket.delete_blob(on.blob.name),
        "Bucket.delete_blobs": lambda on: on.bucket.delete_blobs([on.blob]),
        "Bucket.exists": lambda on: on.bucket.exists(),
        "Bucket.get_blob": lambda on: on.bucket.get_blob(on.blob.name),
        "Bucket.get_iam_policy": lambda on: on.bucket.get_iam_policy(),
        "Bucket.list_blobs": lambda on: list(on.bucket.list_blobs()),
        "Bucket.move_blob": lambda on: on.bucket.move_blob(on.blob, "a/moved"),
        "Bucket.patch": lambda on: on.bucket.patch(),
        "Bucket.reload": lambda on: on.bucket.reload(),
        "Bucket.rename_blob": lambda on: on.bucket.rename_blob(on.blob, "a/renamed"),
        "Bucket.test_iam_permissions": lambda on: on.bucket.test_iam_permissions(NO_PERMISSIONS),
        "Bucket.update": lambda on: on.bucket.update(),
        "Blob.compose": lambda on: on.other.compose([on.blob]),
        "Blob.create_resumable_upload_session": lambda on: on.other.create_resumable_upload_session(),
        "Blob.delete": lambda on: on.blob.delete(),
        "Blob.download_as_bytes": lambda on: on.blob.download_as_bytes(),
        "Blob.download_as_text": lambda on: on.blob.download_as_text(),
        "Blob.download_to_file": lambda on: on.blob.download_to_file(io.BytesIO()),
        "Blob.download_to_filename": lambda on: on.blob.download_to_filename(str(on.file)),
        "Blob.exists": lambda on: on.blob.exists(),
        "Blob.get_iam_policy": lambda on: on.blob.get_iam_policy(),
        "Blob.make_public": lambda on: on.blob.make_public(),
        "Blob.open": _write_and_read,
        "Blob.patch": lambda on: on.blob.patch(),
        "Blob.reload": lambda on: on.blob.reload(),
        "Blob.rewrite": lambda on: on.other.rewrite(on.blob),
        "Blob.test_iam_permissions": lambda on: on.blob.test_iam_permissions(NO_PERMISSIONS),
        "Blob.update": lambda on: on.blob.update(),
        "Blob.update_storage_class": lambda on: on.blob.update_storage_class("NEARLINE"),
        "Blob.upload_from_file": lambda on: on.blob.upload_from_file(io.BytesIO(CONTENT)),
        "Blob.upload_from_filename": lambda on: on.blob.upload_from_filename(str(on.file)),
        "Blob.upload_from_string": lambda on: on.blob.upload_from_string(CONTENT),
    }
)
"""How each is called; those that are no call at all, and those of other things than objects, are not in it."""


def storage_coverage(emulator: Emulator, project: str) -> Iterator[UserCoverage]:
    """Call every method of ``USES`` against an emulator that nobody else calls, and tell what each has called."""
    emulator.make_bucket(BUCKET)
    file = emulator.world.root / "coverage-file"
    options = {"api_endpoint": f"http://{emulator.endpoints.http}"}
    with storage.Client(project, credentials=AnonymousCredentials(), client_options=options) as client:  # type: ignore[no-untyped-call]
        client._bucket_metadata_cache = None  # it asks for buckets in threads of its own, now and then
        for method, use in USES.items():
            subjects = Subjects(client, file)
            file.write_bytes(CONTENT)
            subjects.blob.upload_from_string(CONTENT)
            before, problem = len(emulator.world.calls.all()), ""
            try:
                use(subjects)
            except (GoogleAPICallError, InvalidResponse) as error:
                problem = type(error).__name__
            calls = dict.fromkeys(call.method for call in emulator.world.calls.all()[before:])
            yield UserCoverage(method=method, calls=tuple(calls), problem=problem)


def untried_methods() -> Iterator[str]:
    """The public methods of the client that ``USES`` leaves out."""
    for kind in (storage.Client, storage.Bucket, storage.Blob):
        for name, _ in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and f"{kind.__name__}.{name}" not in USES:
                yield f"{kind.__name__}.{name}"
