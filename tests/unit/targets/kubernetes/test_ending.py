"""The end of a run waits for what comes back by itself, and for nothing else."""

import pytest

from harness.clock import ManualClock
from harness.targets.kubernetes.api import NAMESPACES, WORKLOADS, ApiError
from harness.targets.kubernetes.ending import ANSWERS_S, Ending
from harness.targets.kubernetes.run_record import RunRecord
from tests.unit.targets.kubernetes.fake_api import FakeApi
from tests.unit.targets.kubernetes.fake_host import cluster_at

NAMESPACE = {"metadata": {"name": "harness-run-1", "uid": "u", "labels": {"chaos-harness-allow": "true"}}}
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


def test_one_that_refuses_is_not_waited_for(tmp_path):
    api = FakeApi([(NAMESPACES, NAMESPACE)])
    refusal = ApiError(attempted="list", what="workloads", status=403, reason="Forbidden")
    api.failures["list", WORKLOADS.plural] = refusal
    clock = ManualClock()
    ending = ending_of(tmp_path, api, clock)

    ending.end_pods()

    assert ending._failures == [refusal]
    assert clock.monotonic_s() == 0.0
