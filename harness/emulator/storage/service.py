"""Cloud Storage's JSON API over directories of this machine."""

import dataclasses
from collections.abc import Callable, Sequence

from harness.emulator.failures import ApiError
from harness.emulator.service import HttpRequest, HttpResponse, Method, Route
from harness.emulator.storage.bucket_handlers import BucketHandlers
from harness.emulator.storage.buckets import StoredBuckets
from harness.emulator.storage.copy_handlers import CopyHandlers
from harness.emulator.storage.handling import Premises
from harness.emulator.storage.object_handlers import ObjectHandlers
from harness.emulator.storage.upload_handlers import UploadHandlers
from harness.emulator.world import World


class StorageService:
    """Cloud Storage.

    Not covered, and refused: globs in listings, keys of the caller. Not covered, and not there: access lists, policies,
    notifications, the XML API, batches, folders of a hierarchical namespace, soft deletion, retention and holds.
    """

    def __init__(self, world: World, buckets: StoredBuckets) -> None:
        premises = Premises(world=world, buckets=buckets)
        self._uploads = UploadHandlers(premises)
        self._handlers = (BucketHandlers(premises), CopyHandlers(premises), self._uploads, ObjectHandlers(premises))

    def methods(self) -> Sequence[Method]:
        """Over gRPC it speaks nothing."""
        return ()

    def routes(self) -> Sequence[Route]:
        """The JSON API."""
        return tuple(
            dataclasses.replace(route, handle=_answering(route.handle)) for handlers in self._handlers for route in handlers.routes()
        )

    def close(self) -> None:
        """Forget incomplete uploads."""
        self._uploads.close()


def _answering(handle: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Let a handler answer also when this machine's file system fails it: a full disk must not look like a lost connection."""

    def answer(request: HttpRequest) -> HttpResponse:
        try:
            return handle(request)
        except OSError as error:
            message = f"the emulator's file system failed: {error.strerror or error}: {error.filename or request.path}"
            raise ApiError("INTERNAL", message, reason="internalError", domain="global") from error

    return answer
