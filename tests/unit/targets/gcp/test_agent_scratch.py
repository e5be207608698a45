"""What an agent that was killed has left on an emulator is found by its run."""

from harness.protocol.barrier import socket_directory_prefix
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.gcp.agent.attendant import _scratch_prefix


def test_its_directory_is_named_as_those_of_the_run_are():
    assert _scratch_prefix({RUN_ID_VARIABLE: "0123456789ab"}) == socket_directory_prefix("0123456789ab")
    assert _scratch_prefix({}) == "harness-"
