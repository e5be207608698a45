"""What is changed of Kueue's and KubeRay's own manifests, as kustomize overlays: their files stay as they are published."""

import json
import re
from collections.abc import Sequence

import msgspec

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
CONTAINER = "/spec/template/spec/containers/0"
KUEUE_GATES = "--feature-gates=ElasticJobsViaWorkloadSlices=true,VisibilityOnDemand=false"
"""Guide B's RayJob has the annotation `kueue.x-k8s.io/elastic-job`, which the first gate honours; the second is for ``VISIBILITY``."""

VISIBILITY = ("v1beta1.visibility.kueue.x-k8s.io", "v1beta2.visibility.kueue.x-k8s.io")
"""Kueue's view of who waits, served through the API server: while Kueue is down no namespace can be deleted, for its content is asked of
every API. Nobody here reads it."""

KUBERAY_GATES = "--feature-gates=RayClusterStatusConditions=true,RayMultiHostIndexing=true"
"""The second gives pods their index in a slice; on GKE a webhook does."""

KUEUE_FRAMEWORKS = ("batch/job", "ray.io/rayjob", "ray.io/raycluster")
"""What the scenarios queue. Pods, Deployments and the like are left out: their webhooks would take part in every start here."""

KUBERAY_CPU = "1"
"""Its own limit of 100m throttles it on a loaded machine, and a throttled operator looks like a lost one."""

FRAMEWORKS = re.compile(r"^  frameworks:\n(?:  (?:- |# - ).*\n)+", re.MULTILINE)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of a JSON patch."""

    op: str
    path: str
    value: object


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """One overlay.

    Attributes:
        base: What it lies over: a folder beside it, or an address.
        namespace: Where everything goes.
        deployment: The operator's.
        image: What to run instead, as ``name:tag``; empty for the published one.
        changes: JSON patches of the deployment, beside those that all get.
        dropped: APIServices that are left out.
    """

    base: str
    namespace: str
    deployment: str
    image: str
    changes: tuple[Change, ...] = ()
    dropped: tuple[str, ...] = ()

    def kustomization(self) -> str:
        """The text of its ``kustomization.yaml``: JSON, which YAML contains."""
        replaced = [Change(op="replace", path=f"{CONTAINER}/image", value=self.image)] if self.image else []
        patch = msgspec.json.encode([*_pinned_to_control_plane(), *replaced, *self.changes]).decode()
        document: dict[str, object] = {
            "resources": [self.base],
            "patches": [{"target": {"kind": "Deployment", "name": self.deployment}, "patch": patch}, *map(_deletion, self.dropped)],
        }
        if self.namespace:
            document |= {"namespace": self.namespace, "resources": [self.base, "namespace.yaml"]}
        return json.dumps(document, indent=2)

    def namespace_document(self) -> str:
        """The namespace that the base does not bring."""
        return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})


def kueue_overlay(*, base: str, image: str) -> Overlay:
    """Kueue with the guide's gate, and without its visibility service."""
    changes = (
        Change(op="add", path=f"{CONTAINER}/args/-", value=KUEUE_GATES),
        Change(op="replace", path=f"{CONTAINER}/imagePullPolicy", value="IfNotPresent"),
    )
    return Overlay(base=base, namespace="", deployment=".*controller-manager", image=image, changes=changes, dropped=VISIBILITY)


def kuberay_overlay(*, base: str, image: str) -> Overlay:
    """KubeRay in a namespace of its own, with the index of hosts in a slice."""
    changes = (
        Change(op="replace", path=f"{CONTAINER}/args", value=[KUBERAY_GATES]),
        Change(op="replace", path=f"{CONTAINER}/resources/limits/cpu", value=KUBERAY_CPU),
    )
    return Overlay(
        base=base,
        namespace="kuberay-system",
        deployment="kuberay-operator",
        image=image,
        changes=changes,
    )


def with_frameworks(configuration: str, frameworks: Sequence[str]) -> str:
    """Kueue's configuration with another list of integrations.

    Raises:
        ValueError: When the list is not where it was.
    """
    listed = "  frameworks:\n" + "".join(f'  - "{name}"\n' for name in frameworks)
    changed, count = FRAMEWORKS.subn(listed, configuration)
    if count != 1:
        raise ValueError(f"Kueue's configuration has {count} lists of frameworks instead of one; see its new form")
    return changed


def _deletion(service: str) -> dict[str, str]:
    """A patch that leaves an APIService out."""
    document = {"$patch": "delete", "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": service}}
    return {"patch": json.dumps(document)}


def _pinned_to_control_plane() -> list[Change]:
    """Any pool, the default one too, can be lost without the operators."""
    toleration = {"key": CONTROL_PLANE_LABEL, "operator": "Exists", "effect": "NoSchedule"}
    return [
        Change(op="add", path="/spec/template/spec/nodeSelector", value={CONTROL_PLANE_LABEL: ""}),
        Change(op="add", path="/spec/template/spec/tolerations", value=[toleration]),
    ]
