"""What earlier inputs left is told from what is needed."""

from pathlib import Path

import msgspec

from harness.kind.bundle.stale import stale_folders, stale_images
from tests.unit.kind.test_nodes import CLUSTER


def test_folders_of_other_inputs_are_stale_but_for_what_a_cluster_uses(tmp_path: Path) -> None:
    for name in ("environment/old", "environment/mounted", "environment/new", "kubernetes/used", "kubernetes/new", "other/old"):
        (tmp_path / name).mkdir(parents=True)
    cluster = msgspec.structs.replace(
        CLUSTER, environment_dir=tmp_path / "environment/mounted", kubectl=tmp_path / "kubernetes/used/kubectl"
    )

    stale = stale_folders([tmp_path / "environment/new", tmp_path / "kubernetes/new", tmp_path / "missing/new"], cluster)

    assert stale == [tmp_path / "environment/old"]


def test_only_images_of_ours_that_nobody_needs_are_stale() -> None:
    present = ["chaos-harness-job:old", "chaos-harness-job:new", "chaos-harness-node:running", "python:3.11", "chaos-harness/pause:3.10"]

    assert stale_images(present, {"chaos-harness-job:new", "chaos-harness-node:running"}) == ["chaos-harness-job:old"]
