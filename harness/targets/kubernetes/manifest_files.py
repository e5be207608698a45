"""Manifests as people write them: YAML documents, read and checked before anything is made.

A run acts in its own namespace. What it brings with its job lies in that and goes with it; of the cluster's own it touches Kueue's objects
alone, those of its queues, which are written down before and put back after.
"""

from collections.abc import Collection
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError
from harness.kind.topology import TPU_RESOURCE
from harness.quantities import whole_number
from harness.targets.kubernetes.api import Object, resource_of
from harness.targets.kubernetes.parts import Part

GUIDE_QUEUES = "guide_b_queues.yaml"

JOB_FIELD, QUEUES_FIELD = "cluster.manifest", "cluster.queues"
"""Of a scenario: what names the files."""

QUEUE_KINDS = (
    "ClusterQueue",
    "LocalQueue",
    "ResourceFlavor",
    "AdmissionCheck",
    "ProvisioningRequestConfig",
    "Topology",
    "WorkloadPriorityClass",
)
"""What a file of queues may bring: ``queue_objects`` puts the cluster's back, and a LocalQueue goes with the namespace."""

JOB_KINDS = ("Job", "RayJob", "ConfigMap", "Service", "ResourceQuota", "LocalQueue")
"""What a job's manifest may bring: the job, and what lies in its namespace."""


def guide_queues() -> list[Object]:
    """The queue objects of the guide."""
    text = resources.files("harness.targets.kubernetes").joinpath("manifests").joinpath(GUIDE_QUEUES).read_text(encoding="utf-8")
    return parse_manifest(text, document=GUIDE_QUEUES)


def queues_of(launch: Launch) -> list[Object]:
    """The queue objects of a run: its own, or the guide's.

    Raises:
        InvalidDocumentError: As ``read_queues``.
    """
    return read_queues(launch.root / launch.cluster.queues) if launch.cluster.queues else guide_queues()


def queues_document(launch: Launch) -> str:
    """Where the queues of a run are written; empty: they are the guide's."""
    return f"{QUEUES_FIELD} {launch.root / launch.cluster.queues}" if launch.cluster.queues else ""


def job_document(launch: Launch) -> str:
    """Where the job of a run is written; empty: it is made for the workload."""
    return f"{JOB_FIELD} {launch.root / launch.cluster.manifest}" if launch.cluster.manifest else ""


def read_queues(path: Path) -> list[Object]:
    """Kueue's objects for a run.

    Raises:
        InvalidDocumentError: When the file cannot be read, or holds something else.
    """
    problem = "is none of the queues, and of a file of queues nothing else is put back after the run"
    advice = f"it may bring {', '.join(QUEUE_KINDS)}; write a job, and what belongs to it, into the file that `cluster.manifest` names"
    document = f"{QUEUES_FIELD} {path}"
    found = _only(QUEUE_KINDS, read_manifest(path, field=QUEUES_FIELD), document=document, problem=problem, advice=advice)
    for number, one in enumerate(found):
        _check_queue(Part(one, f"document {number + 1}", document))
    return found


def read_job(path: Path) -> list[Object]:
    """A job and what belongs to it.

    Raises:
        InvalidDocumentError: When the file cannot be read, or holds what does not lie in a namespace.
    """
    problem = "belongs to the whole cluster, and a job brings only what lies in its run's namespace and goes with it"
    advice = "write it, with all that the queues need, into the file that `cluster.queues` names: that is put back after the run"
    document = f"{JOB_FIELD} {path}"
    found = _only(JOB_KINDS, read_manifest(path, field=JOB_FIELD), document=document, problem=problem, advice=advice)
    for number, one in enumerate(found):
        _check_queue(Part(one, f"document {number + 1}", document))
    return found


def read_manifest(path: Path, *, field: str = "") -> list[Object]:
    """The objects of a file; ``field`` of the scenario names it.

    Raises:
        InvalidDocumentError: When it cannot be read, or an object is none that the cluster target knows.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        advice = "its path is relative to the root of the catalogue" if isinstance(error, FileNotFoundError) else ""
        raise InvalidDocumentError(document=f"{field} {path}".lstrip(), field="", problem=problem, advice=advice) from error
    return parse_manifest(text, document=f"{field} {path}".lstrip())


def parse_manifest(text: str, *, document: str) -> list[Object]:
    """The objects of a text.

    Raises:
        InvalidDocumentError: As ``read_manifest``.
    """
    try:
        found: list[Any] = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as error:
        raise InvalidDocumentError(document=document, field="", problem=f"is no YAML: {error}") from error
    for number, one in enumerate(found):
        if not isinstance(one, dict) or not isinstance(one.get("metadata"), dict) or not one["metadata"].get("name"):
            raise InvalidDocumentError(document=document, field=f"document {number + 1}", problem="is no object with a name")
        if resource_of(one) is None:
            problem = f"{one.get('apiVersion')}/{one.get('kind')} {one['metadata']['name']} is nothing that a run may bring"
            advice = f"leave it out: a job's manifest may bring {', '.join(JOB_KINDS)}; a file of queues {', '.join(QUEUE_KINDS)}"
            raise InvalidDocumentError(document=document, field=f"document {number + 1}", problem=problem, advice=advice)
        whole = Part(one, f"document {number + 1}", document)
        whole.check_name()
        whole.check_metadata()
    return found


def _only(kinds: Collection[str], found: list[Object], *, document: str, problem: str, advice: str) -> list[Object]:
    """See that all objects are of some kinds.

    Raises:
        InvalidDocumentError: When one is not.
    """
    for number, one in enumerate(found):
        if one["kind"] not in kinds:
            what = f"{one['kind']} {one['metadata']['name']} {problem}"
            raise InvalidDocumentError(document=document, field=f"document {number + 1}", problem=what, advice=advice)
    return found


def _check_queue(thing: Part) -> None:
    """See that what a queue says of flavors and quota stands where it belongs; of another object, that its specification is one.

    Raises:
        InvalidDocumentError: When it does not.
    """
    spec = thing.part("spec")
    if thing.value["kind"] == "LocalQueue" and not isinstance(spec.value.get("clusterQueue"), str):
        raise spec.refusal("clusterQueue", f"is no name but {spec.value.get('clusterQueue')!r}", "name the ClusterQueue behind it")
    if thing.value["kind"] != "ClusterQueue":
        return
    for group in spec.parts("resourceGroups"):
        group.listed("coveredResources")
        for flavor in group.named("flavors"):
            for quota in flavor.named("resources"):
                _check_quota(quota)


def _check_quota(quota: Part) -> None:
    """See that a quota is one: of chips a number, for faults count with it.

    Raises:
        InvalidDocumentError: When it is none.
    """
    written = quota.value.get("nominalQuota")
    try:
        number = whole_number(written) if quota.value["name"] == TPU_RESOURCE else 0
    except ValueError:
        number = -1
    if number < 0 or not isinstance(written, str | int | float) or isinstance(written, bool):
        raise quota.refusal("nominalQuota", f"is {written!r}", "write how much of the resource there is, like 16")
