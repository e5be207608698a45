"""The wires, as far as they need no network: routes, bodies, errors, and what befalls every call."""

import io
import json

import pytest
from google.rpc import error_details_pb2

from harness.clock import ManualClock
from harness.emulator.failures import ApiError, not_found, permission_denied, quota_exceeded, stockout, unavailable
from harness.emulator.injection import InjectedFault
from harness.emulator.operations import Operations
from harness.emulator.project import Projects
from harness.emulator.service import HttpResponse, Method, Route
from harness.emulator.wire import http_bodies
from harness.emulator.wire.grpc_wire import MethodTable, status_of
from harness.emulator.wire.http_bodies import error_response, read_body
from harness.emulator.wire.intake import Arrival, ConnectionCut, answer_call
from harness.emulator.wire.routing import Routes
from harness.emulator.world import World


class Nothing:
    def append(self, entries):
        raise AssertionError("no log here")

    def mount(self, bucket, below=""):
        raise AssertionError("no buckets here")


@pytest.fixture
def world(tmp_path):
    clock = ManualClock()
    return World(clock=clock, root=tmp_path, projects=Projects([]), log=Nothing(), buckets=Nothing(), operations=Operations(clock))


def route(verb, pattern, name):
    return Route(verb=verb, pattern=pattern, name=name, handle=lambda request: HttpResponse())


ROUTES = Routes(
    [
        route("GET", "/b/{bucket}/o/{object}", "get"),
        route("GET", "/b/{bucket}/o", "list"),
        route("POST", "/z/{zone}/i/{instance}:stop", "stop"),
        route("GET", "/download/{rest=**}", "download"),
        route("GET", "/{anything}", "last"),
    ]
)


@pytest.mark.parametrize(
    ("verb", "path", "name", "parameters"),
    [
        ("GET", "/b/x/o/a%2Fb%3Fc", "get", {"bucket": "x", "object": "a/b?c"}),
        ("GET", "/b/x/o", "list", {"bucket": "x"}),
        ("POST", "/z/1/i/vm:stop", "stop", {"zone": "1", "instance": "vm"}),
        ("GET", "/download/a/b/c", "download", {"rest": "a/b/c"}),
    ],
)
def test_a_path_finds_its_route_and_quoted_slashes_stay_in_their_segment(verb, path, name, parameters):
    found, values = ROUTES.find(verb, path)

    assert (found.name, values) == (name, parameters)


@pytest.mark.parametrize(("verb", "path"), [("DELETE", "/b/x/o"), ("GET", "/b/x/o/a/b"), ("POST", "/z/1/i/vm:start"), ("GET", "/")])
def test_a_path_that_nobody_offers_has_no_route(verb, path):
    assert ROUTES.find(verb, path) is None


def test_a_body_is_read_whole_by_its_length_or_in_chunks():
    assert read_body(io.BytesIO(b"abcd"), {"content-length": "3"}) == b"abc"
    assert read_body(io.BytesIO(b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"), {"transfer-encoding": "chunked"}) == b"abcde"
    assert read_body(io.BytesIO(b"abcd"), {}) == b""


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        (b"", {"content-length": "-1"}),
        (b"", {"content-length": "x"}),
        (b"", {"content-length": "9" * 5000}),
        (b"zz\r\n", {"transfer-encoding": "chunked"}),
        (b"-1\r\nabc", {"transfer-encoding": "chunked"}),
    ],
)
def test_a_body_without_a_length_that_is_one_is_refused(data, headers):
    with pytest.raises(ApiError, match="INVALID_ARGUMENT"):
        read_body(io.BytesIO(data), headers)


def test_a_body_that_is_too_large_is_refused_and_one_that_breaks_off_is_a_lost_connection(monkeypatch):
    monkeypatch.setattr(http_bodies, "BODY_BYTES_MAX", 4)

    with pytest.raises(ApiError, match="5 bytes"):
        read_body(io.BytesIO(b"abcde"), {"content-length": "5"})
    with pytest.raises(ApiError, match="more than 4 bytes"):
        read_body(io.BytesIO(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), {"transfer-encoding": "chunked"})
    with pytest.raises(ConnectionResetError):
        read_body(io.BytesIO(b"ab"), {"content-length": "3"})


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (not_found("x"), 404, "notFound"),
        (permission_denied("a.b", "x"), 403, "forbidden"),
        (quota_exceeded("GPUS", limit=1), 429, "quotaExceeded"),
        (stockout("projects/p/zones/z"), 503, "ZONE_RESOURCE_POOL_EXHAUSTED"),
        (ApiError("FAILED_PRECONDITION", "x", reason="conditionNotMet", http_status=412), 412, "conditionNotMet"),
        (ApiError("INTERNAL", "x"), 500, "backendError"),
    ],
)
def test_an_error_over_rest_has_a_status_and_a_reason(error, status, reason):
    response = error_response(error)
    body = json.loads(response.body)["error"]

    assert (response.status, body["code"], body["status"]) == (status, status, error.code)
    assert body["errors"] == [{"message": error.message, "domain": "global", "reason": reason}]


def test_when_to_come_back_is_said_over_both_wires():
    error = unavailable(retry_after_s=2.5)
    response = error_response(error)
    (detail,) = status_of(error).details
    retry = error_details_pb2.RetryInfo()

    assert response.headers["Retry-After"] == "2"
    assert json.loads(response.body)["error"]["details"][0]["retryDelay"] == "2.5s"
    assert detail.Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 2500


def test_an_error_over_grpc_says_which_permission_is_missing():
    (detail,) = status_of(permission_denied("run.jobs.get", "projects/p")).details
    info = error_details_pb2.ErrorInfo()

    assert detail.Unpack(info)
    assert (info.reason, info.domain, info.metadata["permission"]) == ("IAM_PERMISSION_DENIED", "iam.googleapis.com", "run.jobs.get")


def arrival(**fields):
    given = {"method": "a.b", "resource": "r", "is_write": True, "headers": {}, "is_active": lambda: True, **fields}
    return Arrival(**given)


def outcomes(world):
    return [call.outcome for call in world.calls.all()]


def test_every_call_is_journalled_with_its_outcome_whatever_it_is(world):
    def refuse(is_partial):
        raise ApiError("ABORTED", "x")

    def break_down(is_partial):
        raise RuntimeError("a defect")

    assert answer_call(world, arrival(), lambda is_partial: "answer") == "answer"
    with pytest.raises(ApiError):
        answer_call(world, arrival(), refuse)
    with pytest.raises(RuntimeError):
        answer_call(world, arrival(), break_down)
    world.callers.expire("")
    with pytest.raises(ApiError):
        answer_call(world, arrival(), lambda is_partial: "answer")

    assert outcomes(world) == ["OK", "ABORTED", "broken", "UNAUTHENTICATED"]


def test_a_connection_is_cut_before_the_work_or_after_it(world):
    done = []
    world.injections.add(InjectedFault(method="a.b", nth=1, drop="before"))
    world.injections.add(InjectedFault(method="a.b", nth=2, drop="after"))

    for expected in ([], [False]):
        with pytest.raises(ConnectionCut):
            answer_call(world, arrival(), done.append)
        assert done == expected
    assert outcomes(world) == ["dropped", "dropped"]


def test_an_injected_error_is_answered_instead_of_the_work_after_its_delay(world):
    world.injections.add(InjectedFault(method="a.*", error=ApiError("UNAVAILABLE", "x"), delay_s=5))
    began_s = world.clock.monotonic_s()

    with pytest.raises(ApiError, match="UNAVAILABLE"):
        answer_call(world, arrival(), lambda is_partial: pytest.fail("the work was done"))

    assert world.clock.monotonic_s() - began_s >= 5


@pytest.mark.parametrize("ends", ["the caller leaves", "the emulator closes"])
def test_a_delay_ends_with_the_caller_or_the_emulator(world, ends):
    world.injections.add(InjectedFault(method="a.b", delay_s=1e9))
    if ends == "the emulator closes":
        world.closing.set()

    answer_call(world, arrival(is_active=lambda: ends != "the caller leaves"), lambda is_partial: None)

    assert world.clock.monotonic_s() < 1


def test_work_is_told_that_its_answer_is_to_be_cut_short(world):
    world.injections.add(InjectedFault(method="a.b", is_partial=True))

    assert [answer_call(world, arrival(), lambda is_partial: is_partial) for _ in range(2)] == [True, False]


def test_operations_whose_time_has_come_end_before_a_call_looks_at_them(world):
    operation = world.operations.begin("p", family="compute", target="t", lasts_s=1)
    world.clock.advance(2)

    assert answer_call(world, arrival(), lambda is_partial: operation.is_done)


def test_two_services_do_not_offer_the_same_method(world):
    method = Method(name="/a.B/C", request=error_details_pb2.ErrorInfo, handle=lambda request, context: None)

    with pytest.raises(ValueError, match=r"/a\.B/C"):
        MethodTable(world, [method, method])
