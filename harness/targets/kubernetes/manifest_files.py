"""Manifests as people write them: YAML documents, read and checked before anything is made.

A run acts in its own namespace. What it brings with its job lies in that and goes with it; of the cluster's own it touches Kueue's objects
alone, those of its queues, which are written down before and put back after.
"""

from collections.abc import Collection
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from harness.errors import InvalidDocumentError
from harness.targets.kubernetes.api import Object, resource_of

GUIDE_QUEUES = "guide_b_queues.yaml"

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


def read_queues(path: Path) -> list[Object]:
    """Kueue's objects for a run.

    Raises:
        InvalidDocumentError: When the file cannot be read, or holds something else.
    """
    problem = "is none of the queues, and of a file of queues nothing else is put back after the run"
    advice = f"it may bring {', '.join(QUEUE_KINDS)}; write a job, and what belongs to it, into the file that `cluster.manifest` names"
    return _only(QUEUE_KINDS, read_manifest(path), document=str(path), problem=problem, advice=advice)


def read_job(path: Path) -> list[Object]:
    """A job and what belongs to it.

    Raises:
        InvalidDocumentError: When the file cannot be read, or holds what does not lie in a namespace.
    """
    problem = "belongs to the whole cluster, and a job brings only what lies in its run's namespace and goes with it"
    advice = "write it, with all that the queues need, into the file that `cluster.queues` names: that is put back after the run"
    return _only(JOB_KINDS, read_manifest(path), document=str(path), problem=problem, advice=advice)


def read_manifest(path: Path) -> list[Object]:
    """The objects of a file.

    Raises:
        InvalidDocumentError: When it cannot be read, or an object is none that the cluster target knows.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidDocumentError(document=str(path), field="", problem=str(error)) from error
    return parse_manifest(text, document=str(path))


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
