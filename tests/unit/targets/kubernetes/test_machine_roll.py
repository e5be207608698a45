"""A machine that somebody removes while a run lasts is missed."""

import pytest

from harness.kind import CommandFailedError, NodeContainer, NodeState
from harness.targets.kubernetes.machine_roll import CALLED_EVERY_S, MachineRoll


class Machines:
    """As ``NodeContainers.list`` tells them."""

    def __init__(self) -> None:
        self.states = {"control-plane": NodeState.RUNNING, "worker": NodeState.RUNNING, "worker2": NodeState.EXITED}
        self.is_silent = False
        self.calls = 0

    def list(self) -> list[NodeContainer]:
        self.calls += 1
        if self.is_silent:
            raise CommandFailedError(command=["docker", "ps"], outcome="did not end within 30 s")
        return [NodeContainer(name=name, pool="pool" * name.startswith("worker"), state=state) for name, state in self.states.items()]


class Calls:
    """A roll, and the time in which it is called."""

    def __init__(self) -> None:
        self.machines = Machines()
        self.roll = MachineRoll(self.machines)  # type: ignore[arg-type]
        self.now_s = 100.0

    def call(self) -> str:
        """The words of one call that came to its end."""
        self.now_s += CALLED_EVERY_S
        said = self.roll.missing(self.now_s)
        if self.roll._call is None:  # it came to its end at once
            return said
        self.roll._call.exception(10.0)
        return self.roll.missing(self.now_s)


@pytest.fixture
def calls():
    made = Calls()
    yield made
    made.roll.close()


def test_machines_of_pools_come_and_go_off_and_are_not_missed(calls):
    assert calls.call() == ""
    calls.machines.states |= {"worker": NodeState.EXITED, "worker2": NodeState.RUNNING}
    assert calls.call() == ""


def test_one_that_was_removed_is_missed(calls):
    calls.call()
    del calls.machines.states["worker"]

    assert calls.call() == "the machine of node worker was removed: run `harness up kind`, which makes the cluster again"


def test_a_control_plane_that_is_off_is_told(calls):
    calls.call()
    calls.machines.states["control-plane"] = NodeState.EXITED

    assert calls.call().startswith("the machine of node control-plane, which holds the control plane, is exited: run")


def test_a_silent_engine_says_nothing_of_machines_and_is_asked_again(calls):
    calls.call()
    calls.machines.is_silent = True
    assert calls.call() == ""
    calls.machines.is_silent = False
    del calls.machines.states["worker"]
    assert "worker was removed" in calls.call()


def test_it_is_not_asked_at_each_look(calls):
    calls.call()
    calls.roll.missing(calls.now_s + CALLED_EVERY_S - 1.0)

    assert calls.machines.calls == 1
