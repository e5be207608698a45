"""Faults of a Ray cluster count by the processes, or by what Ray itself says."""

import pytest

from harness.errors import InjectionError
from harness.scenario.faults import DrainRayNode, KillRayProcess
from harness.undo import NothingToUndo


def test_a_worker_is_killed_by_its_rank(make, target) -> None:
    fault = make(KillRayProcess(component="worker"), rank=1)
    target.states = {101: "running"}

    assert fault.inject() == "SIGKILL to process 101 (worker)"
    assert target.asked == [("signal", 9, "fault", 1)]
    assert fault.observe(()) == "worker process 101 gone"


def test_a_worker_without_a_rank_is_refused(make) -> None:
    with pytest.raises(ValueError, match="name it"):
        make(KillRayProcess(component="worker"))


@pytest.mark.parametrize("component", ["raylet", "head"])
def test_a_part_of_the_cluster_is_killed_and_seen_gone(make, target, component) -> None:
    fault = make(KillRayProcess(component=component))
    fault.inject()

    assert target.asked == [("kill_ray_processes", 1, component)]
    assert fault.observe(()) == ""
    target.states[101] = "gone"
    assert fault.observe(()) == f"{component} process 101 gone"


def test_a_drain_is_seen_when_ray_has_accepted_it(make, target) -> None:
    fault = make(DrainRayNode(deadline_s=7.0))

    assert fault.inject() == "Ray is told that node node-1 will be preempted in 7 s"
    assert fault.observe(()) == ""
    target.node_state = "draining"
    assert fault.observe(()) == "Ray has accepted to drain node node-1, which is draining"


def test_a_node_that_is_gone_before_we_look_had_been_drained(make, target) -> None:
    fault = make(DrainRayNode())
    fault.inject()
    target.node_state = "dead"

    assert fault.observe(()) == "Ray has accepted to drain node node-1, which is dead"


def test_a_drain_that_ray_refuses_has_failed(make, target) -> None:
    fault = make(DrainRayNode())
    fault.inject()
    target.absent = "Ray refused to drain node node-1"

    with pytest.raises(InjectionError, match="refused"):
        fault.observe(())


@pytest.mark.parametrize("kind", [KillRayProcess(component="head"), DrainRayNode()])
def test_without_a_cluster_nothing_is_injected_or_owed(make, target, kind) -> None:
    fault = make(kind)
    target.absent = "the job has not said that its cluster is up"

    with pytest.raises(InjectionError, match="its cluster is up"):
        fault.inject()
    assert isinstance(fault.undo(), NothingToUndo)
    assert fault.heal_after_s is None
    assert fault.heal() != ""
