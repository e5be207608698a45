"""A node is read from what Ray tells its raylet, and from nothing else."""

import pytest

from harness.targets.local.ray_nodes import RayNode, find_control_stores, find_nodes, read_node

ARGUMENTS = [
    "--raylet_socket_name=/tmp/ray/session/sockets/raylet",
    "--node_id=c0ca85",
    "--static_resource_list=node:127.0.0.1,1.0,CPU,2",
    "--python_worker_command=/venv/bin/python /venv/ray/setup_worker.py --node-ip-address=127.0.0.1",
    "--gcs-address=127.0.0.1:39069",
    "--labels=",
]


def test_a_node_that_is_not_the_head():
    assert read_node(7, ARGUMENTS) == RayNode(
        node_id="c0ca85", raylet=7, is_head=False, address="127.0.0.1:39069", python="/venv/bin/python"
    )


def test_the_head():
    node = read_node(7, [*ARGUMENTS, "--head"])

    assert node is not None
    assert node.is_head


def test_an_interpreter_with_a_space_in_its_path():
    node = read_node(7, [*ARGUMENTS, '--python_worker_command="/my venv/bin/python" setup_worker.py'])

    assert node is not None
    assert node.python == "/my venv/bin/python"


@pytest.mark.parametrize("missing", ["--node_id", "--gcs-address", "--python_worker_command"])
def test_a_command_line_without_what_matters_is_no_node(missing):
    assert read_node(7, [argument for argument in ARGUMENTS if not argument.startswith(missing)]) is None


def test_a_command_line_that_cannot_be_split_is_no_node():
    assert read_node(7, [*ARGUMENTS, '--python_worker_command="/venv']) is None


def test_processes_that_are_gone_are_no_parts():
    assert find_nodes([2**22 + 1]) == []
    assert find_control_stores([2**22 + 1]) == []
