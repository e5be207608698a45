"""Whatever call of a run on a cluster fails, once or for good, the run ends with a verdict or a clear error, and nothing stays."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from harness.emulator import ApiError, InjectedFault
from harness.errors import HarnessError
from harness.scenario.cluster_faults import BreakNode, ClusterFault, InterruptNode, LoseNode, LosePool, LowerQuota
from tests.integration.google.api_server import Refusal
from tests.integration.google.gke_runs import clean_up, run_on, scenario_of
from tests.integration.google.gke_world import GkeWorld


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GkeWorld]:
    """One world for all: a run leaves nothing in it, which each test sees."""
    directory = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(directory / "state"))
        running = GkeWorld(directory)
        running.install(patch)
        patch.setattr("harness.targets.gcp.calling.Caller.pause_s", lambda *_: 0.02)  # as often, but sooner
        patch.setattr("harness.targets.gcp.operations.POLLED_FIRST_S", 0.05)
        patch.setattr("harness.targets.gcp.undoing.ASKED_EVERY_S", 0.1)
        patch.setattr("harness.targets.gke.patience.PATIENCE_S", 1.0)
        patch.setattr("harness.targets.gke.execution.UNANSWERED_S", 2.0)
        patch.setattr("harness.targets.gke.execution.BLIND_S", 2.0)
        patch.setattr("harness.targets.kubernetes.execution.UNANSWERED_S", 2.0)
        patch.setattr("harness.targets.kubernetes.execution.DRAIN_S", 0.5)
        patch.setattr("harness.targets.kubernetes.queue_objects.ACTIVE_S", 1.0)
        patch.setattr("harness.targets.kubernetes.leaks.PATIENCE_S", 2.0)
        patch.setattr("harness.targets.kubernetes.leaks.ASKED_S", 0.1)
        patch.setattr("harness.targets.gke.ending.GONE_S", 2.0)
        patch.setattr("harness.targets.gke.ending.POLL_S", 0.05)
        yield running
        running.close()


@pytest.fixture
def world(shared: GkeWorld) -> Iterator[GkeWorld]:
    yield shared
    shared.forgive()
    shared.steps.clear()
    shared.ticks_a_step = 1


def see_that_it_ends_told(world: GkeWorld, tmp_path: Path, fault: ClusterFault, trouble: Callable[[], None], *, passes: bool) -> None:
    """Run it in trouble; then what is left is cleaned, once all calls are answered again."""
    before = world.pool_state()
    trouble()
    told = "valid"
    try:
        run = run_on(tmp_path, scenario_of(fault))
    except HarnessError as error:
        told = str(error)
    else:
        told = "valid" if run.verdict.is_valid else run.explain()
    assert told
    assert told == "valid" or not passes, "what passes is borne"
    world.forgive()
    clean_up(tmp_path)
    assert world.quota() == 16
    world.await_pool(before)
    assert not [name for name in world.namespaces() if name.startswith("harness-")]


KUBERNETES_CALLS = (
    ("get", "clusterqueues"),
    ("get", "namespaces"),
    ("apply", "namespaces"),
    ("apply", "localqueues"),
    ("get", "localqueues"),
    ("create", "jobs"),
    ("list", "pods"),
    ("watch", "pods"),
    ("list", "nodes"),
    ("watch", "workloads"),
    ("log", "pods"),
    ("patch", "clusterqueues"),
    ("delete", "namespaces"),
    ("list", "workloadpriorityclasses"),
)
TROUBLES = {
    "429-twice": (429, 2),
    "503-twice": (503, 2),
    "403-always": (403, 0),
    "503-always": (503, 0),
    "no-answer-always": (0, 0),
}
BORNE = {"429-twice", "503-twice"}


def sampled(calls: Iterable[object], troubles: Iterable[str]) -> list:
    """Every call with every trouble; each call with one of them every day, and each trouble at several calls."""
    known = list(troubles)
    return [
        pytest.param(
            call, trouble, marks=() if (row + column) % len(known) == 0 else pytest.mark.exhaustive, id=f"{_name_of(call)}-{trouble}"
        )
        for row, call in enumerate(calls)
        for column, trouble in enumerate(known)
    ]


def _name_of(call: object) -> str:
    return "-".join(call) if isinstance(call, tuple) else str(call)


@pytest.mark.parametrize(("call", "trouble"), sampled(KUBERNETES_CALLS, TROUBLES))
def test_a_call_of_the_cluster_that_fails(call, trouble, world, tmp_path):
    refusal = Refusal(*call, *TROUBLES[trouble])
    see_that_it_ends_told(
        world, tmp_path, LowerQuota(duration_s=0.3), lambda: world.server.refusals.append(refusal), passes=trouble in BORNE
    )
    assert refusal.seen, "the call is made in every run"


GOOGLE_CALLS = {
    "google.container.v1.ClusterManager/GetCluster": LowerQuota(duration_s=0.3),
    "google.container.v1.ClusterManager/GetNodePool": LosePool(pool="on-demand-pool", duration_s=0.3),
    "google.container.v1.ClusterManager/SetNodePoolSize": LosePool(pool="on-demand-pool", duration_s=0.3),
    "google.container.v1.ClusterManager/GetOperation": LosePool(pool="on-demand-pool", duration_s=0.3),
    "compute.instances.delete": LoseNode(duration_s=0.3),
    "compute.instances.reset": BreakNode(duration_s=0.3),
    "compute.instances.get": InterruptNode(duration_s=0.3),
    "compute.instances.simulateMaintenanceEvent": InterruptNode(duration_s=0.3),
    "compute.zoneOperations.get": LoseNode(duration_s=0.3),
    "storage.buckets.get": LowerQuota(duration_s=0.3),
    "storage.objects.list": LowerQuota(duration_s=0.3),
}
CODES = ("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED")


@pytest.mark.parametrize(("method", "code"), sampled(GOOGLE_CALLS, CODES))
def test_a_call_of_google_that_fails_for_good(method, code, world, tmp_path):
    world.ticks_a_step = 2
    injected = InjectedFault(method=method, times=0, error=ApiError(code=code, message="as the test wants it"))
    see_that_it_ends_told(world, tmp_path, GOOGLE_CALLS[method], lambda: world.emulator.world.injections.add(injected), passes=False)
