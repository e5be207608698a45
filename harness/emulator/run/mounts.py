"""Volumes of a job: a bucket's directory stands where a container would see its mount.

A process here has the paths of this machine. So the mount's path is replaced in the command, its arguments and the values of variables;
a job that has the path in its own code does not find it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from google.cloud import run_v2

from harness.emulator.failures import invalid_argument
from harness.emulator.world import BucketStore

ONLY_DIR = "only-dir="
"""The mount option of gcsfuse that mounts a part of a bucket; source: https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/cli-options"""


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory of this machine in place of a path in the container."""

    path: str
    directory: Path


class Mounts:
    """All mounts of a container; the longest path is replaced first."""

    def __init__(self, mounts: Sequence[Mount]) -> None:
        self._directories = {mount.path: mount.directory for mount in mounts}
        alternatives = "|".join(re.escape(path) for path in sorted(self._directories, key=len, reverse=True))
        self._expression = re.compile(rf"(?<![\w./-])(?:{alternatives})(?![\w.-])") if alternatives else None

    def here(self, text: str) -> str:
        """A text with each path in the container replaced by its path on this machine."""
        if self._expression is None:
            return text
        return self._expression.sub(lambda match: str(self._directories[match.group()]), text)

    def directory(self, path: str) -> Path | None:
        """Where the volume mounted at a path is."""
        return self._directories.get(path.rstrip("/"))

    def first(self) -> Path | None:
        """Where the first of the volumes is."""
        return next(iter(self._directories.values()), None)


def mounts_of(task: run_v2.TaskTemplate, buckets: BucketStore, *, scratch: Path) -> Mounts:
    """The mounts of a task's container; their directories are made. Buckets come first.

    Not emulated: a volume that is read-only, and a file system in memory that ends with the instance (``scratch`` lasts as the execution).

    Raises:
        ApiError: NOT_FOUND for a bucket that is not there, INVALID_ARGUMENT for a part of it that is none.
    """
    volumes = {volume.name: volume for volume in task.volumes}
    mounts = [
        (volumes[mount.name], mount.mount_path.rstrip("/"), mount.sub_path)
        for container in task.containers
        for mount in container.volume_mounts
    ]
    made: list[Mount] = []
    for volume, path, below in sorted(mounts, key=lambda found: "gcs" not in found[0]):
        if "gcs" in volume:
            options = [option.removeprefix(ONLY_DIR) for option in volume.gcs.mount_options if option.startswith(ONLY_DIR)]
            directory = buckets.mount(volume.gcs.bucket, _joined(*options, below))
        else:
            directory = scratch / "volumes" / volume.name / _joined(below)
            directory.mkdir(parents=True, exist_ok=True)
        made.append(Mount(path, directory))
    return Mounts(made)


def _joined(*parts: str) -> str:
    joined = "/".join(part.strip("/") for part in parts if part.strip("/"))
    if ".." in joined.split("/"):
        raise invalid_argument("job.template.template.volumes", f"{joined} leads out of the volume")
    return joined
