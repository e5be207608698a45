"""What a run has left on a project's cluster, found where it was written down to have been, and removed."""

import os
from contextlib import closing

from harness.clock import Clock
from harness.targets.gcp.adopting import adopt
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import EMULATOR_VARIABLE, connect
from harness.targets.gcp.failures import ResourceMissingError
from harness.targets.gcp.footprint import read_footprint
from harness.targets.gcp.leftovers import is_gone
from harness.targets.gcp.secrets import Secrets
from harness.targets.gke.namespaces import namespace_of


def left_behind(run_id: str) -> list[str]:
    """What a run has left, one line each; nobody is asked."""
    footprint = read_footprint(run_id)
    if footprint is None or not footprint.is_of_cluster:
        return []
    return [f"namespace {namespace_of(run_id)} in {footprint.place.cluster_name}"]


def remove_left_behind(run_id: str, clock: Clock) -> list[str]:
    """Remove it, and say so. Harmless twice.

    Raises:
        HarnessError: When the project or its cluster does not answer, or refuses.
    """
    footprint = read_footprint(run_id)
    if footprint is None or not footprint.is_of_cluster or is_gone(footprint):
        return []
    from harness.targets.gke.ending import remove_namespace
    from harness.targets.gke.server import ServerApi

    secrets = Secrets()
    environment = {**os.environ, EMULATOR_VARIABLE: footprint.emulator}
    with closing(connect(footprint.place.project, environment, secrets)) as clients:
        caller = Caller(clock=clock, secrets=secrets, renew=clients.renew, problem=clients.problem)
        try:
            cluster = adopt(clients, caller, footprint.place, may_be_hurt=False)
        except ResourceMissingError:
            return [f"cluster {footprint.place.cluster_name} is gone, and with it what the run had there"]
        with closing(ServerApi(cluster, clients, caller)) as api:
            return remove_namespace(api, run_id, clock)
