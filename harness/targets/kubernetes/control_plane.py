"""Parts of the control plane that are killed, and the job's image as the nodes know it."""

import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harness.capabilities import Component
from harness.kind import NodeContainers, NodeState
from harness.targets.kubernetes.api import CLUSTER_QUEUES, PODS, WORKLOADS, Api, ApiError, Object
from harness.targets.kubernetes.grounds import Hosting
from harness.targets.kubernetes.refusals import told_as_lookup_errors
from harness.undo import ClusterAction, RestoreImage


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the pod of a component is."""

    namespace: str
    selector: str


PLACES: Mapping[Component, _Place] = {
    "api-server": _Place("kube-system", "component=kube-apiserver"),
    "kueue": _Place("kueue-system", "control-plane=controller-manager"),
    "kuberay": _Place("kuberay-system", "app.kubernetes.io/name=kuberay"),
}
"""As kubeadm labels its static pods, and the manifests of Kueue and KubeRay theirs."""

KEPT = "chaos-harness.invalid/kept"
"""Under this name an image stays in a node while it is forgotten: no registry is called so, and its layers are not collected."""

RUNTIME_S = 60.0
"""containerd answers in milliseconds; just after its machine has started it takes some seconds to come up."""


class ControlPlaneHosting(Hosting):
    """The part of the target that is a ``ControlPlaneHost``."""

    def component_instance(self, component: Component) -> str:
        """See ``ControlPlaneHost``."""
        try:
            return next((_container_id(pod) for pod in self._pods(component) if _container_id(pod)), "")
        except (ApiError, LookupError):
            return ""  # it does not answer, which is what was asked

    def kill_component(self, component: Component) -> str:
        """See ``ControlPlaneHost``."""
        with told_as_lookup_errors():
            pod = next((pod for pod in self._pods(component) if _container_id(pod)), None)
            if pod is None:
                raise LookupError(f"no pod of {component} is ready in namespace {PLACES[component].namespace}")
            instance = _container_id(pod)
            kill = ["ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", instance.partition("://")[2]]
            self.grounds.machines.exec(pod["spec"]["nodeName"], kill)
        return instance

    def is_serving(self) -> bool:
        """See ``ControlPlaneHost``."""
        try:
            ask_everything(self.grounds.api)
        except (ApiError, LookupError):
            return False  # it is asked again
        return True

    def forget_image(self, nodes: Sequence[str]) -> str:
        """See ``ControlPlaneHost``."""
        image = full_name(self.grounds.cluster.job_image)
        machines, script = self.grounds.machines, forgetting_script(image)
        with told_as_lookup_errors(), ThreadPoolExecutor(max_workers=len(nodes)) as together:
            for forgotten in [together.submit(machines.exec, node, ["sh", "-ec", script]) for node in nodes]:
                forgotten.result()
        return f"{image} is unknown on {', '.join(nodes)}, as their runtimes say"

    def restore_image(self, nodes: Sequence[str]) -> str:
        """See ``ControlPlaneHost``."""
        image = full_name(self.grounds.cluster.job_image)
        machines = self.grounds.machines
        with told_as_lookup_errors(), ThreadPoolExecutor(max_workers=len(nodes)) as together:
            for restored in [together.submit(restore_image, machines, node, image) for node in nodes]:
                restored.result()
        return f"{image} is known on {', '.join(nodes)} again, as their runtimes say"

    def image_undo(self, nodes: Sequence[str]) -> tuple[ClusterAction, ...]:
        """See ``ControlPlaneHost``."""
        image = full_name(self.grounds.cluster.job_image)
        return tuple(RestoreImage(node=node, image=image) for node in nodes)

    def _pods(self, component: Component) -> list[Object]:
        place = PLACES[component]
        return self.grounds.api.list(PODS, place.namespace, place.selector)


def ask_everything(api: Api) -> None:
    """Ask for objects that the API server converts by a webhook of Kueue: they come only when both answer.

    Raises:
        ApiError: When one does not.
    """
    for resource in (CLUSTER_QUEUES, WORKLOADS):
        api.list(resource)


def restore_image(machines: NodeContainers, node: str, image: str) -> None:
    """Make an image known on a node again; one that is off is started for it, and after it off again and forgotten: it has registered.

    Raises:
        CommandFailedError: When the node does not know it after that.
    """
    is_off = machines.state(node) is not NodeState.RUNNING
    if is_off:
        machines.start(node)
    try:
        machines.exec(node, ["sh", "-ec", restoring_script(image)], deadline_s=RUNTIME_S)
    finally:
        if is_off:
            machines.kill(node)
            machines.forget(node)


def full_name(image: str) -> str:
    """As a runtime keeps it. Source: https://github.com/distribution/reference (normalisation)."""
    name = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
    first = name.partition("/")[0]
    if "/" not in name:
        return f"docker.io/library/{name}"
    return name if "." in first or ":" in first or first == "localhost" else f"docker.io/{name}"


def forgetting_script(image: str) -> str:
    """Keep an image under another name, take its own away, and fail when it is known still."""
    name, kept = shlex.quote(image), shlex.quote(kept_name(image))
    return "\n".join(
        [
            _KNOWS,
            f"if knows {name}; then",
            f"  ctr --namespace k8s.io images tag --force {name} {kept} > /dev/null",
            f"  ctr --namespace k8s.io images remove --sync {name} > /dev/null",
            "fi",
            f"knows {kept}",
            f"! knows {name}",
        ]
    )


def restoring_script(image: str) -> str:
    """Give a kept image its name back, and fail when it is not known after that; harmless where it was never taken."""
    name, kept = shlex.quote(image), shlex.quote(kept_name(image))
    return "\n".join(
        [
            _KNOWS,
            "until ctr version > /dev/null 2>&1; do sleep 0.2; done",
            f"if knows {kept}; then",
            f"  ctr --namespace k8s.io images tag --force {kept} {name} > /dev/null",
            f"  ctr --namespace k8s.io images remove {kept} > /dev/null",
            "fi",
            f"knows {name}",
        ]
    )


def kept_name(image: str) -> str:
    """Under which an image is kept."""
    return f"{KEPT}/{image.rpartition('/')[2]}"


_KNOWS = 'knows() { test -n "$(ctr --namespace k8s.io images list --quiet "name==$1")"; }'


def _container_id(pod: Object) -> str:
    """What the runtime calls the pod's container, with the runtime's name before it; empty while it does not run."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    running = [status for status in statuses if status.get("ready") and "running" in (status.get("state") or {})]
    return str(running[0].get("containerID", "")) if running else ""
