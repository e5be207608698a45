"""What all handlers of Cloud Storage share: the buckets, and who may do what in them."""

from dataclasses import dataclass

from harness.emulator.storage.buckets import Bucket, StoredBuckets
from harness.emulator.storage.objects import BucketObjects
from harness.emulator.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """Where handlers work."""

    world: World
    buckets: StoredBuckets

    def bucket(self, name: str, permission: str) -> Bucket:
        """A bucket, for a caller with a permission in its project.

        Raises:
            ApiError: 404, 403.
        """
        bucket = self.buckets.get(name)
        self.world.projects.require(permission, f"projects/_/buckets/{name}", project=bucket.project)
        return bucket

    def objects(self, bucket: str, *permissions: str) -> BucketObjects:
        """The objects of a bucket, for a caller with permissions in its project.

        Raises:
            ApiError: 404, 403.
        """
        for permission in permissions:
            self.bucket(bucket, permission)
        return self.buckets.objects(bucket)
