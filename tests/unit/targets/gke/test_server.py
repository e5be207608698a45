"""The API server of a project's cluster: who calls, what is asked again and what never is, and that no token is told."""

import json
from types import SimpleNamespace

import pytest
import urllib3

from harness.clock import ManualClock
from harness.targets.gcp.adopting import AdoptedCluster
from harness.targets.gcp.calling import Caller
from harness.targets.gke.server import ATTEMPTS_MAX, ServerApi
from harness.targets.kubernetes.api import CLUSTER_QUEUES, JOBS, PODS, ApiError

CLUSTER = AdoptedCluster(
    name="projects/p/locations/z/clusters/c", uid="u", address="https://1.2.3.4", authority="", pools={}, mounts_buckets=True
)
TOKENS = ("ya29.first-token-of-ours", "ya29.second-token-of-ours")


class Response:
    def __init__(self, status: int, body: object) -> None:
        self.status, self.reason, self._data = status, "Refused", json.dumps(body).encode()

    def read(self, *, decode_content: bool) -> bytes:
        assert decode_content
        return self._data

    def close(self) -> None:
        """Nothing."""


class Pool:
    """Answers what a test says, the last of it for ever."""

    def __init__(self, *answers: int) -> None:
        self.answers, self.asked = list(answers), []

    def request(self, method, url, *, headers, redirect, **_):
        assert not redirect, "a token is for this server alone"
        self.asked.append((method, url, headers["Authorization"]))
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not status:
            raise urllib3.exceptions.ProtocolError("connection broken")
        return Response(status, {"metadata": {"name": "n"}, "message": f"no, not {headers['Authorization']}", "items": []})


@pytest.fixture
def renewed() -> list[str]:
    return []


@pytest.fixture
def server(renewed):
    def make(*answers: int) -> tuple[ServerApi, Pool]:
        clients = SimpleNamespace(
            authorization=lambda: {"Authorization": f"Bearer {TOKENS[len(renewed)]}"}, renew=lambda: renewed.append("renewed")
        )
        api = ServerApi(CLUSTER, clients, Caller(clock=ManualClock()))
        api._pool = pool = Pool(*answers)
        return api, pool

    return make


CALLS = {
    "get": lambda api: api.get(PODS, "n", "run"),
    "list": lambda api: api.list(PODS, "run"),
    "patch": lambda api: api.patch(CLUSTER_QUEUES, "n", {"spec": {}}),
    "apply": lambda api: api.apply(CLUSTER_QUEUES, {"metadata": {"name": "n"}}),
    "delete": lambda api: api.delete(PODS, "n", "run"),
    "create": lambda api: api.create(JOBS, {"metadata": {"name": "n"}}, "run"),
    "evict": lambda api: api.evict("n", "run"),
    "watch": lambda api: api.watch(PODS, "run", "", "1"),
    "log": lambda api: api.log("n", "run", "main"),
}
IDEMPOTENT = ("get", "list", "patch", "apply", "delete")


@pytest.mark.parametrize("status", [429, 502, 503, 504, 0])
@pytest.mark.parametrize("call", IDEMPOTENT)
def test_what_may_be_asked_twice_is_asked_again_while_the_server_is_busy(call, status, server):
    api, pool = server(status, status, 200)
    CALLS[call](api)
    assert len(pool.asked) == 3
    api, pool = server(status)
    with pytest.raises(ApiError):
        CALLS[call](api)
    assert len(pool.asked) == ATTEMPTS_MAX


@pytest.mark.parametrize("status", [400, 403, 409, 422])
@pytest.mark.parametrize("call", CALLS)
def test_what_is_refused_is_refused(call, status, server):
    if (call, status) == ("delete", 409):
        status = 403
    api, pool = server(status)
    with pytest.raises(ApiError) as told:
        CALLS[call](api)
    assert told.value.status == status
    assert len(pool.asked) == 1


@pytest.mark.parametrize("status", [502, 503, 504, 0])
@pytest.mark.parametrize("call", ["create", "evict", "watch", "log"])
def test_what_may_be_done_already_is_not_asked_again(call, status, server):
    api, pool = server(status, 200)
    with pytest.raises(ApiError):
        CALLS[call](api)
    assert len(pool.asked) == 1


def test_a_rate_is_waited_for_and_a_disruption_budget_is_not(server):
    api, pool = server(429, 200)
    api.create(JOBS, {"metadata": {"name": "n"}}, "run")
    assert len(pool.asked) == 2
    api, pool = server(429, 200)
    with pytest.raises(ApiError):
        api.evict("n", "run")
    assert len(pool.asked) == 1


@pytest.mark.parametrize("call", CALLS)
def test_a_token_that_is_not_believed_any_more_is_renewed_once(call, server, renewed):
    api, pool = server(401, 200)
    CALLS[call](api)
    assert renewed == ["renewed"]
    assert [asked[2] for asked in pool.asked] == [f"Bearer {token}" for token in TOKENS]


def test_who_is_never_believed_is_told_so(server, renewed):
    api, pool = server(401)
    with pytest.raises(ApiError) as told:
        api.get(PODS, "n")
    assert told.value.is_of_another
    assert len(renewed) == 1
    assert len(pool.asked) == 2


def test_no_token_is_told(server):
    api, _ = server(403)
    with pytest.raises(ApiError, match=r"\[redacted\]") as told:
        api.get(PODS, "n")
    assert TOKENS[0] not in str(told.value)
    assert told.value.__cause__ is None
