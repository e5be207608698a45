"""Resumable uploads: pieces that are kept until the object is complete.

Sessions live as long as the emulator; Google's live a week.

Source: https://docs.cloud.google.com/storage/docs/performing-resumable-uploads
"""

import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path

from harness.emulator.failures import ApiError
from harness.emulator.storage.checksums import RunningChecksums
from harness.emulator.storage.preconditions import Preconditions
from harness.emulator.storage.ranges import Brought
from harness.emulator.storage.records import ObjectMetadata, ObjectRecord
from harness.emulator.storage.refusals import invalid
from harness.emulator.storage.staging import Staged

PIECE_UNIT_BYTES = 256 << 10
"""Pieces that are not the last are kept in multiples of it; a remainder is to be sent again."""


@dataclass(slots=True, kw_only=True)
class Upload:
    """One session.

    Attributes:
        bucket: Where the object goes.
        name: Of the object.
        metadata: Of the object.
        conditions: To hold at the end.
        claimed: Checksums that the caller has named: ``crc32c`` and ``md5``.
        path: What has come so far.
        size: How much that is, in bytes.
        running: Its checksums.
        result: The object, once it is complete.
        is_cancelled: Whether the caller has given it up.
        lock: For one request at a time.
    """

    bucket: str
    name: str
    metadata: ObjectMetadata
    conditions: Preconditions
    claimed: dict[str, str]
    path: Path
    size: int = 0
    running: RunningChecksums = field(default_factory=RunningChecksums)
    result: ObjectRecord | None = None
    is_cancelled: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)

    def take(self, brought: Brought, data: bytes) -> bool:
        """Keep what is new of a piece; whether the content is complete now.

        Raises:
            ApiError: 400 when the piece leaves a gap, is not as long as it says, or is more than was announced.
        """
        first = self.size if brought.first is None else brought.first
        if brought.first is not None and brought.last is not None and len(data) != brought.last - brought.first + 1:
            raise invalid(
                f"Invalid request.  There were {len(data)} byte(s) in the request body.  There should have been "
                f"{brought.last - brought.first + 1} byte(s) (starting at offset {brought.first})."
            )
        if first > self.size:
            raise invalid(f"Invalid request.  The next byte to send is {self.size}, not {first}.")
        fresh = data[self.size - first :]
        is_last = brought.total is not None and self.size + len(fresh) >= brought.total
        if not is_last:
            fresh = fresh[: (self.size + len(fresh)) // PIECE_UNIT_BYTES * PIECE_UNIT_BYTES - self.size]
        elif brought.total is not None and self.size + len(fresh) > brought.total:
            raise invalid(f"Invalid request.  {self.size + len(fresh)} bytes were sent, of {brought.total} that were announced.")
        with self.path.open("ab") as file:
            file.write(fresh)
        self.running.update(fresh)
        self.size += len(fresh)
        return is_last

    def finish(self) -> Staged:
        """The complete content.

        Raises:
            ApiError: 400 when it is not what the caller has claimed.
        """
        staged = Staged(path=self.path, checksums=self.running.result())
        check_claims(staged, self.claimed)
        return staged


class Uploads:
    """The sessions."""

    def __init__(self) -> None:
        self._uploads: dict[str, Upload] = {}
        self._lock = threading.Lock()

    def begin(self, upload: Upload) -> str:
        """Open a session; returns its id, which is all that is needed to go on with it."""
        upload.path.touch()
        identifier = secrets.token_urlsafe(24)
        with self._lock:
            self._uploads[identifier] = upload
        return identifier

    def get(self, identifier: str) -> Upload:
        """A session.

        Raises:
            ApiError: 404 for one that is not there, 499 for one that was given up.
        """
        with self._lock:
            upload = self._uploads.get(identifier)
        if upload is None:
            raise ApiError(
                "NOT_FOUND",
                "The upload session is not there: it was never begun, or the emulator has started anew since",
                reason="notFound",
                domain="global",
            )
        if upload.is_cancelled:
            raise ApiError("CANCELLED", "The upload was cancelled", reason="clientClosedRequest", domain="global")
        return upload

    def close(self) -> None:
        """Give up all of them."""
        with self._lock:
            for upload in self._uploads.values():
                upload.path.unlink(missing_ok=True)
            self._uploads.clear()


def check_claims(staged: Staged, claimed: dict[str, str]) -> None:
    """See that content is what a caller says that it is.

    Raises:
        ApiError: 400 when it is not.
    """
    for kind, found in (("crc32c", staged.checksums.crc32c), ("md5", staged.checksums.md5)):
        if kind in claimed and claimed[kind] != found:
            label = {"crc32c": "CRC32C", "md5": "MD5 hash"}[kind]
            raise invalid(f'Provided {label} "{claimed[kind]}" doesn\'t match calculated {label} "{found}".')
