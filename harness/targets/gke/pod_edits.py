"""What the harness adds to a pod on a project's cluster: who it is, its image, and the run's part of the bucket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.capabilities import Launch
from harness.cloud_run.environment import CHECKPOINTS_AT, platform_variables
from harness.errors import InvalidDocumentError
from harness.history.cluster import PodRole
from harness.kind import RUN_ID_LABEL
from harness.kind.topology import ACCELERATOR_LABEL, TOPOLOGY_LABEL
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.gcp.run_names import checkpoints_prefix
from harness.targets.kubernetes.api import Object
from harness.targets.kubernetes.inventory import ROLE_LABEL, TASK_LABEL
from harness.targets.kubernetes.pod_edits import TOPOLOGIES, UNKNOWN_ATTEMPT, constants

ACCELERATOR = "tpu-v6e-slice"
"""Of the guide's machines."""

FUSE_DRIVER = "gcsfuse.csi.storage.gke.io"
FUSE_ANNOTATION = "gke-gcsfuse/volumes"
"""On pods that mount a bucket: GKE adds the container that does it.

Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral
"""

VOLUME = "harness-checkpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPodEdits:
    """Edits the pods of one run.

    Attributes:
        launch: What runs.
        image: Of pods; empty: what their manifest says.
        bucket: Where checkpoints go; empty: pods of this cluster mount none.
        written_image: Of pods for which nobody says one: the submitter that is added to a RayJob.
    """

    launch: Launch
    image: str
    bucket: str
    written_image: str = ""

    @property
    def working_dir(self) -> str:
        """See ``Edits``: the image's own."""
        return ""

    @property
    def host_selector(self) -> Mapping[str, str]:
        """See ``Edits``. GKE places no pod that asks for chips without these two.

        Source: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus
        """
        topology = TOPOLOGIES.get(self.launch.cluster.chips * self.launch.ranks, "")
        return {ACCELERATOR_LABEL: ACCELERATOR, TOPOLOGY_LABEL: topology} if topology else {}

    @property
    def slice_variables(self) -> Sequence[Object]:
        """See ``Edits``: GKE's webhook tells a host of a slice all that it needs."""
        return ()

    def labels(self, task: int, role: PodRole | None = None) -> dict[str, str]:
        """See ``Edits``."""
        labels = {RUN_ID_LABEL: self.launch.run_id, TASK_LABEL: str(task)}
        return labels | ({ROLE_LABEL: role} if role else {})

    def edit(self, template: Object, task: int, role: PodRole, variables: Sequence[Object] = ()) -> None:
        """See ``Edits``."""
        metadata = template["metadata"] = template.get("metadata") or {}
        metadata["labels"] = (metadata.get("labels") or {}) | self.labels(task, role)
        spec = template["spec"]
        main = spec["containers"][0]
        main["image"] = self.image or main.get("image") or self.written_image
        given = self._variables(task)
        taken = {str(one["name"]) for one in given}
        written = [one for one in main.get("env") or [] if one["name"] not in taken]
        taken |= {str(one["name"]) for one in written}
        main["env"] = [*given, *(one for one in variables if one["name"] not in taken), *written]
        if self.bucket:
            metadata["annotations"] = (metadata.get("annotations") or {}) | {FUSE_ANNOTATION: "true"}
            self._mount(spec, main)

    def mount_environment(self, container: Object) -> None:
        """See ``Edits``: every image of a project has its own."""

    def _variables(self, task: int) -> list[Object]:
        platform = platform_variables(self.launch, AttemptKey(task, 0), CHECKPOINTS_AT)
        del platform[UNKNOWN_ATTEMPT]
        if not self.bucket:
            del platform["CHECKPOINT_DIR"]
        return constants(dict(self.launch.environment) | platform | {RUN_ID_VARIABLE: self.launch.run_id})

    def _mount(self, spec: Object, main: Object) -> None:
        """Add the run's part of the bucket.

        Raises:
            InvalidDocumentError: When a manifest mounts something there itself.
        """
        mounts = main.get("volumeMounts") or []
        if any(str(one.get("mountPath")) == CHECKPOINTS_AT for one in mounts):
            problem = f"{self.launch.cluster.manifest} mounts a volume at {CHECKPOINTS_AT}, where the harness mounts the bucket"
            advice = "take the mount and its volume out of the manifest: checkpoints are there without it"
            raise InvalidDocumentError(document=self.launch.job, field="cluster.manifest", problem=problem, advice=advice)
        only = checkpoints_prefix(self.launch.run_id).rstrip("/")
        attributes = {"bucketName": self.bucket, "mountOptions": f"implicit-dirs,only-dir={only}"}
        volume = {"name": VOLUME, "csi": {"driver": FUSE_DRIVER, "volumeAttributes": attributes}}
        spec["volumes"] = [*(spec.get("volumes") or []), volume]
        main["volumeMounts"] = [*mounts, {"name": VOLUME, "mountPath": CHECKPOINTS_AT}]
