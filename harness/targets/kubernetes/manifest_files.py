"""Manifests as people write them: YAML documents, read and checked before anything is made."""

from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from harness.errors import InvalidDocumentError
from harness.targets.kubernetes.api import Object, resource_of

GUIDE_QUEUES = "guide_b_queues.yaml"


def guide_queues() -> list[Object]:
    """The queue objects of the guide."""
    text = resources.files("harness.targets.kubernetes").joinpath("manifests").joinpath(GUIDE_QUEUES).read_text(encoding="utf-8")
    return parse_manifest(text, document=GUIDE_QUEUES)


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
            kind = f"{one.get('apiVersion')}/{one.get('kind')}"
            advice = "a run may bring Jobs, RayJobs, ConfigMaps, Services, and Kueue's objects"
            raise InvalidDocumentError(
                document=document, field=f"document {number + 1}", problem=f"{kind} is not known here", advice=advice
            )
    return found
