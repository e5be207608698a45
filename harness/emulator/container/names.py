"""Names of clusters, node pools and operations, in both forms that requests have: one name, or a field for each part."""

import re
from dataclasses import dataclass
from typing import Any

from harness.emulator.failures import ApiError, invalid_argument

_ZONE = re.compile(r"[a-z]+(?:-[a-z]+)+\d{1,2}-[a-z]{1,2}")
_NAME = re.compile(
    r"projects/(?P<project>[^/]+)/(?:locations|zones)/(?P<location>[^/]+)"
    r"(?:/clusters/(?P<cluster>[^/]+)(?:/nodePools/(?P<pool>[^/]+))?|/operations/(?P<operation>[^/]+))?"
)

EVERYWHERE = "-"
"""As a location: all of them. Source: the comment of ``ListClustersRequest.parent`` in google.container.v1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """What a request is about; what it does not name is empty.

    Attributes:
        project: Its id.
        location: A zone or a region; ``-``: all.
        cluster: Its short name.
        pool: Short name of a node pool.
        operation: Its id.
    """

    project: str
    location: str
    cluster: str = ""
    pool: str = ""
    operation: str = ""

    @property
    def is_zonal(self) -> bool:
        """Whether the location is a zone."""
        return _ZONE.fullmatch(self.location) is not None

    @property
    def region(self) -> str:
        """The location, or the region of the zone."""
        return self.location.rpartition("-")[0] if self.is_zonal else self.location

    @property
    def parent(self) -> str:
        """The location as operations are filed below it."""
        return f"projects/{self.project}/locations/{self.location}"

    @property
    def place(self) -> str:
        """The location as Kubernetes Engine writes it in messages and links: a zone is named as one."""
        return f"projects/{self.project}/{'zones' if self.is_zonal else 'locations'}/{self.location}"

    @property
    def cluster_path(self) -> str:
        """The whole name of the cluster, as in messages and links."""
        return f"{self.place}/clusters/{self.cluster}"

    @property
    def path(self) -> str:
        """The whole name of what is named."""
        if self.operation:
            return f"{self.place}/operations/{self.operation}"
        if not self.cluster:
            return self.place
        return f"{self.cluster_path}/nodePools/{self.pool}" if self.pool else self.cluster_path


def name_in(request: Any) -> Name:
    """What a request names: by ``name`` or ``parent``, or by the older fields ``project_id``, ``zone``, ``cluster_id``, ``node_pool_id``.

    Raises:
        ApiError: INVALID_ARGUMENT when it names nothing.
    """
    text = str(getattr(request, "name", "") or getattr(request, "parent", ""))
    if not text:
        return _from_fields(request)
    found = _NAME.fullmatch(text)
    if found is None:
        raise invalid_argument("name", f"{text[:200]!r} is no name of a location, a cluster, a node pool or an operation")
    return Name(**{part: value or "" for part, value in found.groupdict().items()})


def told_name(request: Any) -> str:
    """The whole name for the journal; what was sent where it is none."""
    try:
        return name_in(request).path
    except ApiError:
        return str(getattr(request, "name", "") or getattr(request, "parent", ""))


def _from_fields(request: Any) -> Name:
    parts = {"project": "project_id", "location": "zone", "cluster": "cluster_id", "pool": "node_pool_id", "operation": "operation_id"}
    name = Name(**{part: str(getattr(request, field, "")) for part, field in parts.items()})
    if not name.project or not name.location:
        raise invalid_argument("name", "the request names no location: projects/[PROJECT]/locations/[LOCATION]")
    return name
