"""The objects that are submitted: a Job, an indexed Job of several hosts, a RayJob, or what a manifest says."""

import copy
import shlex
from collections.abc import Mapping, Sequence
from typing import Protocol

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError
from harness.history.cluster import PodRole
from harness.kind.topology import POOL_LABEL, TPU_RESOURCE
from harness.targets.kubernetes.api import JOBS, RAY_JOBS, Object, Resource, resource_of
from harness.targets.kubernetes.inventory import RANK_LABELS
from harness.targets.kubernetes.manifest_files import JOB_FIELD, queues_of, read_job
from harness.targets.kubernetes.needs import PRIORITY_LABEL, QUEUE_LABEL, refuse_unmet
from harness.targets.kubernetes.pod_edits import TOPOLOGIES, constants, from_field

NAME_LENGTH_MAX = 40
"""Of the part that is the job's: KubeRay allows names of 47 characters, and makes longer ones of them."""

HEAD_POOL = "default-pool"
COORDINATOR_PORT = 8476
"""JAX's own default on Cloud TPU. Source: jax, jax/_src/clusters/cloud_tpu_cluster.py."""

HEAD_GRACE_S = 5

HOST_REQUESTS = {"cpu": "100m", "memory": "128Mi"}
HEAD_RESOURCES = {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "4Gi"}}
RAY_HOST_RESOURCES = {"requests": {"cpu": "100m", "memory": "500Mi"}, "limits": {"cpu": "1", "memory": "3Gi"}}
SUBMITTER_RESOURCES = {"requests": {"cpu": "50m", "memory": "128Mi"}}
"""Requests are far below GKE's: all nodes are one machine. A limit of one cpu is what Ray counts as one."""


class Edits(Protocol):
    """What a place adds to the pods of one run."""

    @property
    def launch(self) -> Launch:
        """What runs."""
        ...

    @property
    def working_dir(self) -> str:
        """Where the job's command is run; empty: where its image says."""
        ...

    @property
    def host_selector(self) -> Mapping[str, str]:
        """Labels of nodes that hosts of a slice want."""
        ...

    @property
    def slice_variables(self) -> Sequence[Object]:
        """What a host of a slice is told that its node does not tell it."""
        ...

    def labels(self, task: int, role: PodRole | None = None) -> dict[str, str]:
        """Who it is, for objects and for pods."""
        ...

    def edit(self, template: Object, task: int, role: PodRole, variables: Sequence[Object] = ()) -> None:
        """Add all that to a pod template, in place; ``variables`` are set where the template does not set them itself."""
        ...

    def mount_environment(self, container: Object) -> None:
        """Add what a container beside the main one needs to run programs of the environment."""
        ...


class Submission:
    """Makes the objects of one run.

    Raises:
        InvalidDocumentError: When the manifest of the scenario cannot be submitted, or a RayJob asks for a slice that there is none of.
    """

    def __init__(self, edits: Edits, *, ray_version: str) -> None:
        self._edits = edits
        self._launch = edits.launch
        self._cluster = edits.launch.cluster
        self._ray_version = ray_version
        self._written = _read(self._launch) if self._cluster.manifest else []
        if self.resource == RAY_JOBS:
            _refuse_slice(self._launch.job, chips=self._cluster.chips, hosts=self._launch.ranks)

    @property
    def resource(self) -> Resource:
        """What is submitted."""
        if self._written:
            return _main_of(self._written)[0]
        return RAY_JOBS if self._cluster.submits == "ray-job" else JOBS

    def companions(self) -> list[Object]:
        """What is made once, before the first task: the service by which hosts find one another, what else the manifest holds."""
        if self._written:
            main = _main_of(self._written)[1]
            return [one for one in self._written if one is not main]
        is_gang = self._cluster.submits == "job" and self._launch.ranks > 1
        return [self._service(task) for task in range(self._launch.tasks)] if is_gang else []

    def build(self, task: int) -> Object:
        """The object of a task."""
        if self._written:
            thing = copy.deepcopy(_main_of(self._written)[1])
        elif self._cluster.submits == "ray-job":
            thing = self._ray_job()
        else:
            thing = self._job(task)
        self._tie(thing, task)
        return thing

    def _tie(self, thing: Object, task: int) -> None:
        """Edit name, labels and pods, and leave everything else as it is written."""
        metadata = thing["metadata"]
        metadata["name"] = self.name_of(task)
        metadata.pop("namespace", None)
        metadata["labels"] = (metadata.get("labels") or {}) | self._edits.labels(task)
        spec = thing["spec"]
        if "rayClusterSpec" not in spec:
            self._edits.edit(spec["template"], task, "host")
            main = spec["template"]["spec"]["containers"][0]
            main["command"] = main.get("command") or list(self._launch.command)
            main |= self._working_dir(main)
            return
        if spec["rayClusterSpec"].get("enableInTreeAutoscaling"):
            options = spec["rayClusterSpec"]["autoscalerOptions"] = spec["rayClusterSpec"].get("autoscalerOptions") or {}
            self._edits.mount_environment(options)
        ray_path = constants({"PYTHONPATH": self._edits.working_dir} if self._edits.working_dir else {})
        self._edits.edit(spec["rayClusterSpec"]["headGroupSpec"]["template"], task, "head", ray_path)
        for group in spec["rayClusterSpec"].get("workerGroupSpecs") or []:
            self._edits.edit(group["template"], task, "host", [*ray_path, *self._edits.slice_variables])
        spec["submitterPodTemplate"] = spec.get("submitterPodTemplate") or _submitter()
        self._edits.edit(spec["submitterPodTemplate"], task, "submitter")

    def name_of(self, task: int) -> str:
        """The name of a task's object."""
        return f"{self._launch.job[:NAME_LENGTH_MAX].rstrip('-')}-{task}"

    def _queue_labels(self) -> dict[str, str]:
        labels = {QUEUE_LABEL: self._cluster.queue} if self._cluster.queue else {}
        return labels | ({PRIORITY_LABEL: self._cluster.priority} if self._cluster.priority else {})

    # ---- Jobs --------------------------------------------------------------------------------------------------------

    def _job(self, task: int) -> Object:
        launch = self._launch
        spec: Object = {
            "backoffLimit": launch.max_retries * launch.ranks,  # the loss of one host fails them all, and each counts
            "podReplacementPolicy": "Failed",  # one writer at a time: the next pod starts when the one before has ended
            "completions": launch.ranks,
            "parallelism": launch.ranks,
            "template": {"metadata": {}, "spec": self._host_spec(task)},
        }
        if launch.ranks > 1:
            spec["completionMode"] = "Indexed"
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "", "labels": self._queue_labels()}, "spec": spec}

    def _host_spec(self, task: int) -> Object:
        launch = self._launch
        container: Object = {
            "name": "host",
            "command": list(launch.command),
            **self._working_dir({}),
            "resources": self._with_chips({"requests": HOST_REQUESTS, "limits": {}}),
        }
        spec = self._placed({"restartPolicy": "Never", "containers": [container]})
        if launch.ranks > 1:
            spec["subdomain"] = self._service_name(task)
            container["env"] = [
                *constants({"JAX_COORDINATOR_ADDRESS": f"{self.name_of(task)}-0.{self._service_name(task)}:{COORDINATOR_PORT}"}),
                *constants({"JAX_PROCESS_COUNT": str(launch.ranks)}),
                from_field("JAX_PROCESS_ID", f"metadata.labels['{RANK_LABELS[0]}']"),
            ]
        return spec

    def _service_name(self, task: int) -> str:
        return f"hosts-{task}"

    def _service(self, task: int) -> Object:
        """Names for hosts, also while they start: they meet before they are ready."""
        spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": self._edits.labels(task, "host")}
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": self._service_name(task)}, "spec": spec}

    # ---- RayJobs -----------------------------------------------------------------------------------------------------

    def _ray_job(self) -> Object:
        launch = self._launch
        host = {"name": "ray-worker", "resources": self._with_chips(RAY_HOST_RESOURCES)}
        group = {
            "groupName": "hosts",
            "replicas": 1,
            "minReplicas": 1,
            "maxReplicas": 1,
            "numOfHosts": launch.ranks,
            "rayStartParams": {},
            "template": {"spec": self._placed({"containers": [host]})},
        }
        spec = {
            "entrypoint": shlex.join([*(["env", "-C", self._edits.working_dir] if self._edits.working_dir else []), *launch.command]),
            "shutdownAfterJobFinishes": True,
            "backoffLimit": launch.max_retries,
            "rayClusterSpec": {
                "rayVersion": self._ray_version,
                "headGroupSpec": {
                    "rayStartParams": {},
                    "template": {"spec": self._head_spec()},
                },
                "workerGroupSpecs": [group],
            },
        }
        return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "", "labels": self._queue_labels()}, "spec": spec}

    def _head_spec(self) -> Object:
        """Its first process is a shell, which hears no SIGTERM: a longer grace would only be waited for."""
        container = {"name": "ray-head", "resources": copy.deepcopy(HEAD_RESOURCES)}
        return {"nodeSelector": {POOL_LABEL: HEAD_POOL}, "terminationGracePeriodSeconds": HEAD_GRACE_S, "containers": [container]}

    # ---- both --------------------------------------------------------------------------------------------------------

    def _with_chips(self, resources: Mapping[str, Mapping[str, str]]) -> Object:
        chips = {TPU_RESOURCE: str(self._cluster.chips)}
        return {"requests": {**resources["requests"], **chips}, "limits": {**resources["limits"], **chips}}

    def _working_dir(self, container: Object) -> Object:
        """The field of that name; none where neither the container nor the place says one."""
        chosen = container.get("workingDir") or self._edits.working_dir
        return {"workingDir": chosen} if chosen else {}

    def _placed(self, spec: Object) -> Object:
        """On hosts of a slice; which pool's is Kueue's choice."""
        return spec | {
            "nodeSelector": dict(self._edits.host_selector),
            "tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in self._cluster.tolerations],
            "terminationGracePeriodSeconds": max(1, round(self._launch.grace_s)),
        }


def _submitter() -> Object:
    """KubeRay's own template has no mounts, and so no ``ray`` command in it.

    Source: kuberay v1.5.0, ray-operator/controllers/ray/common/job.go (GetDefaultSubmitterTemplate).
    """
    container = {"name": "ray-job-submitter", "resources": copy.deepcopy(SUBMITTER_RESOURCES)}
    return {"spec": {"restartPolicy": "Never", "nodeSelector": {POOL_LABEL: HEAD_POOL}, "containers": [container]}}


def _refuse_slice(job: str, *, chips: int, hosts: int) -> None:
    """Refuse what no TPU looks like: jobs would be told a topology that does not exist."""
    if chips * hosts not in TOPOLOGIES:
        known = ", ".join(map(str, TOPOLOGIES))
        problem = f"{hosts} hosts with {chips} each are {chips * hosts} chips, and a v6e slice has {known}"
        raise InvalidDocumentError(
            document=job, field="cluster.chips", problem=problem, advice="change `cluster.chips` or `workload.ranks`"
        )


def _read(launch: Launch) -> list[Object]:
    path = launch.root / launch.cluster.manifest
    manifests, document = read_job(path), f"{JOB_FIELD} {path}"
    submitted = [one for one in manifests if one["kind"] in ("Job", "RayJob")]
    if len(submitted) != 1:
        problem = f"holds {len(submitted)} Jobs and RayJobs"
        raise InvalidDocumentError(
            document=document, field="", problem=problem, advice="write one, and `tasks` for how often it is submitted"
        )
    version = submitted[0]["apiVersion"]
    known = {"Job": JOBS.api_version, "RayJob": RAY_JOBS.api_version}[submitted[0]["kind"]]
    if version != known:
        raise InvalidDocumentError(document=document, field="apiVersion", problem=f"is {version}", advice=f"write {known}")
    others = [one for one in manifests if one is not submitted[0]]
    refuse_unmet(submitted[0], others, queues_of(launch), document=document)
    return manifests


def _main_of(manifests: Sequence[Object]) -> tuple[Resource, Object]:
    """The one Job or RayJob among them."""
    return next((resource, one) for one in manifests if (resource := resource_of(one)) in (JOBS, RAY_JOBS) and resource is not None)
