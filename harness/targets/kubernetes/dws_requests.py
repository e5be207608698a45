"""What a ProvisioningRequest asks for, and the names that GKE gives to what serves it."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.history import ConditionState
from harness.history.cluster import CLASS_ANNOTATION, CONSUME_ANNOTATION
from harness.kind import NodePool
from harness.kind.topology import TPU_RESOURCE
from harness.quantities import whole_number
from harness.targets.kubernetes.api import Object, annotations_of, conditions_of, name_of, uid_of
from harness.targets.kubernetes.dws_reasons import MAX_RUN_TOO_SHORT, MAX_RUN_UNREADABLE, PROJECT, ZONE

PROVISIONING_CLASS = "queued-provisioning.gke.io"
"""Source: GKE's autoscaler, package queuedwrapper; requests of other classes are nobody's here."""

REQUEST_LABEL = "autoscaling.gke.io/provisioning-request"
"""On a node: the resize request that brought it. Source: GKE's autoscaler, package labels."""

MAX_RUN_PARAMETER = "maxRunDurationSeconds"
VALID_UNTIL_PARAMETER = "ValidUntilSeconds"

MAX_RUN_S_MIN = 600
"""Source: the Compute Engine API refuses less ("Minimum value is equal to 10 minutes")."""

_NUMBER = re.compile(r"[+-]?[0-9]+")

NAME_PARTS_MAX = (20, 20, 16)
"""Characters of namespace, name and digest in the name of a resize request. Source: GKE's autoscaler, package resizerequest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it was made.

    Attributes:
        templates: Names of its pod templates, and how many pods of each.
        parameters: Of its class.
    """

    namespace: str
    name: str
    uid: str
    templates: tuple[tuple[str, int], ...]
    parameters: Mapping[str, str]

    @property
    def resize_request(self) -> str:
        """The name that GKE gives to the resize request, and to its nodes by ``REQUEST_LABEL``."""
        digest = hashlib.sha256(f"{self.namespace}/{self.name}".encode()).hexdigest()
        parts = [part[:limit] for part, limit in zip((self.namespace, self.name, digest), NAME_PARTS_MAX, strict=True)]
        return "-".join(["gke", *parts])

    @property
    def max_run_s(self) -> float:
        """The maximum run time that it asks for; infinite when it does not."""
        return float(self.parameters.get(MAX_RUN_PARAMETER, "inf"))

    @property
    def valid_s(self) -> float:
        """How long after its creation it wants to wait; a value that is no positive number is read over, as GKE does it."""
        value = self.parameters.get(VALID_UNTIL_PARAMETER, "")
        return float(value) if _NUMBER.fullmatch(value) and int(value) > 0 else float("inf")

    def problem(self) -> str:
        """The reason for which GKE refuses it unseen; empty when it does not."""
        value = self.parameters.get(MAX_RUN_PARAMETER, str(MAX_RUN_S_MIN))
        if _NUMBER.fullmatch(value) is None:
            return MAX_RUN_UNREADABLE
        return "" if int(value) >= MAX_RUN_S_MIN else MAX_RUN_TOO_SHORT


def is_queued(thing: Object) -> bool:
    """Whether a ProvisioningRequest is of DWS's class."""
    return bool(thing["spec"].get("provisioningClassName") == PROVISIONING_CLASS)


def asked_by(thing: Object) -> Asked:
    """Read a ProvisioningRequest."""
    metadata, spec = thing["metadata"], thing["spec"]
    return Asked(
        namespace=str(metadata["namespace"]),
        name=name_of(thing),
        uid=uid_of(thing),
        templates=tuple((str(found["podTemplateRef"]["name"]), int(found["count"])) for found in spec["podSets"]),
        parameters={str(name): str(value) for name, value in (spec.get("parameters") or {}).items()},
    )


def states_of(thing: Object) -> tuple[ConditionState, ...]:
    """Its conditions as they are recorded."""
    return tuple(
        ConditionState(
            type=str(found["type"]),
            status=str(found["status"]),
            reason=str(found.get("reason", "")),
            message=str(found.get("message", "")),
        )
        for found in conditions_of(thing)
    )


def owner_of(thing: Object) -> str:
    """Name of the workload that made it; empty when somebody else did."""
    owners = thing["metadata"].get("ownerReferences") or []
    return next((str(owner["name"]) for owner in owners if owner.get("kind") == "Workload"), "")


def chips_of(pod_spec: Object) -> int:
    """Chips that one pod asks for."""
    asked = [(container.get("resources") or {}) for container in pod_spec.get("containers") or []]
    return sum(whole_number((found.get("requests") or found.get("limits") or {}).get(TPU_RESOURCE, 0)) for found in asked)


def nodes_needed(pods: Iterable[int], chips_max: int) -> int | None:
    """Nodes that pods of so many chips each fill, by first fit; None when one of them fits on none."""
    free: list[int] = []
    for chips in sorted(pods, reverse=True):
        if chips > chips_max:
            return None
        place = next((index for index, left in enumerate(free) if left >= chips), None)
        if place is None:
            free.append(chips_max - chips)
        else:
            free[place] -= chips
    return len(free)


def details_of(asked: Asked, pool: NodePool) -> Object:
    """``status.provisioningClassDetails`` of an accepted request.

    Source: GKE's autoscaler, package queuedwrapper (keys), provisioningrequests/manager (values).
    """
    return {
        "NodeGroupName": f"gke-{PROJECT}-{pool.name}-grp",
        "ResizeRequestName": asked.resize_request,
        "NodePoolName": pool.name,
        "AcceleratorType": pool.accelerator,
        "SelectedZone": ZONE,
        "NodePoolAutoProvisioned": "false",
        "PodTemplateName": ", ".join(name for name, _ in asked.templates),
        "ProvisioningMode": "resize_request",
    }


def consumed_by(pod: Object) -> str:
    """Name of the request whose capacity a pod says that it uses, by both annotations; empty when it does not say so, or has ended."""
    annotations = annotations_of(pod)
    is_over = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    is_consumer = not is_over and annotations.get(CLASS_ANNOTATION) == PROVISIONING_CLASS
    return str(annotations.get(CONSUME_ANNOTATION, "")) if is_consumer else ""
