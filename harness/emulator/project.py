"""Projects and who may do what in them: permissions, quotas, and access tokens that expire."""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from harness.emulator.failures import ApiError, permission_denied, quota_exceeded, unauthenticated

_PROJECT_OF = re.compile(r"(?:^|/)projects/([^/]+)")


@dataclass(slots=True, kw_only=True)
class ProjectState:
    """One project.

    Attributes:
        name: Its id.
        number: Its number; Google takes either.
        granted: The permissions that the caller has; None: all.
        quotas: Limits by the name of the quota; what is not named has none.
    """

    name: str
    number: int
    granted: frozenset[str] | None = None
    quotas: dict[str, float] = field(default_factory=dict)

    def has(self, permission: str) -> bool:
        """Whether the caller has the permission."""
        return self.granted is None or permission in self.granted

    def require_quota(self, quota: str, wanted: float, *, place: str = "", service: str = "compute.googleapis.com") -> None:
        """See that there is quota for ``wanted`` in all, what is in use included.

        Raises:
            ApiError: RESOURCE_EXHAUSTED when there is not.
        """
        limit = self.quotas.get(quota)
        if limit is not None and wanted > limit:
            raise quota_exceeded(quota, limit=limit, place=place, service=service)


class Projects:
    """The projects that there are, by id and by number."""

    def __init__(self, projects: Iterable[ProjectState]) -> None:
        self._projects = {project.name: project for project in projects}

    def __iter__(self) -> Iterator[ProjectState]:
        return iter(self._projects.values())

    def find(self, name: str) -> ProjectState | None:
        """A project by its id or number."""
        return self._projects.get(name) or next((project for project in self if str(project.number) == name), None)

    def require(self, permission: str, resource: str, *, project: str = "") -> ProjectState:
        """The project of a resource, if the caller has the permission in it.

        Args:
            permission: Like ``run.jobs.create``.
            resource: Named in the error; where it holds ``projects/P`` that says which project.
            project: Which project, for a resource whose name does not say it.

        Raises:
            ApiError: PERMISSION_DENIED when it has not, or there is no such project.
        """
        found = self.find(project or project_of(resource))
        if found is None or not found.has(permission):
            raise permission_denied(permission, resource)
        return found


def project_of(resource: str) -> str:
    """The project that a resource name names; empty when it names none."""
    match = _PROJECT_OF.search(resource)
    return match.group(1) if match else ""


class Callers:
    """Access tokens: any is good until it is made to expire."""

    def __init__(self) -> None:
        self._expired: set[str] = set()
        self._lock = threading.Lock()

    def expire(self, token: str) -> None:
        """A token is good no more; ``""`` stands for callers without one."""
        with self._lock:
            self._expired.add(token)

    def renew(self, token: str) -> None:
        """Take that back."""
        with self._lock:
            self._expired.discard(token)

    def check(self, headers: Mapping[str, str]) -> None:
        """See that the caller's token is good; header names are in small letters.

        Raises:
            ApiError: UNAUTHENTICATED when it is not.
        """
        token = headers.get("authorization", "").removeprefix("Bearer ")
        with self._lock:
            is_expired = token in self._expired
        if is_expired:
            error: ApiError = unauthenticated()
            raise error
