"""The versions of a pulled cluster are its own, not those that would have been built here."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.kind import answers
from harness.kind import cluster as cluster_module
from harness.kind.answers import answered_versions
from harness.kind.commands import CommandFailedError
from tests.unit.kind.test_nodes import CLUSTER

IMAGES = """registry.k8s.io/coredns/coredns:v1.12.1
registry.k8s.io/coredns/coredns:v1.12.1
registry.k8s.io/etcd:3.6.4-0
docker.io/kindest/kindnetd:v20250512
registry.k8s.io/kube-apiserver:v1.34.0
"""


def answer(patch: pytest.MonkeyPatch, server: str, program: str) -> None:
    def run(command: Sequence[str], **_options: object) -> str:
        if command[0] == "/bin/kind":
            return program
        return server if "version" in command else IMAGES

    for module in (answers, cluster_module):
        patch.setattr(module, "run_command", run)


def test_each_component_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, '{"clientVersion": {}, "serverVersion": {"gitVersion": "v1.34.0"}}', "kind v0.31.0 go1.25.5 linux/amd64\n")

    assert answered_versions(CLUSTER, Path("/bin/kind")) == {
        "kubernetes": "v1.34.0",
        "kind": "v0.31.0",
        "etcd": "3.6.4-0",
        "coredns": "v1.12.1",
    }


@pytest.mark.parametrize(
    ("server", "program"), [("{}", "kind v0.31.0"), ("no", "kind v0.31.0"), ('{"serverVersion": {"gitVersion": "v1"}}', "")]
)
def test_an_answer_without_a_version_is_an_error(monkeypatch: pytest.MonkeyPatch, server: str, program: str) -> None:
    answer(monkeypatch, server, program)

    with pytest.raises(CommandFailedError, match="names no version"):
        answered_versions(CLUSTER, Path("/bin/kind"))
