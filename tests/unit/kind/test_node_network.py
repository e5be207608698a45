"""The script that makes the network of a node."""

import json
import subprocess
import time

from harness.kind.node_network import NodeAddress, network_configuration, network_script

OTHERS = [
    NodeAddress(name="a", pod_range="10.244.1.0/24", address="172.18.0.3"),
    NodeAddress(name="b", pod_range="10.244.2.0/24", address="172.18.0.4"),
]


def test_pods_get_addresses_of_the_nodes_own_range() -> None:
    configuration = json.loads(network_configuration("10.244.3.0/24"))

    assert configuration["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.244.3.0/24"}]]


def test_there_is_one_route_to_every_other_node() -> None:
    lines = network_script(OTHERS).splitlines()

    assert "ip route replace 10.244.1.0/24 via 172.18.0.3 proto 117" in lines
    assert "ip route replace 10.244.2.0/24 via 172.18.0.4 proto 117" in lines


def test_stale_routes_of_ours_go_and_no_others() -> None:
    script = network_script(OTHERS)

    assert 'case " 10.244.1.0/24 10.244.2.0/24 " in' in script
    assert 'ip route del "$range" proto 117' in script


def test_the_configuration_appears_whole() -> None:
    lines = network_script([]).splitlines()

    assert lines.index('cat > "$new"') < lines.index('mv "$new" /etc/cni/net.d/10-chaos-harness.conflist')


def test_two_that_write_the_configuration_do_not_take_each_others(tmp_path) -> None:
    script = network_script([]).split("ip -o")[0].replace("/etc/cni/net.d", str(tmp_path))
    writers = [subprocess.Popen(["sh", "-ec", script], stdin=subprocess.PIPE) for _ in range(2)]
    end_s = time.monotonic() + 10.0
    while len(list(tmp_path.iterdir())) < 2:  # both have begun before one ends
        assert time.monotonic() < end_s
    for writer in writers:
        writer.communicate(b"{}", timeout=10)

    assert [writer.returncode for writer in writers] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["10-chaos-harness.conflist"]
