"""Names of zones, regions and instances, and the addresses by which Compute Engine's resources name one another."""

import re
from dataclasses import dataclass

from harness.emulator.compute.refusals import invalid_field

INSTANCE_EXPRESSION = "[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?"
_ZONE = re.compile(r"[a-z]+(?:-[a-z]+)+\d{1,2}-[a-z]{1,2}")
_REGION = re.compile(r"[a-z]+(?:-[a-z]+)+\d{1,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A zone of a project.

    Attributes:
        project: Its id.
        name: Like ``us-east5-b``.
    """

    project: str
    name: str

    @property
    def region(self) -> str:
        """Where it lies, like ``us-east5``."""
        return self.name.rpartition("-")[0]

    @property
    def path(self) -> str:
        """``projects/P/zones/Z``."""
        return f"projects/{self.project}/zones/{self.name}"

    def instance(self, name: str) -> str:
        """``projects/P/zones/Z/instances/I``."""
        return f"{self.path}/instances/{name}"


def check_zone(name: str) -> None:
    """Any name of the form of a zone is taken for one: the emulator knows no list of them.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if not _ZONE.fullmatch(name):
        raise invalid_field("zone", name, f"Must be a match of regex '{_ZONE.pattern}'")


def check_region(name: str) -> None:
    """As ``check_zone``.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if not _REGION.fullmatch(name):
        raise invalid_field("region", name, f"Must be a match of regex '{_REGION.pattern}'")


def check_instance_name(name: str) -> None:
    """See that an instance can have the name.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if not re.fullmatch(INSTANCE_EXPRESSION, name):
        raise invalid_field("resource.name", name, f"Must be a match of regex '{INSTANCE_EXPRESSION}'")


def address(host: str, path: str) -> str:
    """The whole address of a resource."""
    return f"http://{host}/compute/v1/{path}"
