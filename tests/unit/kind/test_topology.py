"""Topologies: guide B's by default, read from a file, refused where no cluster can be made of them."""

from pathlib import Path

import pytest

from harness.errors import InvalidDocumentError
from harness.kind.topology import DEFAULT_TOPOLOGY, NodePool, Taint, Topology, load_topology

WRITTEN = """
[[pools]]
name = "default-pool"
nodes = 1

[[pools]]
name = "spot-pool"
nodes = 3
tpu_chips = 4
accelerator = "tpu-v6e-slice"
tpu_topology = "2x2"
taints = [{key = "google.com/tpu", value = "present"}]
"""


def test_the_default_is_guide_bs_three_pools() -> None:
    assert [pool.name for pool in DEFAULT_TOPOLOGY.pools] == ["default-pool", "on-demand-pool", "dws-pool"]


@pytest.mark.parametrize("name", ["on-demand-pool", "dws-pool"])
def test_one_slice_of_four_hosts_fills_a_tpu_pool(name: str) -> None:
    pool = DEFAULT_TOPOLOGY.pool(name)

    assert pool is not None
    assert pool.nodes * pool.tpu_chips == 4 * 4


def test_only_the_dws_pool_is_tainted_as_queued() -> None:
    queued = [pool.name for pool in DEFAULT_TOPOLOGY.pools if any(taint.key == "cloud.google.com/gke-queued" for taint in pool.taints)]

    assert queued == ["dws-pool"]


def test_a_pool_carries_gkes_labels() -> None:
    pool = NodePool(name="p", nodes=1, tpu_chips=4, accelerator="tpu-v6e-slice", tpu_topology="2x2")

    assert pool.labels() == {
        "cloud.google.com/gke-nodepool": "p",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "2x2",
    }


def test_a_pool_without_tpus_carries_its_name_only() -> None:
    assert NodePool(name="p", nodes=1).labels() == {"cloud.google.com/gke-nodepool": "p"}


def test_a_file_becomes_a_topology(tmp_path: Path) -> None:
    path = tmp_path / "topology.toml"
    path.write_text(WRITTEN)

    assert load_topology(path) == Topology(
        pools=(
            NodePool(name="default-pool", nodes=1),
            NodePool(
                name="spot-pool",
                nodes=3,
                tpu_chips=4,
                accelerator="tpu-v6e-slice",
                tpu_topology="2x2",
                taints=(Taint(key="google.com/tpu", value="present"),),
            ),
        )
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pools = []", "pools: there is none"),
        ('[[pools]]\nname = "a"\nnodes = 0', "pools.a.nodes: it is 0"),
        ('[[pools]]\nname = "a"\nnodes = 1\ntpu_chips = -1', "pools.a.tpu_chips: it is -1"),
        ('[[pools]]\nname = "a"\nnodes = 1\n[[pools]]\nname = "a"\nnodes = 1', "two are named 'a'"),
        ('[[pools]]\nname = "a"\nnodes = 1\ngpus = 8', "gpus"),
        ("[[pools", "topology.toml"),
    ],
)
def test_what_no_cluster_can_be_made_of_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "topology.toml"
    path.write_text(text)

    with pytest.raises(InvalidDocumentError, match=problem):
        load_topology(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocumentError, match=r"nowhere\.toml"):
        load_topology(tmp_path / "nowhere.toml")


def test_the_topology_that_the_manual_shows_is_one(tmp_path: Path) -> None:
    manual = (Path(__file__).parents[3] / "docs" / "clusters.md").read_text(encoding="utf-8")
    path = tmp_path / "topology.toml"
    path.write_text(manual.partition("```toml\n")[2].partition("```")[0])

    topology = load_topology(path)
    assert [(pool.name, pool.nodes) for pool in topology.pools] == [("default-pool", 1), ("on-demand-pool", 4), ("dws-pool", 2)]
