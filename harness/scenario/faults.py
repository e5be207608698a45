"""Faults as data; what they do is in ``harness.faults``, one module a family as here. Those of clusters are in ``cluster_faults``.

Who is hit is the injection's ``victim``, when is its trigger: a fault says only what happens.
"""

from typing import Literal

import msgspec

from harness.scenario.cluster_faults import ClusterFault
from harness.scenario.rules import positive, require

# ---- process ---------------------------------------------------------------------------------------------------------


class Terminate(msgspec.Struct, frozen=True, kw_only=True, tag="terminate", tag_field="type", forbid_unknown_fields=True):
    """SIGTERM, the grace period of the platform, then SIGKILL to what is left of the victim."""


class EndGrace(msgspec.Struct, frozen=True, kw_only=True, tag="end-grace", tag_field="type", forbid_unknown_fields=True):
    """The grace that an earlier injection's notice began is over now: the platform's SIGKILL, without waiting for the rest of it.

    So a job dies at any moment of its last save, and the test waits for no clock. The victim is that of the notice.
    """


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag="kill", tag_field="type", forbid_unknown_fields=True):
    """SIGKILL at once: a host error, an out-of-memory kill. Page cache and mounts survive: this is not power loss."""


class Pause(msgspec.Struct, frozen=True, kw_only=True, tag="pause", tag_field="type", forbid_unknown_fields=True):
    """SIGSTOP, and SIGCONT after ``duration_s``: a machine that stands still without dying."""

    duration_s: float = 1.0

    def __post_init__(self) -> None:
        positive("duration_s", self.duration_s)


# ---- maintenance -----------------------------------------------------------------------------------------------------


class Maintenance(msgspec.Struct, frozen=True, kw_only=True, tag="maintenance", tag_field="type", forbid_unknown_fields=True):
    """Host maintenance as Cloud Run jobs show it, by one of the grace profiles of ``harness.scenario.platform``."""

    profile: Literal["cloudrun-job-gpu-maintenance", "cloudrun-job-cpu-maintenance"] = "cloudrun-job-gpu-maintenance"

    @property
    def ends_attempt(self) -> bool:
        """Whether it is SIGTERM with a grace after it; a job without a GPU is moved, and goes on."""
        return self.profile == "cloudrun-job-gpu-maintenance"


class ExpireTimeout(msgspec.Struct, frozen=True, kw_only=True, tag="expire-timeout", tag_field="type", forbid_unknown_fields=True):
    """The per-attempt timeout of the task is reached now, however long it was meant to be."""


class CancelExecution(msgspec.Struct, frozen=True, kw_only=True, tag="cancel-execution", tag_field="type", forbid_unknown_fields=True):
    """Someone cancels the execution: nothing is tried again."""


class OverlapAttempts(msgspec.Struct, frozen=True, kw_only=True, tag="overlap-attempts", tag_field="type", forbid_unknown_fields=True):
    """The platform loses sight of an attempt, starts the next one, and the old one goes on for ``zombie_s``: two writers."""

    zombie_s: float = 2.0

    def __post_init__(self) -> None:
        positive("zombie_s", self.zombie_s)


# ---- Ray -------------------------------------------------------------------------------------------------------------


class DrainRayNode(msgspec.Struct, frozen=True, kw_only=True, tag="drain-ray-node", tag_field="type", forbid_unknown_fields=True):
    """Ray is told that a node will be preempted at a deadline (``DRAIN_NODE_REASON_PREEMPTION``); the node dies when it passes."""

    deadline_s: float = 10.0

    def __post_init__(self) -> None:
        positive("deadline_s", self.deadline_s)


class KillRayProcess(msgspec.Struct, frozen=True, kw_only=True, tag="kill-ray-process", tag_field="type", forbid_unknown_fields=True):
    """SIGKILL to one of Ray's own processes: a train worker (chosen by rank), a raylet (a node), or the head's control store."""

    component: Literal["worker", "raylet", "head"] = "worker"


# ---- storage at rest -------------------------------------------------------------------------------------------------

PathClass = Literal["data", "metadata", "commit-marker", "pointer", "snapshot", "step"]
"""What a path is to its layout: bulk data, description of it, mark of completeness, pointer to the newest, Ray Train's snapshot, or a
whole step."""


class FlipByte(msgspec.Struct, frozen=True, kw_only=True, tag="flip-byte", tag_field="type", forbid_unknown_fields=True):
    """One bit of one byte changes in a file of the newest committed checkpoint."""

    path_class: PathClass = "data"
    at_fraction: float = 0.5

    def __post_init__(self) -> None:
        require(0 <= self.at_fraction < 1, "at_fraction", self.at_fraction, "a fraction of the file's size, 0 <= x < 1")


class TruncateFile(msgspec.Struct, frozen=True, kw_only=True, tag="truncate-file", tag_field="type", forbid_unknown_fields=True):
    """A file of the newest committed checkpoint ends early; ``keep_fraction`` 0 empties it."""

    path_class: PathClass = "data"
    keep_fraction: float = 0.5

    def __post_init__(self) -> None:
        require(0 <= self.keep_fraction < 1, "keep_fraction", self.keep_fraction, "a fraction of the file's size, 0 <= x < 1")


class DeletePath(msgspec.Struct, frozen=True, kw_only=True, tag="delete-path", tag_field="type", forbid_unknown_fields=True):
    """A file, or with ``step`` the whole newest committed checkpoint, is gone."""

    path_class: PathClass = "data"


class TearRename(msgspec.Struct, frozen=True, kw_only=True, tag="tear-rename", tag_field="type", forbid_unknown_fields=True):
    """The rename that gave the newest checkpoint its name stopped half way: its first files are under the final name, the rest are not.

    What a flat bucket mounted by gcsfuse leaves when the node dies: it renames a directory object by object, in listing order.
    Source: https://github.com/GoogleCloudPlatform/gcsfuse/blob/master/docs/semantics.md (directory renames); the order of the objects is
    read in its source and was not confirmed on a real mount.
    """

    moved_fraction: float = 0.5

    def __post_init__(self) -> None:
        require(0 <= self.moved_fraction < 1, "moved_fraction", self.moved_fraction, "a fraction of the files, 0 <= x < 1")


class AddEmptyStep(msgspec.Struct, frozen=True, kw_only=True, tag="add-empty-step", tag_field="type", forbid_unknown_fields=True):
    """An empty directory of a later step appears under a final name, as a save killed between mkdir and its first file leaves it."""

    steps_ahead: int = 5

    def __post_init__(self) -> None:
        require(self.steps_ahead >= 1, "steps_ahead", self.steps_ahead, "at least 1 step after the newest")


class AddStaleTemporary(msgspec.Struct, frozen=True, kw_only=True, tag="add-stale-temporary", tag_field="type", forbid_unknown_fields=True):
    """Half a save under a temporary name appears for the step that will be saved next."""


# ---- storage while running -------------------------------------------------------------------------------------------

StorageError = Literal["ENOSPC", "EIO", "EROFS", "ESTALE", "EDQUOT"]


class FailWrites(msgspec.Struct, frozen=True, kw_only=True, tag="fail-writes", tag_field="type", forbid_unknown_fields=True):
    """Writing operations in the checkpoint directory fail with ``error``: ``operations`` of them, or all for ``duration_s`` seconds."""

    error: StorageError = "ENOSPC"
    operations: int = 0
    duration_s: float = 1.0

    def __post_init__(self) -> None:
        require(self.operations >= 0, "operations", self.operations, "how many operations fail; 0 means all until duration_s is over")
        positive("duration_s", self.duration_s)


class SlowWrites(msgspec.Struct, frozen=True, kw_only=True, tag="slow-writes", tag_field="type", forbid_unknown_fields=True):
    """Each writing operation in the checkpoint directory takes ``delay_s`` longer, for ``duration_s`` seconds."""

    delay_s: float = 0.05
    duration_s: float = 2.0

    def __post_init__(self) -> None:
        positive("delay_s", self.delay_s)
        positive("duration_s", self.duration_s)


ProcessFault = Terminate | EndGrace | Kill | Pause
MaintenanceFault = Maintenance | ExpireTimeout | CancelExecution | OverlapAttempts
RayFault = DrainRayNode | KillRayProcess
DamageFault = FlipByte | TruncateFile | DeletePath | TearRename | AddEmptyStep | AddStaleTemporary
StorageFault = FailWrites | SlowWrites
Fault = ProcessFault | MaintenanceFault | RayFault | DamageFault | StorageFault | ClusterFault


def kind_of(fault: Fault) -> str:
    """The fault's name in documents and reports, like ``kill``."""
    return str(fault.__struct_config__.tag)
