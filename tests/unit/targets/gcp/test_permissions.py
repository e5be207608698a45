"""What runs on a cluster need of the project is all in the list that people grant by."""

import inspect
import re

from harness.targets.gcp import machines, pool_nodes
from harness.targets.gcp.permissions import UNASKED_CLUSTER_PERMISSIONS


def test_every_call_for_a_machine_has_its_permission_in_the_list():
    text = "".join(map(inspect.getsource, (machines, pool_nodes)))
    called = set(re.findall(r'_begin\("(\w+)"', text)) | set(re.findall(r'method="instances\.(\w+)"', text))
    assert called == {"get", "list", "reset", "delete", "simulateMaintenanceEvent"}
    assert {f"compute.instances.{verb}" for verb in called} | {"compute.zoneOperations.get"} <= set(UNASKED_CLUSTER_PERMISSIONS)
