"""The recorded state of a cluster, and what is said when it cannot be used."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from harness.kind import cluster as module
from harness.kind import nodes as nodes_module
from harness.kind.cluster import KindCluster, find_cluster, write_state
from harness.kind.commands import CommandFailedError
from harness.kind.health import problem_with, problem_with_operators, reason_and_advice
from harness.kind.nodes import pools_by_node
from harness.kind.topology import DEFAULT_TOPOLOGY
from harness.kind.versions import versions


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KindCluster:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("HARNESS_CLUSTER_SHARED", raising=False)
    monkeypatch.setattr(module, "run_command", lambda *_arguments, **_options: "uid-1\n")
    monkeypatch.setattr(nodes_module, "run_command", lambda *_arguments, **_options: containers_of(made))
    directory = module.cluster_dir(module.CLUSTER_NAME)
    directory.mkdir(parents=True)
    for name in ("kubeconfig", "kubectl", "environment"):
        (directory / name).touch()
    made = KindCluster(
        name=module.CLUSTER_NAME,
        kubeconfig=directory / "kubeconfig",
        kubectl=directory / "kubectl",
        uid="uid-1",
        topology=DEFAULT_TOPOLOGY,
        versions=versions(),
        shared_dir=tmp_path / "shared",
        checkout_dir=module.checkout_dir(),
        environment_dir=directory / "environment",
        job_image="job:1",
        made_from="bundle",
    )
    return made


def containers_of(cluster: KindCluster, **others: str) -> str:
    """What `docker ps` says of its nodes, all of which run but for others."""
    states = {f"{cluster.name}-control-plane": "running", **dict.fromkeys(pools_by_node(cluster), "running")}
    states |= {f"{cluster.name}-{name.replace('_', '-')}": state for name, state in others.items()}
    return "".join(f"{name} {state} {name}\n" for name, state in states.items() if state)


def test_what_is_written_is_found(cluster: KindCluster) -> None:
    write_state(cluster)

    assert find_cluster() == cluster


def test_a_cluster_that_answers_has_no_problem(cluster: KindCluster) -> None:
    assert problem_with(cluster) == ""


def test_no_cluster_is_told_from_half_a_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))

    assert problem_with(find_cluster()) == "no cluster is up; run `harness up kind`"
    records = module.cluster_dir(module.CLUSTER_NAME) / "runs"
    records.mkdir(parents=True)
    assert problem_with(find_cluster()) == "no cluster is up; run `harness up kind`"
    (records.parent / "kind.json").touch()
    assert "half up or half down" in problem_with(find_cluster())


def test_a_torn_state_file_is_half_a_cluster(cluster: KindCluster) -> None:
    module.state_path().write_text("{")

    assert find_cluster() is None
    assert "half up" in problem_with(find_cluster())


def test_another_version_is_named(cluster: KindCluster) -> None:
    older = msgspec.structs.replace(cluster, versions={**versions(), "kueue": "v0.1.0"})

    assert f"kueue v0.1.0 instead of {versions()['kueue']}; run `harness down kind`" in problem_with(older)


def test_what_a_pulled_cluster_brings_is_not_compared_with_what_is_built_here(cluster: KindCluster) -> None:
    pulled = msgspec.structs.replace(cluster, made_from="pulled", versions={**versions(is_pulled=True), "kubernetes": "v1.34.0"})
    other = msgspec.structs.replace(pulled, versions={**pulled.versions, "node image": "kindest/node:v1.30.0"})

    assert problem_with(pulled) == ""
    assert f"node image kindest/node:v1.30.0 instead of {versions(is_pulled=True)['node image']}" in problem_with(other)


def test_a_moved_checkout_is_named(cluster: KindCluster) -> None:
    assert "has /elsewhere mounted" in problem_with(msgspec.structs.replace(cluster, checkout_dir=Path("/elsewhere")))


def test_other_storage_is_named(cluster: KindCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CLUSTER_SHARED", "/other/storage")

    assert "/other/storage is asked for" in problem_with(cluster)


@pytest.mark.parametrize("name", ["kubeconfig", "kubectl", "environment"])
def test_what_was_removed_from_under_it_is_named(cluster: KindCluster, name: str) -> None:
    (module.cluster_dir(cluster.name) / name).unlink()

    assert f"{name} is gone" in problem_with(cluster)


def test_silence_is_a_problem_with_the_words_of_the_command(cluster: KindCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(command: Sequence[str], **_options: object) -> str:
        raise CommandFailedError(command=["kubectl"], outcome="ended with 1", output="connection refused")

    monkeypatch.setattr(module, "run_command", refuse)

    assert "does not answer: `kubectl` ended with 1: connection refused; run `harness up kind`" in problem_with(cluster)


def test_another_cluster_at_the_same_address_is_not_ours(cluster: KindCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "run_command", lambda *_arguments, **_options: "uid-2")

    assert "another cluster answers in place of chaos-harness (its uid is uid-2, not uid-1)" in problem_with(cluster)


def test_kubectl_names_its_own_kubeconfig_and_context(cluster: KindCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Sequence[str]] = []
    monkeypatch.setattr(module, "run_command", lambda command, **_options: seen.append(command) or "")

    module.kubectl(cluster, "get", "nodes", deadline_s=1)

    assert seen == [[str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig), "--context", "kind-chaos-harness", "get", "nodes"]]


def test_a_machine_that_was_removed_is_named_though_the_api_server_answers(cluster: KindCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "run_command", lambda *_arguments, **_options: containers_of(cluster, worker3="", worker5=""))

    assert problem_with(cluster) == (
        "of the cluster chaos-harness the containers chaos-harness-worker3, chaos-harness-worker5 are gone; "
        "run `harness up kind`, which makes it again"
    )


@pytest.mark.parametrize(
    ("state", "expected"), [("exited", "is exited; run `harness up kind`"), ("paused", "is paused; run `harness up kind`")]
)
def test_a_control_plane_that_is_off_is_named(cluster: KindCluster, monkeypatch: pytest.MonkeyPatch, state: str, expected: str) -> None:
    monkeypatch.setattr(nodes_module, "run_command", lambda *_arguments, **_options: containers_of(cluster, control_plane=state))

    assert problem_with(cluster) == f"the control plane of the cluster chaos-harness {expected}"


def test_machines_of_pools_may_be_off(cluster: KindCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "run_command", lambda *_arguments, **_options: containers_of(cluster, worker4="exited"))

    assert problem_with(cluster) == ""


READY = "kueue-system kueue-controller-manager 1\nkuberay-system kuberay-operator 1\nkube-system coredns 1\n"


@pytest.mark.parametrize(
    ("listed", "lacking"),
    [
        (READY, ""),
        (READY.replace("manager 1", "manager "), "kueue-controller-manager in kueue-system"),
        (READY.replace("manager 1", "manager 0"), "kueue-controller-manager in kueue-system"),
        (READY.partition("\n")[0], "kuberay-operator in kuberay-system"),
        ("", "kuberay-operator in kuberay-system and kueue-controller-manager in kueue-system"),
    ],
)
def test_an_operator_that_is_away_is_named(cluster: KindCluster, monkeypatch: pytest.MonkeyPatch, listed: str, lacking: str) -> None:
    monkeypatch.setattr(module, "run_command", lambda *_arguments, **_options: listed)

    expected = f"of the cluster chaos-harness the deployment {lacking} is not ready; run `harness up kind`" if lacking else ""
    assert problem_with_operators(cluster) == expected


def test_what_to_do_is_said_once(cluster: KindCluster) -> None:
    moved = problem_with(msgspec.structs.replace(cluster, checkout_dir=Path("/elsewhere")))

    assert reason_and_advice(moved)[1] == "run `harness down kind`, then `harness up kind`"
    assert reason_and_advice("it is silent: 1; 2; run `harness up kind`") == ("it is silent: 1; 2", "run `harness up kind`")
    assert reason_and_advice("it is silent: 1; 2") == ("it is silent: 1; 2", "run `harness up kind`")
