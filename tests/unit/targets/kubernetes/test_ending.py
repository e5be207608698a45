"""The end of a run waits for what comes back by itself, and for nothing else."""

import pytest

from harness.clock import ManualClock
from harness.kind import DEFAULT_TOPOLOGY
from harness.targets.kubernetes import ending as module
from harness.targets.kubernetes.api import NAMESPACES, PODS, WORKLOADS, ApiError
from harness.targets.kubernetes.ending import ANSWERS_S, Ending
from harness.targets.kubernetes.run_record import RunRecord
from tests.unit.clusters import cluster_at
from tests.unit.targets.kubernetes.fake_api import FakeApi
from tests.unit.targets.kubernetes.fake_machines import FakeMachines

LABELS = {"chaos-harness-allow": "true", "chaos-harness/run-id": "run-1"}
NAMESPACE = {"metadata": {"name": "harness-run-1", "uid": "u", "labels": LABELS}}
CONVERTING = ApiError(attempted="list", what="workloads", status=429, reason="TooManyRequests", message="storage is (re)initializing")


class Comeback(ManualClock):
    """A clock at whose nth sleep the API answers again."""

    def __init__(self, api: FakeApi, *, sleeps: int) -> None:
        super().__init__()
        self._api, self._sleeps = api, sleeps

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._sleeps -= 1
        if not self._sleeps:
            self._api.failures.clear()


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "is_control_plane_off", lambda _: False)


def ending_of(tmp_path, api: FakeApi, clock: ManualClock) -> Ending:
    checkpoints = tmp_path / "run" / "checkpoints"
    checkpoints.mkdir(parents=True)
    record = RunRecord(
        run_id="run-1",
        namespace="harness-run-1",
        directory=str(tmp_path / "shared" / "run-1"),
        checkpoint_dir=str(checkpoints),
        replaced=(),
    )
    return Ending(api, cluster_at(tmp_path), record, clock)


def test_an_api_that_comes_back_is_waited_for(tmp_path):
    api = FakeApi([(NAMESPACES, NAMESPACE)])
    api.failures["list", WORKLOADS.plural] = CONVERTING
    ending = ending_of(tmp_path, api, Comeback(api, sleeps=3))

    ending.end_pods()

    assert ending.done == ["removed namespace harness-run-1"]
    assert not ending._failures


def test_one_that_stays_away_is_waited_for_no_longer_than_it_takes_to_come_back(tmp_path):
    api = FakeApi([(NAMESPACES, NAMESPACE)])
    api.failures["list", WORKLOADS.plural] = CONVERTING
    clock = ManualClock()
    ending = ending_of(tmp_path, api, clock)

    ending.end_pods()

    assert ending._failures == [CONVERTING]
    assert ANSWERS_S <= clock.monotonic_s() < ANSWERS_S + 1


def test_one_whose_machine_is_off_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "is_control_plane_off", lambda _: True)
    api = FakeApi([(NAMESPACES, NAMESPACE)])
    api.failures["list", WORKLOADS.plural] = CONVERTING
    clock = ManualClock()
    taken = ending_of(tmp_path, api, clock)

    taken.end_pods()

    assert taken._failures == [CONVERTING]
    assert clock.monotonic_s() == 0.0


def test_one_that_refuses_is_not_waited_for(tmp_path):
    api = FakeApi([(NAMESPACES, NAMESPACE)])
    refusal = ApiError(attempted="list", what="workloads", status=403, reason="Forbidden")
    api.failures["list", WORKLOADS.plural] = refusal
    clock = ManualClock()
    ending = ending_of(tmp_path, api, clock)

    ending.end_pods()

    assert ending._failures == [refusal]
    assert clock.monotonic_s() == 0.0


@pytest.mark.parametrize("missing", LABELS)
def test_nothing_is_deleted_or_forced_in_a_namespace_that_is_not_the_runs(tmp_path, missing):
    labels = {label: value for label, value in LABELS.items() if label != missing}
    api = FakeApi([(NAMESPACES, {"metadata": {"name": "harness-run-1", "labels": labels}})])
    api.put(PODS, {"metadata": {"name": "somebodys", "namespace": "harness-run-1", "finalizers": ["held/back"]}})
    ending = ending_of(tmp_path, api, ManualClock())

    ending.end_pods()
    ending._try(ending._await_namespace)

    assert [call for call in api.calls if call[0] in ("delete", "patch")] == []
    assert all(
        "harness-run-1 does not say chaos-harness-allow: true and chaos-harness/run-id: run-1" in str(one) for one in ending._failures
    )
    assert len(ending._failures) == 2


def test_what_has_taken_the_place_of_the_runs_namespace_is_not_deleted(tmp_path, monkeypatch):
    api = FakeApi([(NAMESPACES, NAMESPACE)])
    ending = ending_of(tmp_path, api, ManualClock())
    found = api.get(NAMESPACES, "harness-run-1")
    api.put(NAMESPACES, {"metadata": {**NAMESPACE["metadata"], "uid": "later"}})
    api.put(PODS, {"metadata": {"name": "somebodys", "namespace": "harness-run-1"}})
    monkeypatch.setattr(ending, "_namespace", lambda: found)

    ending.end_pods()

    assert api.get(NAMESPACES, "harness-run-1")["metadata"]["uid"] == "later"
    assert api.get(PODS, "somebodys", "harness-run-1") is not None


def test_an_end_that_fails_says_that_something_is_left_and_who_takes_it_away(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "NodeContainers", lambda *_: FakeMachines(DEFAULT_TOPOLOGY))
    api = FakeApi([(NAMESPACES, NAMESPACE)])
    api.failures["list", WORKLOADS.plural] = CONVERTING
    taken = ending_of(tmp_path, api, ManualClock())
    taken.end_pods()

    with pytest.raises(ApiError) as failure:
        taken.remove_all()

    assert (
        failure.value.__notes__[-1]
        == f"what the run has left, and its storage {tmp_path / 'shared' / 'run-1'}, are written down for `harness clean`"
    )
