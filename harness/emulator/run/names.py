"""Names of Cloud Run's resources.

Source: https://docs.cloud.google.com/run/docs/reference/rpc/google.cloud.run.v2
"""

import re
from dataclasses import dataclass, replace
from typing import Self

from harness.emulator.failures import ApiError, invalid_argument
from harness.emulator.project import ProjectState

ANY = "-"
"""Stands for all jobs, or all executions, in the parent of a list."""

_SEGMENTS = ("projects", "locations", "jobs", "executions", "tasks")

JOB_ID = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")

_LOCATION = re.compile(r"[a-z]+(?:-[a-z]+)+\d{1,2}")

LABEL_LENGTH_MAX = 63
"""Of a key and of a value. Source: https://docs.cloud.google.com/resource-manager/docs/labels-overview#requirements"""

JOB_ID_LENGTH_MAX = 63
"""Source: https://docs.cloud.google.com/run/docs/create-jobs (a job name has fewer than 64 characters)"""


@dataclass(frozen=True, slots=True)
class RunName:
    """The name of a location, a job, an execution or a task, as far as it goes."""

    project: str
    location: str
    job: str = ""
    execution: str = ""
    task: str = ""

    @classmethod
    def parse(cls, text: str, kind: str, *, field: str = "name") -> Self:
        """Read a name of a kind: ``locations``, ``jobs``, ``executions`` or ``tasks``.

        Raises:
            ApiError: INVALID_ARGUMENT when it is no such name.
        """
        wanted = _SEGMENTS[: _SEGMENTS.index(kind) + 1]
        parts = text.split("/")
        if tuple(parts[::2]) != wanted or len(parts) != 2 * len(wanted) or not all(parts):
            form = "/".join(f"{segment}/{{{segment[:-1]}}}" for segment in wanted)
            raise invalid_argument(field, f"Invalid resource name '{text}'; expected the form '{form}'.")
        return cls(*parts[1::2])

    def __str__(self) -> str:
        values = (self.project, self.location, self.job, self.execution, self.task)
        return "/".join(f"{segment}/{value}" for segment, value in zip(_SEGMENTS, values, strict=True) if value)

    def in_project(self, project: ProjectState) -> Self:
        """The same with the id of the project, where it was named by its number."""
        return replace(self, project=project.name)

    @property
    def parent(self) -> str:
        """Its location: where operations on it are."""
        return f"projects/{self.project}/locations/{self.location}"

    def job_name(self) -> str:
        """The job that it is, or is of."""
        return f"{self.parent}/jobs/{self.job}"

    def matches(self, other: "RunName") -> bool:
        """Whether another name is one that this one, of a parent, stands for."""
        return (
            (self.project, self.location) == (other.project, other.location)
            and self.job in ("", ANY, other.job)
            and self.execution in ("", ANY, other.execution)
        )


def check_job_id(job_id: str) -> None:
    """See that a job may be called so.

    Raises:
        ApiError: INVALID_ARGUMENT when it may not.
    """
    if not JOB_ID.fullmatch(job_id) or len(job_id) > JOB_ID_LENGTH_MAX:
        raise invalid_argument(
            "job_id",
            "must contain only lowercase letters, numbers and hyphens, begin with a letter, not end with a hyphen, "
            f"and have fewer than 64 characters; got '{job_id}'",
        )


def check_location(name: "RunName") -> None:
    """Any name of the form of a region is taken for one: the emulator knows no list of them. The answer to another one is assumed.

    Raises:
        ApiError: PERMISSION_DENIED when it cannot be a region.
    """
    if not _LOCATION.fullmatch(name.location):
        raise ApiError("PERMISSION_DENIED", f"Location {name.location} is not found or access is unauthorized.")


def check_label(key: str, value: str, *, field: str) -> None:
    """See that a resource may have a label: letters of any script but no capitals, digits, ``_`` and ``-``, a letter first in the key.

    Raises:
        ApiError: INVALID_ARGUMENT when it may not.
    """
    is_good = all(character in "_-" or character.isdigit() or _is_small(character) for character in key + value)
    if not is_good or not _is_small(key[:1]) or max(len(key), len(value)) > LABEL_LENGTH_MAX:
        raise invalid_argument(
            field,
            f"'{key}: {value}' is no label: small letters, digits, underscores and hyphens, at most {LABEL_LENGTH_MAX} each, "
            "and a letter first in the key",
        )


def _is_small(character: str) -> bool:
    return character.isalpha() and character == character.lower()
