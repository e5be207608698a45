"""One run on a project's cluster while it lasts."""

from harness.history import Event, LogLine, ObservationLost
from harness.targets.gcp.failures import CallError
from harness.targets.gcp.storage import RunStorage
from harness.targets.gcp.works import Works
from harness.targets.gke.arrangement import Adoption
from harness.targets.gke.grounds import ProjectGrounds
from harness.targets.gke.patience import ServerPatience
from harness.targets.gke.pod_edits import ProjectPodEdits
from harness.targets.kubernetes.execution import UNANSWERED_S, ClusterCourse, ray_version
from harness.targets.kubernetes.submission import Submission

BLIND_S = 60.0
"""A watch that breaks is open again within seconds; one that is refused stays so."""


class ProjectExecution(ClusterCourse):
    """Begun by ``begin``. What its pods print is read through the API server; what they save, from the bucket.

    Attributes:
        grounds: What it works with.
        storage: The checkpoints; None where pods of this cluster mount no bucket.

    Raises:
        InvalidDocumentError: When the launch cannot be submitted.
    """

    def __init__(self, grounds: ProjectGrounds, works: Works) -> None:
        self.grounds, self._works = grounds, works
        place, launch = grounds.project.place, grounds.launch
        bucket = place.bucket if grounds.cluster.mounts_buckets else ""
        image = launch.image or place.image
        edits = ProjectPodEdits(launch=launch, image=image, bucket=bucket, written_image=grounds.image)
        submission = Submission(edits, ray_version=ray_version())
        patience = ServerPatience(grounds.clock, grounds.cluster.name)
        super().__init__(grounds, submission, events_dir=launch.logs_dir / "events", patience=patience)
        self.storage = RunStorage(grounds.project) if bucket else None
        self._adoption = Adoption(grounds)
        self._blind_since_s: float | None = None

    def begin(self) -> None:
        """Make what is the run's own, and begin to watch.

        Raises:
            HarnessError: When something cannot be made; the caller takes away what was.
        """
        (self.grounds.launch.logs_dir / "events").mkdir(parents=True, exist_ok=True)
        if self.storage is not None:
            self.grounds.project.checkpoints.write("", b"", generation=None)  # a directory, as gcsfuse knows it
        self._adoption.make(self._submission)
        if self.storage is None:
            self.pending.append(self._without_bucket())
        self._begin_to_watch()

    def poll(self) -> list[Event]:
        """See ``ClusterCourse``. The bucket is looked at when an attempt has ended, and carried what a fault has changed in it.

        Raises:
            CallError: When the bucket does not answer.
        """
        events = self.storage.push() if self.storage is not None else []
        events += super().poll()
        return events + (self.storage.follow(events) if self.storage is not None else [])

    def last_look(self) -> list[Event]:
        """At the end: what the bucket holds; one that does not answer is told, and keeps nothing from being ended."""
        if self.storage is None:
            return []
        try:
            return self.storage.pull()
        except CallError as error:
            return [ObservationLost(t_s=self.grounds.t_s(), what="checkpoints", count=1, detail=f"the bucket was not read: {error}")]

    def _is_ready(self, now_s: float) -> bool:
        del now_s
        return True  # what jobs need is made, and waited for, before anything is watched

    def _lost(self, now_s: float) -> str:
        """A part of the cluster that is not seen for long: who may not list pods would wait for them for ever."""
        troubles = self._watches.troubles if self._watches is not None else ()
        if not troubles:
            self._blind_since_s = None
            return ""
        self._blind_since_s = now_s if self._blind_since_s is None else self._blind_since_s
        if now_s <= self._blind_since_s + BLIND_S:
            return ""
        return f"of cluster {self.grounds.cluster.name} nothing is seen by {'; '.join(troubles)}"

    def _silent(self) -> str:
        return (
            f"the API server of cluster {self.grounds.cluster.name} has not answered for {UNANSWERED_S:g} s; see whether it is there, "
            f"and whether this machine may reach it"
        )

    def _move(self, t_s: float) -> list[Event]:
        """What was asked of the project and has failed is told: the fault is then not seen, and this says why."""
        return [
            LogLine(t_s=t_s, stream="system", text=self.grounds.project.caller.secrets.redact(failure), severity="WARNING")
            for failure in self._works.take_failures()
        ]

    def _without_bucket(self) -> LogLine:
        text = (
            f"cluster {self.grounds.cluster.name} has no add-on for Cloud Storage FUSE: pods mount no bucket, what they save goes with "
            f"them, and CHECKPOINT_DIR is not set"
        )
        return LogLine(t_s=self.grounds.t_s(), stream="system", text=text, severity="WARNING")
