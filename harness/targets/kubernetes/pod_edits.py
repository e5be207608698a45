"""What the harness adds to a pod: who it is, where it speaks, and the storage and the environment that it needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.capabilities import Launch
from harness.cloud_run.environment import CHECKPOINTS_AT, platform_variables
from harness.errors import InvalidDocumentError
from harness.history.cluster import PodRole
from harness.kind import ENVIRONMENT_MOUNT, RUN_ID_LABEL, KindCluster
from harness.kind.topology import ACCELERATOR_LABEL, TOPOLOGY_LABEL
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.variables import Doors, protocol_variables
from harness.targets.kubernetes.api import Object
from harness.targets.kubernetes.inventory import RANK_LABELS, ROLE_LABEL, TASK_LABEL
from harness.targets.kubernetes.run_storage import RunStorage

INTERPRETER = f"{ENVIRONMENT_MOUNT}/bin/python"

POD_NAME_VARIABLE, POD_UID_VARIABLE = "POD_NAME", "POD_UID"
"""Set from the pod's own metadata: its event file is named by the one, its processes are known by the other."""

TOPOLOGIES = {1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
"""Of a v6e slice, by its chips. Source: https://docs.cloud.google.com/tpu/docs/v6e"""

UNKNOWN_ATTEMPT = "CLOUD_RUN_TASK_ATTEMPT"
"""Nobody numbers the pods of a Job: the variable stays away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEdits:
    """Edits the pods of one run.

    Nothing is written at its zero value, as ``readOnly: false``: KubeRay drops such a field with its first update of a RayJob, which makes
    another generation of it; Kueue names the workload of an elastic RayJob by the generation, and may make a second one.

    Source: kuberay v1.5.0, ray-operator/controllers/ray/rayjob_controller.go (the finalizer); sigs.k8s.io/kueue v0.17.0,
        ``GetWorkloadNameExtraPart`` (pkg/controller/jobs/raycluster/common.go).

    Attributes:
        launch: What runs.
        cluster: Where.
        storage: The run's directories.
    """

    launch: Launch
    cluster: KindCluster
    storage: RunStorage

    @property
    def image(self) -> str:
        """What the pods run."""
        return self.launch.image or self.cluster.job_image

    @property
    def working_dir(self) -> str:
        """See ``Edits``."""
        return str(self.launch.directory)

    @property
    def host_selector(self) -> Mapping[str, str]:
        """See ``Edits``. Which pool's host it is, is Kueue's choice."""
        pools = [pool for pool in self.cluster.topology.pools if pool.tpu_chips]
        chosen = {ACCELERATOR_LABEL: pools[0].accelerator, TOPOLOGY_LABEL: pools[0].tpu_topology} if pools else {}
        return {name: value for name, value in chosen.items() if value}

    @property
    def slice_variables(self) -> Sequence[Object]:
        """See ``Edits``. What GKE's webhook tells a host of a slice; JAX on processors instead of chips.

        Source: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpu-ray; KubeRay with gate RayMultiHostIndexing (labels).
        """
        chips = self.launch.cluster.chips * self.launch.ranks
        told = {"JAX_PLATFORMS": "cpu", "TPU_ACCELERATOR_TYPE": f"v6e-{chips}", "TPU_TOPOLOGY": TOPOLOGIES[chips]}
        return [
            *constants(told),
            from_field("TPU_WORKER_ID", f"metadata.labels['{RANK_LABELS[1]}']"),
            from_field("TPU_NAME", "metadata.labels['ray.io/worker-group-replica-name']"),
        ]

    def check(self) -> None:
        """See that pods can be given what the launch names.

        Raises:
            InvalidDocumentError: When its directory is on no node.
        """
        seen = (self.cluster.checkout_dir, self.cluster.shared_dir)
        if not any(self.launch.directory.is_relative_to(path) for path in seen):
            problem = f"{self.launch.directory} is on no node of the cluster, which has {seen[0]} and {seen[1]}"
            advice = f"keep the workload below {seen[0]}"
            raise InvalidDocumentError(document=self.launch.job, field="directory", problem=problem, advice=advice)

    def labels(self, task: int, role: PodRole | None = None) -> dict[str, str]:
        """Who it is, for objects and for pods."""
        labels = {RUN_ID_LABEL: self.launch.run_id, TASK_LABEL: str(task)}
        return labels | ({ROLE_LABEL: role} if role else {})

    def edit(self, template: Object, task: int, role: PodRole, variables: Sequence[Object] = ()) -> None:
        """Add all that to a pod template, in place; ``variables`` are set where the template does not set them itself."""
        metadata = template["metadata"] = template.get("metadata") or {}
        metadata["labels"] = (metadata.get("labels") or {}) | self.labels(task, role)
        spec = template["spec"]
        main = spec["containers"][0]
        main |= {"image": self.image, "imagePullPolicy": "IfNotPresent"}
        given = self._variables(task)
        written = [one for one in main.get("env") or [] if one["name"] not in _names(given)]
        defaults = [one for one in variables if one["name"] not in _names(given) | _names(written)]
        main["env"] = [*given, *defaults, *written]
        self._refuse_taken_place(main)
        spec["volumes"] = [*(spec.get("volumes") or []), *self._volumes()]
        main["volumeMounts"] = [*(main.get("volumeMounts") or []), *self._mounts()]

    def _refuse_taken_place(self, main: Object) -> None:
        """See that a manifest mounts nothing where we do; the API server would refuse the pod.

        Raises:
            InvalidDocumentError: When it does.
        """
        ours = {str(one["mountPath"]) for one in self._mounts()}
        taken = next((path for one in main.get("volumeMounts") or [] if (path := str(one.get("mountPath"))) in ours), None)
        if taken is not None:
            problem = f"{self.launch.cluster.manifest} mounts a volume at {taken}, where the harness mounts one"
            advice = f"take the mount and its volume out of the manifest: checkpoints are at {CHECKPOINTS_AT} without it"
            raise InvalidDocumentError(document=self.launch.job, field="cluster.manifest", problem=problem, advice=advice)

    def mount_environment(self, container: Object) -> None:
        """Add what a container beside the main one needs to run programs of the environment; the pod has the volume."""
        mounts = [one for one in self._mounts() if one["mountPath"] == str(ENVIRONMENT_MOUNT)]
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), *mounts]

    def _variables(self, task: int) -> list[Object]:
        """The pod's name first: what follows is made of it."""
        launch, armed = self.launch, self.launch.armed
        doors = Doors(
            events=f"{self.storage.events}/$({POD_NAME_VARIABLE}).jsonl",
            barrier=str(self.storage.socket_path(task)) if armed else "",
        )
        platform = platform_variables(launch, AttemptKey(task, 0), CHECKPOINTS_AT)
        del platform[UNKNOWN_ATTEMPT]
        own = [from_field(POD_NAME_VARIABLE, "metadata.name"), from_field(POD_UID_VARIABLE, "metadata.uid")]
        return own + constants(dict(launch.environment) | platform | protocol_variables(launch.run_id, doors, armed))

    def _places(self) -> list[tuple[str, str, str, bool]]:
        """Name of the volume, path on the node, path in the pod, whether the pod may write there."""
        places = [
            ("harness-checkpoints", str(self.storage.checkpoints), CHECKPOINTS_AT, True),
            ("harness-events", str(self.storage.events), str(self.storage.events), True),
            ("harness-sockets", str(self.storage.sockets), str(self.storage.sockets), True),
            ("harness-environment", str(self.cluster.environment_dir), str(ENVIRONMENT_MOUNT), False),
        ]
        is_of_checkout = self.launch.directory.is_relative_to(self.cluster.checkout_dir)
        code = str(self.cluster.checkout_dir if is_of_checkout else self.launch.directory)
        return [*places, ("harness-code", code, code, False)]

    def _volumes(self) -> list[Object]:
        return [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path, _, _ in self._places()]

    def _mounts(self) -> list[Object]:
        return [{"name": name, "mountPath": path} | ({} if writes else {"readOnly": True}) for name, _, path, writes in self._places()]


def _names(variables: Sequence[Object]) -> set[str]:
    return {str(one["name"]) for one in variables}


def constants(values: Mapping[str, str]) -> list[Object]:
    """Variables of a container; an empty one is a name alone, as ``PodEdits`` wants it."""
    return [{"name": name} | ({"value": value} if value else {}) for name, value in values.items()]


def from_field(name: str, field: str) -> Object:
    """A variable whose value is a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}
