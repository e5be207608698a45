"""Machines behind the nodes of a cluster: reset, deleted, maintained. Each is asked for at once and waited for beside the loop."""

import re
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from harness.targets.gcp.calling import Caller, Effect, Request
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.operation_states import await_zone_operation
from harness.targets.gcp.works import Work

if TYPE_CHECKING:
    from google.cloud.compute_v1 import Operation

SERVICE = "compute.googleapis.com"

PROVIDER_ID = re.compile(r"gce://(?P<project>[^/]+)/(?P<zone>[^/]+)/(?P<name>[^/]+)")
"""``spec.providerID`` of a node. Source: https://github.com/kubernetes/cloud-provider-gcp, providers/gce (ProviderName)."""

RESET_S = 300.0
DELETED_S = 600.0
MAINTAINED_S = 3600.0
"""An upper bound of an hour is told for accelerators. Source: handle-disruption-gpu-tpu, not measured."""


class Machine(NamedTuple):
    """A machine of Compute Engine."""

    project: str
    zone: str
    name: str

    @property
    def full_name(self) -> str:
        """As Compute Engine names it."""
        return f"projects/{self.project}/zones/{self.zone}/instances/{self.name}"


def machine_of(provider_id: str, project: str) -> Machine:
    """The machine of a node.

    Raises:
        LookupError: When the node names none, or one in another project.
    """
    found = PROVIDER_ID.fullmatch(provider_id)
    if found is None:
        raise LookupError(f"{provider_id!r} names no machine of Compute Engine")
    if found["project"] != project:
        raise LookupError(f"{provider_id} is of project {found['project']}, and only {project} may be touched")
    return Machine(found["project"], found["zone"], found["name"])


class Machines:
    """Acts on machines of one project."""

    def __init__(self, clients: Clients, caller: Caller) -> None:
        self._clients, self._caller = clients, caller

    def is_spot(self, machine: Machine) -> bool:
        """Whether it can be preempted.

        Raises:
            CallError: When Compute Engine does not say.
        """
        asked = self._asked(machine)
        request = Request(service=SERVICE, method="instances.get", resource=machine.full_name)
        found = self._caller.call(request, lambda timeout_s: self._clients.instances.get(request=asked, retry=None, timeout=timeout_s))
        return found.scheduling.provisioning_model == "SPOT" or found.scheduling.preemptible

    def reset(self, machine: Machine) -> Work:
        """Boot it anew at once, without a word to what runs there.

        Raises:
            CallError: When Compute Engine does not do it.
        """
        return self._begin("reset", machine, self._clients.instances.reset_unary, RESET_S)

    def delete(self, machine: Machine) -> Work:
        """Delete it, as its host would lose it; its managed instance group makes another one.

        Source: https://cloud.google.com/compute/docs/instance-groups/about-repair-in-migs (an instance that is gone is made again).

        Raises:
            CallError: When Compute Engine does not do it.
        """
        return self._begin("delete", machine, self._clients.instances.delete_unary, DELETED_S)

    def simulate_maintenance(self, machine: Machine) -> Work:
        """Let it have a maintenance of its host now; one that can be preempted is.

        Source: https://cloud.google.com/compute/docs/instances/simulating-host-maintenance,
            https://cloud.google.com/compute/docs/instances/create-use-spot (test preemption settings).

        Raises:
            CallError: When Compute Engine does not do it.
        """
        return self._begin("simulateMaintenanceEvent", machine, self._clients.instances.simulate_maintenance_event_unary, MAINTAINED_S)

    def _begin(self, verb: str, machine: Machine, act: Callable[..., "Operation"], lasts_s: float) -> Work:
        """Ask once, however often it is sent: by its id Compute Engine knows a request that it has done."""
        asked = {**self._asked(machine), "request_id": str(uuid.uuid4())}
        request = Request(service=SERVICE, method=f"instances.{verb}", resource=machine.full_name, effect=Effect.IDEMPOTENT)
        operation = self._caller.call(request, lambda timeout_s: act(request=asked, retry=None, timeout=timeout_s))

        def wait(caller: Caller) -> None:
            await_zone_operation(self._clients, caller, operation.name, project=machine.project, zone=machine.zone, deadline_s=lasts_s)

        return Work(f"{verb} of {machine.full_name}", wait)

    def _asked(self, machine: Machine) -> dict[str, str]:
        return {"project": machine.project, "zone": machine.zone, "instance": machine.name}
