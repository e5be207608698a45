"""GPUs and TPU chips that what is submitted to a cluster holds at once, at most: from what its pods ask for, before anything is made."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.errors import InvalidDocumentError
from harness.kind.topology import TPU_RESOURCE
from harness.quantities import whole_number
from harness.scenario import Scenario
from harness.targets.gcp.planning import Accelerators
from harness.targets.gcp.resource_facts import GPU_RESOURCE
from harness.targets.kubernetes.manifest_files import JOB_FIELD, read_job
from harness.targets.kubernetes.parts import Part

COUNTED = (GPU_RESOURCE, TPU_RESOURCE)

SELLERS = ("nvidia.com", "amd.com", "google.com")
"""Whose devices under other names are no accelerators that could be counted: ``nvidia.com/mig-1g.5gb``, ``cloud-tpus.google.com/v2``."""

SHARED_ADVICE = f"ask for {GPU_RESOURCE} or {TPU_RESOURCE} in `resources` of the containers"

Pods = tuple[Part, int]
"""The spec of pods, and how many run at once."""


def accelerators_of(scenario: Scenario, root: Path) -> Accelerators:
    """What one submission of a scenario's job holds; where that cannot be read, why.

    Args:
        scenario: Whose job.
        root: What the path of its manifest is relative to.
    """
    cluster = scenario.cluster
    if not cluster.manifest:
        return Accelerators(chips=cluster.chips * scenario.workload.ranks)
    path = root / cluster.manifest
    document = f"{JOB_FIELD} {path}"
    held = dict.fromkeys(COUNTED, 0)
    try:
        for one in read_job(path):
            for spec, count in _pods(Part(one, "", document)):
                for name, number in _asked_for(spec).items():
                    held[name] += count * number
    except InvalidDocumentError as error:
        return Accelerators(problem=str(error))
    return Accelerators(gpus=held[GPU_RESOURCE], chips=held[TPU_RESOURCE])


def _pods(thing: Part) -> Iterator[Pods]:
    """The pods of an object.

    Raises:
        InvalidDocumentError: When nobody can tell how many there are.
    """
    if thing.value["kind"] == "Job":
        spec = thing.part("spec")
        yield spec.part("template").part("spec"), _number(spec, "parallelism", 1)
    if thing.value["kind"] != "RayJob":
        return
    spec = thing.part("spec")
    if not spec.value.get("rayClusterSpec"):
        raise spec.refusal("rayClusterSpec", "is not there: what another Ray cluster holds is not known", "write the cluster of the job")
    cluster = spec.part("rayClusterSpec")
    yield cluster.part("headGroupSpec").part("template").part("spec"), 1
    for group in cluster.parts("workerGroupSpecs"):
        is_scaled = bool(cluster.value.get("enableInTreeAutoscaling"))
        yield group.part("template").part("spec"), _replicas(group, is_scaled=is_scaled) * _number(group, "numOfHosts", 1)
    yield spec.part("submitterPodTemplate").part("spec"), 1


def _replicas(group: Part, *, is_scaled: bool) -> int:
    """Of a worker group, at most.

    Raises:
        InvalidDocumentError: When the autoscaler may make as many as it likes.

    Source: kuberay v1.5.0, ray-operator/apis/ray/v1/raycluster_types.go (``maxReplicas`` is 2147483647 where it is not written).
    """
    if is_scaled and group.value.get("maxReplicas") is None:
        raise group.refusal("maxReplicas", "is not written, and the autoscaler may add hosts without end", "write how many there may be")
    return max(_number(group, name, 0) for name in ("replicas", "minReplicas", "maxReplicas"))


def _asked_for(spec: Part) -> Mapping[str, int]:
    """What one pod asks for: its containers together, or a container that runs before them, whichever is more.

    Raises:
        InvalidDocumentError: When it asks for a device that cannot be counted.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers.
    """
    if spec.value.get("resourceClaims"):
        raise spec.refusal("resourceClaims", "ask for devices that are not counted", SHARED_ADVICE)
    together = [_of_container(one) for one in spec.parts("containers")]
    before = [_of_container(one) for one in spec.parts("initContainers")]  # one that goes on beside the others adds to them
    beside = [of for one, of in zip(spec.parts("initContainers"), before, strict=True) if one.value.get("restartPolicy") == "Always"]
    return {
        name: max([sum(of[name] for of in (*together, *beside)), *(of[name] + sum(other[name] for other in beside) for of in before)])
        for name in COUNTED
    }


def _of_container(container: Part) -> Mapping[str, int]:
    resources = container.part("resources")
    if resources.value.get("claims"):
        raise resources.refusal("claims", "ask for devices that are not counted", SHARED_ADVICE)
    asked = [resources.part("requests"), resources.part("limits")]
    for one in asked:
        for name in one.value:
            if name not in COUNTED and _is_device(str(name)):
                raise one.refusal(str(name), "is a device that is not counted", SHARED_ADVICE)
    return {name: max(_number(one, name, 0) for one in asked) for name in COUNTED}


def _is_device(name: str) -> bool:
    seller, slash, _ = name.partition("/")
    return bool(slash) and any(seller == one or seller.endswith(f".{one}") for one in SELLERS)


def _number(part: Part, key: str, otherwise: int) -> int:
    """A number of whole things.

    Raises:
        InvalidDocumentError: When something else is written.
    """
    written = part.value.get(key)
    if written is None:
        return otherwise
    try:
        found = whole_number(written)
    except ValueError:
        found = -1
    if found < 0 or isinstance(written, bool):
        raise part.refusal(key, f"is {written!r}", "write how many, like 4")
    return found
