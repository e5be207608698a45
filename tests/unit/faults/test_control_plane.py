"""A component counts as restarted when another instance runs; an image as forgotten when the nodes say so."""

import pytest

from harness.errors import HealError, InjectionError
from harness.scenario.cluster_faults import ForgetImage, RestartComponent
from harness.undo import AwaitControlPlane, RestoreCluster, RestoreImage


@pytest.mark.parametrize("component", ["api-server", "kueue", "kuberay"])
def test_a_component_is_killed_once_and_seen_when_another_instance_runs(make, target, component) -> None:
    fault = make(RestartComponent(component=component))

    assert fault.undo() == RestoreCluster(cluster="chaos-harness", uid="uid-of-cluster", actions=(AwaitControlPlane(),))
    assert fault.inject() == f"SIGKILL to {component} (containerd://old)"
    assert target.done == [("kill_component", component)]
    for target.now_s, instance in ((0.0, "containerd://old"), (1.0, "")):
        target.instance = instance
        assert fault.observe(()) == ""
    target.instance, target.now_s = "containerd://new", 2.0
    assert fault.observe(()) == f"{component} runs again: containerd://new in place of containerd://old"


def test_a_restart_is_over_when_the_control_plane_serves_again(make, target) -> None:
    fault = make(RestartComponent())
    fault.inject()
    assert fault.heal_after_s is None
    target.instance, target.now_s, target.serving = "containerd://new", 9.0, False
    assert fault.observe(())
    assert fault.heal_after_s == 9.0
    target.now_s = 10.0
    assert fault.heal() == ""
    target.now_s, target.serving = 11.0, True
    assert fault.heal() == "the API server answers, and Kueue behind it"


def test_a_component_that_does_not_run_cannot_be_killed(make, target) -> None:
    target.refuses["kill_component"] = "no pod of kueue is ready"

    with pytest.raises(InjectionError, match="no pod of kueue is ready"):
        make(RestartComponent(component="kueue")).inject()


def test_an_image_is_forgotten_on_every_node_of_a_pool_and_known_again(make, target) -> None:
    fault = make(ForgetImage(pool="dws-pool", duration_s=9.0))

    actions = tuple(RestoreImage(node=node, image="job") for node in ("node-3", "node-4"))
    assert fault.undo() == RestoreCluster(cluster="chaos-harness", uid="uid-of-cluster", actions=actions)
    assert target.names() == ["nodes_in"]
    assert fault.observe(()) == ""
    fault.inject()
    assert fault.observe(()) == "none of node-3, node-4 knows the image"
    assert fault.heal_after_s == 9.0
    assert [fault.heal(), fault.heal()] == ["node-3, node-4 know the image"] * 2
    assert target.names() == ["nodes_in", "forget_image", "restore_image"]


def test_a_node_that_knows_the_image_still_is_an_injection_that_failed(make, target) -> None:
    fault = make(ForgetImage())
    fault.undo()
    target.refuses["forget_image"] = "node-1 knows it still"

    with pytest.raises(InjectionError, match="node-1 knows it still"):
        fault.inject()


def test_an_image_that_stays_unknown_is_not_healed(make, target) -> None:
    fault = make(ForgetImage())
    fault.undo()
    fault.inject()
    target.refuses["restore_image"] = "node-1 does not know it"

    with pytest.raises(HealError, match="node-1 does not know it"):
        fault.heal()
