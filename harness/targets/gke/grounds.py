"""What a run on a cluster of a project works with."""

from dataclasses import dataclass

from harness.targets.gcp.adopting import AdoptedCluster
from harness.targets.gcp.grounds import Grounds
from harness.targets.kubernetes.grounds import ClusterGrounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectGrounds(ClusterGrounds):
    """One run.

    Attributes:
        project: Google's clients, the place, and the run's part of the bucket.
        cluster: As it was adopted.
        image: Of pods whose manifest names none, and of those that only hold capacity.
        emulator: Addresses of the emulator that plays the project; empty: it is a real one.
    """

    project: Grounds
    cluster: AdoptedCluster
    image: str
    emulator: str = ""

    @property
    def placeholder_image(self) -> str:
        """See ``ClusterGrounds``. The job's own: every node that takes the job can have it."""
        return self.image

    @property
    def cluster_uid(self) -> str:
        """See ``ClusterGrounds``."""
        return self.cluster.uid
