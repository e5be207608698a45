"""Taking down removes what is ours, refuses what is not, and is harmless when there is nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import TargetUnavailableError, UsageError
from harness.kind import nodes, removal
from harness.kind.cache import cluster_dir, has_state, run_records_dir, shared_dir
from harness.kind.cluster import CLUSTER_NAME, OWNER_MOUNT
from harness.kind.lock import Turn
from harness.kind.removal import remove_cluster, take_down


class FakeDocker:
    """Answers what removal asks, and remembers what it removed."""

    def __init__(self, *, containers: Sequence[str] = (), owner: str = "", networks: Sequence[str] = ()) -> None:
        self.containers, self.owner, self.networks = containers, owner, networks
        self.removed: list[str] = []

    def __call__(self, command: Sequence[str], **_options: object) -> str:
        match command[1]:
            case "ps":
                return "".join(f"{name} running id-of-{name}\n" for name in self.containers)
            case "inspect":
                assert str(OWNER_MOUNT) in command[3]
                return "".join(f"/{name} {self.owner}\n" for name in command[4:])
            case "rm":
                self.removed += [argument for argument in command[2:] if not argument.startswith("--")]
            case "network" if command[2] == "ls":
                return "\n".join(self.networks)
            case "network":
                self.removed.append(f"network {command[3]}")
        return ""


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("HARNESS_CLUSTER_SHARED", raising=False)
    return monkeypatch


def use(patch: pytest.MonkeyPatch, docker: FakeDocker) -> FakeDocker:
    patch.setattr(removal, "run_command", docker)
    patch.setattr(nodes, "run_command", docker)
    return docker


def test_all_that_is_ours_goes(install: pytest.MonkeyPatch) -> None:
    docker = use(install, FakeDocker(containers=["a", "b"], owner=str(cluster_dir(CLUSTER_NAME)), networks=["chaos-harness"]))
    (cluster_dir(CLUSTER_NAME) / "kubeconfigs").mkdir(parents=True)
    (cluster_dir(CLUSTER_NAME) / "kind.json").touch()
    shared_dir().mkdir()

    assert remove_cluster() == "2 nodes, its network, its state"
    assert docker.removed == ["a", "b", "network chaos-harness"]
    assert not has_state(CLUSTER_NAME)
    assert not shared_dir().exists()


def test_storage_that_runs_have_filled_stays(install: pytest.MonkeyPatch) -> None:
    use(install, FakeDocker())
    shared_dir().mkdir()
    (shared_dir() / "checkpoint").touch()

    remove_cluster()

    assert (shared_dir() / "checkpoint").exists()


def test_a_cluster_of_another_cache_is_refused_and_untouched(install: pytest.MonkeyPatch) -> None:
    docker = use(install, FakeDocker(containers=["a"], owner="/another/cache/clusters/chaos-harness", networks=["chaos-harness"]))

    with pytest.raises(UsageError, match="a belong to a cluster chaos-harness that was not made from"):
        remove_cluster()
    assert docker.removed == []


def test_a_network_without_our_label_stays(install: pytest.MonkeyPatch) -> None:
    docker = use(install, FakeDocker(networks=[]))

    assert remove_cluster() == ""
    assert docker.removed == []


def test_what_runs_have_written_down_outlives_the_cluster(install: pytest.MonkeyPatch) -> None:
    use(install, FakeDocker())
    run_records_dir(CLUSTER_NAME).mkdir(parents=True)
    (run_records_dir(CLUSTER_NAME) / "run-1.json").touch()
    (cluster_dir(CLUSTER_NAME) / "kubeconfig").touch()

    assert remove_cluster() == "its state"
    assert (run_records_dir(CLUSTER_NAME) / "run-1.json").exists()
    assert not has_state(CLUSTER_NAME)


def test_a_cluster_in_use_is_not_taken_down(install: pytest.MonkeyPatch) -> None:
    docker = use(install, FakeDocker(containers=["a"], owner=str(cluster_dir(CLUSTER_NAME))))
    install.setattr(removal, "require_engine", lambda: None)
    said: list[str] = []
    run = Turn(CLUSTER_NAME)
    run.take(ManualClock())

    with pytest.raises(TargetUnavailableError, match="works on the cluster chaos-harness and has not ended"):
        take_down(ManualClock(), said.append)
    assert docker.removed == []

    run.free()
    take_down(ManualClock(), said.append)
    assert docker.removed == ["a"]
    assert said[-1] == "the cluster chaos-harness is gone: 1 nodes"
