"""Bringing up uses what is there, and removes nothing that is in use."""

from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import TargetUnavailableError
from harness.kind import creation, health
from harness.kind.cluster import CLUSTER_NAME, KindCluster
from harness.kind.commands import CommandFailedError
from harness.kind.creation import Wish, bring_up
from harness.kind.health import ANSWER_S
from harness.kind.lock import Turn
from tests.unit.clusters import cluster_at

SILENT = "the cluster does not answer; run `harness up kind`"
MADE = "materials are asked for"


class Ground:
    """A cluster that is up, and that answers once it has been asked often enough."""

    def __init__(self, cluster: KindCluster, *, silent_for: int, is_running: bool = True) -> None:
        self.cluster, self.silent_for, self.is_running = cluster, silent_for, is_running
        self.asked = self.removed = 0
        self.said: list[str] = []
        self.operators = ""
        self.done: list[str] = []

    def problem(self, _cluster: object) -> str:
        self.asked += 1
        return SILENT if self.asked <= self.silent_for else ""

    def remove(self) -> str:
        self.removed += 1
        return "6 nodes"

    def bring_up(self, clock: ManualClock) -> KindCluster:
        return bring_up(Wish(), clock, self.said.append)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    cluster = cluster_at(Path("/c"), name=CLUSTER_NAME, made_from="pulled")
    ground = Ground(cluster, silent_for=0)

    def refuse_to_make(*_: object) -> None:
        raise TargetUnavailableError(target="kind", reason=MADE, advice="-")

    monkeypatch.setattr(creation, "require_engine", lambda: None)
    monkeypatch.setattr(creation, "find_cluster", lambda: ground.cluster)
    monkeypatch.setattr(creation, "problem_with_record", lambda _: "")
    for module in (creation, health):
        monkeypatch.setattr(module, "problem_with", ground.problem)
    monkeypatch.setattr(health, "problem_for_good", lambda _: "" if ground.is_running else SILENT)
    monkeypatch.setattr(creation, "problem_with_operators", lambda _: ground.operators)
    monkeypatch.setattr(creation, "start_operators", lambda _: ground.done.append("started"))
    monkeypatch.setattr(creation, "wait_for_operators", lambda *_: ground.done.append("waited"))
    monkeypatch.setattr(creation, "remove_cluster", ground.remove)
    monkeypatch.setattr(creation, "find_materials", refuse_to_make)
    return ground


def test_a_cluster_that_answers_is_used_beside_a_run(ground: Ground) -> None:
    run = Turn(CLUSTER_NAME)
    run.take(ManualClock())

    assert ground.bring_up(ManualClock()) is ground.cluster
    assert ground.said == [f"the cluster {CLUSTER_NAME} is up"]
    run.free()


def test_a_run_whose_fault_silences_the_cluster_keeps_it(ground: Ground) -> None:
    ground.silent_for = 10**9
    run = Turn(CLUSTER_NAME)
    run.take(ManualClock())

    with pytest.raises(TargetUnavailableError, match="works on the cluster chaos-harness and has not ended"):
        ground.bring_up(ManualClock())
    assert ground.removed == 0
    run.free()


def test_a_cluster_that_answers_after_a_moment_is_kept(ground: Ground) -> None:
    ground.silent_for = 20

    assert ground.bring_up(ManualClock()) is ground.cluster
    assert ground.removed == 0


def test_a_cluster_that_stays_silent_is_made_again(ground: Ground) -> None:
    ground.silent_for = 10**9
    clock = ManualClock()

    with pytest.raises(TargetUnavailableError, match=MADE):
        ground.bring_up(clock)
    assert ground.removed == 1
    assert ground.said == ["the cluster does not answer; it is made again", "removed what an earlier attempt left: 6 nodes"]
    assert ANSWER_S < clock.monotonic_s() < ANSWER_S + 5


def test_a_cluster_without_its_machine_is_not_waited_for(ground: Ground) -> None:
    ground.silent_for, ground.is_running = 10**9, False
    clock = ManualClock()

    with pytest.raises(TargetUnavailableError, match=MADE):
        ground.bring_up(clock)
    assert ground.removed == 1
    assert clock.monotonic_s() == 0.0


AWAY = "of the cluster c the deployment kueue-controller-manager in kueue-system is not ready; run `harness up kind`"


def test_an_operator_that_is_away_is_started(ground: Ground) -> None:
    ground.operators = AWAY

    assert ground.bring_up(ManualClock()) is ground.cluster
    assert ground.done == ["started", "waited"]
    assert ground.said == [f"{AWAY.partition(';')[0]}; it is started", f"the cluster {CLUSTER_NAME} is up"]
    assert ground.removed == 0


def test_an_operator_that_a_run_has_killed_is_left_to_it(ground: Ground) -> None:
    ground.operators = AWAY
    run = Turn(CLUSTER_NAME)
    run.take(ManualClock())

    with pytest.raises(TargetUnavailableError, match="works on the cluster chaos-harness and has not ended"):
        ground.bring_up(ManualClock())
    assert ground.done == []
    run.free()


def test_a_cluster_whose_operators_do_not_come_back_is_made_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.operators = AWAY

    def fail(*_: object) -> None:
        raise CommandFailedError(command=["kubectl"], outcome="ended with 1", output="not found")

    monkeypatch.setattr(creation, "start_operators", fail)

    with pytest.raises(TargetUnavailableError, match=MADE):
        ground.bring_up(ManualClock())
    assert ground.removed == 1
    assert ground.said[1] == "Kueue and KubeRay do not come back: `kubectl` ended with 1: not found; it is made again"
