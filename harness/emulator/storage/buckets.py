"""Buckets: a directory each, with the objects in one part and all that is known about them in others."""

import shutil
import threading
from functools import partial
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.emulator.storage.object_names import check_bucket_name, split_name
from harness.emulator.storage.objects import BucketObjects
from harness.emulator.storage.preconditions import NOTHING_DEMANDED, Preconditions
from harness.emulator.storage.records import read_document
from harness.emulator.storage.refusals import conflict, no_such_bucket, taken
from harness.emulator.storage.versions import to_text


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is on or off."""

    enabled: bool = False


class IamConfiguration(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who may see objects; the emulator knows permissions of whole projects only."""

    uniform_bucket_level_access: Switch = Switch()
    public_access_prevention: str = "inherited"


class BucketSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a caller may set, as far as it is kept: nothing but the labels and versioning changes what the emulator does."""

    location: str = "US"
    storage_class: str = "STANDARD"
    labels: dict[str, str] = {}
    iam_configuration: IamConfiguration = IamConfiguration()
    hierarchical_namespace: Switch = Switch()
    versioning: Switch = Switch()


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket.

    Attributes:
        name: Unique in the world.
        project: Whose it is.
        project_number: Of that project.
        generation: Of its making.
        created: RFC 3339.
        updated: RFC 3339.
        metageneration: Of its settings.
        settings: What callers have set.
    """

    name: str
    project: str
    project_number: int
    generation: int
    created: str
    updated: str
    metageneration: int = 1
    settings: BucketSettings = BucketSettings()


class StoredBuckets:
    """All buckets, below one directory; they are there again when the emulator starts on the same one."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._lock = threading.RLock()
        self._objects: dict[str, BucketObjects] = {}
        root.mkdir(parents=True, exist_ok=True)

    def directory(self, bucket: str) -> Path:
        """Where the objects of a bucket are files: what a mount of the bucket shows.

        Raises:
            ApiError: NOT_FOUND when there is no such bucket.
        """
        return self.objects(bucket).directory

    def mount(self, bucket: str, below: str = "") -> Path:
        """Where a job finds a bucket, or what lies below a prefix of it; the directory is made and stays, and is no object.

        Directories in it are then as gcsfuse makes them; see ``BucketObjects``.

        Args:
            bucket: Its name.
            below: The prefix, like gcsfuse's ``only-dir``; a name without ``..``.

        Raises:
            ApiError: NOT_FOUND when there is no such bucket, INVALID_ARGUMENT for a prefix that is none.
        """
        objects = self.objects(bucket)
        folder = below.strip("/")
        directory = objects.directory.joinpath(*split_name(folder)) if folder else objects.directory
        directory.mkdir(parents=True, exist_ok=True)
        if not self.get(bucket).settings.hierarchical_namespace.enabled:
            objects.mount(folder)
        return directory

    def objects(self, bucket: str) -> BucketObjects:
        """The objects of a bucket.

        Raises:
            ApiError: NOT_FOUND when there is no such bucket.
        """
        with self._lock:
            self.get(bucket)
            if bucket not in self._objects:
                self._objects[bucket] = BucketObjects(bucket, self._root / bucket, self._clock, partial(self._is_versioned, bucket))
            return self._objects[bucket]

    def get(self, name: str) -> Bucket:
        """A bucket.

        Raises:
            ApiError: NOT_FOUND, or 400 for a name that none has.
        """
        check_bucket_name(name)
        try:
            return read_document(self._document(name), Bucket)
        except FileNotFoundError:
            raise no_such_bucket() from None

    def of_project(self, project: str) -> list[Bucket]:
        """The buckets of a project, by name."""
        names = sorted(path.parent.name for path in self._root.glob("*/bucket.json"))
        return [bucket for name in names if (bucket := self.get(name)).project == project]

    def create(self, name: str, *, project: str, project_number: int, settings: BucketSettings) -> Bucket:
        """Make a bucket.

        Raises:
            ApiError: 409 when it is there.
        """
        check_bucket_name(name)
        with self._lock:
            if self._document(name).exists():
                raise taken(is_own=self.get(name).project == project)
            now = self._clock.utc()
            bucket = Bucket(
                name=name,
                project=project,
                project_number=project_number,
                generation=int(now.timestamp() * 1e6),
                created=to_text(now),
                updated=to_text(now),
                settings=settings,
            )
            self._keep(bucket)
            return bucket

    def change(self, name: str, settings: BucketSettings, conditions: Preconditions = NOTHING_DEMANDED) -> Bucket:
        """Replace the settings of a bucket.

        Raises:
            ApiError: 404, 412.
        """
        with self._lock:
            bucket = self.get(name)
            conditions.check(bucket)
            changed = msgspec.structs.replace(
                bucket, settings=settings, metageneration=bucket.metageneration + 1, updated=to_text(self._clock.utc())
            )
            self._keep(changed)
            return changed

    def delete(self, name: str, conditions: Preconditions = NOTHING_DEMANDED) -> None:
        """Remove an empty bucket.

        Raises:
            ApiError: 404, 409 when objects are in it, 412.
        """
        with self._lock:
            conditions.check(self.get(name))
            if not self.objects(name).is_empty():
                raise conflict("The bucket you tried to delete is not empty.")
            self._document(name).unlink()
            del self._objects[name]
            shutil.rmtree(self._root / name)

    def _is_versioned(self, name: str) -> bool:
        return self.get(name).settings.versioning.enabled

    def _document(self, name: str) -> Path:
        return self._root / name / "bucket.json"

    def _keep(self, bucket: Bucket) -> None:
        path = self._document(bucket.name)
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.encode(bucket))
        temporary.replace(path)
