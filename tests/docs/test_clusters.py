"""docs/clusters.md reaches the cluster by hand as the harness does: with the kubeconfig and the kubectl that its state names."""

from pathlib import Path

import msgspec
import pytest

from harness.kind.cluster import find_cluster, state_path, write_state
from tests.docs.pages import blocks_of, commands_in, run
from tests.unit.clusters import cluster_at

PROGRAM = '#!/bin/sh\necho "$KUBECONFIG: $*"\n'


def test_kubectl_is_found_and_sees_the_cluster_of_the_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HARNESS_CACHE_DIR", "XDG_CACHE_HOME", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    kubectl = tmp_path / "bundle" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(PROGRAM, encoding="utf-8")
    kubectl.chmod(0o755)
    state_path().parent.mkdir(parents=True)
    kubeconfig = state_path().with_name("kubeconfig")
    write_state(msgspec.structs.replace(cluster_at(tmp_path), kubectl=kubectl, kubeconfig=kubeconfig))
    (block,) = [one for one in blocks_of("clusters.md") if one.what == "kubectl"]

    printed = run(" && ".join(command.line for command in commands_in(block)), tmp_path)

    assert find_cluster() is not None
    place = kubeconfig.relative_to(tmp_path)  # `run` leaves its directory out
    assert printed.splitlines() == [f"{place}: get nodes", f"{place}: get pods,jobs,workloads --all-namespaces"]
