"""Components are found by their labels and killed by their container; images are kept while they are forgotten."""

import threading
from pathlib import Path

import pytest

from harness.capabilities import ControlPlaneHost
from harness.kind import NodeState
from harness.targets.kubernetes.api import PODS, ApiError
from harness.targets.kubernetes.control_plane import PLACES, forgetting_script, full_name, kept_name, restore_image, restoring_script
from harness.undo import RestoreImage
from tests.unit.targets.kubernetes.fake_host import Host

IMAGE = "docker.io/library/chaos-harness-job:1"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def put_component(host: Host, component: str, container: str = "containerd://one", *, is_ready: bool = True) -> None:
    place = PLACES[component]  # type: ignore[index]
    key, _, value = place.selector.partition("=")
    status = {"containerStatuses": [{"containerID": container, "ready": is_ready, "state": {"running": {}}}]}
    metadata = {"name": component, "namespace": place.namespace, "labels": {key: value}}
    host.api.put(PODS, {"metadata": metadata, "spec": {"nodeName": "plane"}, "status": status})


def test_it_is_what_faults_ask_for(host) -> None:
    assert isinstance(host, ControlPlaneHost)


@pytest.mark.parametrize("component", ["api-server", "kueue", "kuberay"])
def test_a_component_is_killed_by_its_container(host, component) -> None:
    put_component(host, component)

    assert host.kill_component(component) == "containerd://one"
    assert host.machines.done == [("exec", "plane", "ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", "one")]


@pytest.mark.parametrize("component", ["api-server", "kueue", "kuberay"])
def test_an_instance_is_named_while_it_runs_and_answers(host, component) -> None:
    assert host.component_instance(component) == ""
    put_component(host, component, is_ready=False)
    assert host.component_instance(component) == ""
    put_component(host, component)
    assert host.component_instance(component) == "containerd://one"
    host.api.failures["list", "pods"] = ApiError(attempted="list", what="pods", status=0, reason="refused")
    assert host.component_instance(component) == ""


@pytest.mark.parametrize("plural", ["clusterqueues", "workloads"])
def test_a_control_plane_serves_when_what_kueue_converts_can_be_had(host, plural) -> None:
    assert host.is_serving()
    host.api.failures["list", plural] = ApiError(attempted="list", what=plural, status=500, reason="conversion webhook failed")

    assert not host.is_serving()


def test_a_component_that_does_not_run_cannot_be_killed(host) -> None:
    with pytest.raises(LookupError, match="no pod of kueue is ready in namespace kueue-system"):
        host.kill_component("kueue")


def test_an_image_is_taken_from_nodes_and_given_back(host) -> None:
    assert host.image_undo(["worker2"]) == (RestoreImage(node="worker2", image=IMAGE),)
    assert host.forget_image(["worker2", "worker3"]) == f"{IMAGE} is unknown on worker2, worker3, as their runtimes say"
    assert host.restore_image(["worker2"]) == f"{IMAGE} is known on worker2 again, as their runtimes say"
    assert host.machines.scripts() == [forgetting_script(IMAGE), forgetting_script(IMAGE), restoring_script(IMAGE)]


def test_nodes_are_told_at_once_so_that_the_slowest_alone_is_waited_for(host, monkeypatch) -> None:
    both = threading.Barrier(2)
    monkeypatch.setattr(host.machines, "exec", lambda *_, **__: both.wait(10.0))

    host.forget_image(["worker2", "worker3"])
    host.restore_image(["worker2", "worker3"])
    host.break_nodes(["worker2", "worker3"], "kubelet")


def test_a_node_that_does_not_do_it_is_told(host) -> None:
    host.machines.failing.add("exec")

    with pytest.raises(LookupError, match="ended with 1"):
        host.forget_image(["worker2"])


def test_a_node_that_is_off_is_started_for_its_image_and_off_and_forgotten_again(host) -> None:
    host.machines.states["worker2"] = NodeState.EXITED
    restore_image(host.machines, "worker2", IMAGE)

    assert [what[0] for what in host.machines.done] == ["start", "exec", "kill", "forget"]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("job", "docker.io/library/job:latest"),
        ("job:1", "docker.io/library/job:1"),
        ("team/job:1", "docker.io/team/job:1"),
        ("registry.example/job:1", "registry.example/job:1"),
        ("localhost/job", "localhost/job:latest"),
        ("host.example:5000/job", "host.example:5000/job:latest"),
    ],
)
def test_a_runtime_keeps_images_by_their_full_names(image, name) -> None:
    assert full_name(image) == name


def test_an_image_is_kept_under_a_name_that_nobody_pulls() -> None:
    assert kept_name(IMAGE) == "chaos-harness.invalid/kept/chaos-harness-job:1"
