"""The two wires by themselves, over one small service: connections kept, cut and left open, streams, bodies in chunks."""

import contextlib
import http.client
import socket
import threading

import grpc
import pytest
from google.longrunning import operations_pb2

from harness.clock import SystemClock
from harness.emulator import ApiError, Emulator, InjectedFault
from harness.emulator.operations import Operations
from harness.emulator.project import Projects
from harness.emulator.service import HttpResponse, Method, Route
from harness.emulator.wire.servers import Servers
from harness.emulator.world import World

DEADLINE_S = 60.0


class Nothing:
    def append(self, entries):
        raise AssertionError("no log here")

    def mount(self, bucket, below=""):
        raise AssertionError("no buckets here")


class Echo:
    """Says again what it is told, over both wires."""

    is_closed = False

    def methods(self):
        request = operations_pb2.GetOperationRequest
        return [
            Method(name="/test.Echo/Say", request=request, handle=self.say),
            Method(name="/test.Echo/Follow", request=request, handle=self.follow, streams=True),
            Method(name="/test.Echo/Break", request=request, handle=lambda request, context: 1 / 0),
        ]

    def routes(self):
        return [
            Route(verb="POST", pattern="/echo", name="echo.say", handle=lambda request: HttpResponse(body=request.body), is_write=True),
            Route(verb="GET", pattern="/pieces", name="echo.pieces", handle=lambda request: HttpResponse(body=iter([b"one", b"", b"two"]))),
            Route(verb="GET", pattern="/refuse", name="echo.refuse", handle=self.refuse),
            Route(verb="HEAD", pattern="/head", name="echo.head", handle=lambda request: HttpResponse(body=b"unseen")),
            Route(verb="DELETE", pattern="/gone", name="echo.gone", handle=lambda request: HttpResponse(status=204)),
        ]

    def say(self, request, context):
        return operations_pb2.Operation(name=f"{request.name} {context.remaining_s() < DEADLINE_S + 1}")

    def follow(self, requests, context):
        for request in requests:
            if request.name == "wrong":
                raise ApiError("INVALID_ARGUMENT", "wrong")
            if request.name == "forever":
                while context.is_active():
                    SystemClock().sleep(0.01)
                return
            yield operations_pb2.Operation(name=request.name)

    def refuse(self, request):
        raise ApiError("ABORTED", "no")

    def close(self):
        self.is_closed = True


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def world(tmp_path):
    clock = SystemClock()
    return World(clock=clock, root=tmp_path, projects=Projects([]), log=Nothing(), buckets=Nothing(), operations=Operations(clock))


@pytest.fixture
def servers(world, echo):
    with Servers(world, [echo]) as servers:
        yield servers
    assert echo.is_closed
    assert [thread for thread in threading.enumerate() if "emulator" in thread.name] == []


@pytest.fixture
def connection(servers):
    connection = http.client.HTTPConnection(servers.endpoints.http, timeout=DEADLINE_S)
    yield connection
    connection.close()


@pytest.fixture
def channel(servers):
    with grpc.insecure_channel(servers.endpoints.grpc) as channel:
        yield channel


def ask(connection, verb, path, **fields):
    connection.request(verb, path, **fields)
    response = connection.getresponse()
    return response.status, response.read()


def test_one_connection_serves_many_requests_and_errors_do_not_end_it(connection):
    asked = [
        ask(connection, "POST", "/echo", body=b"a"),
        ask(connection, "GET", "/refuse")[0],
        ask(connection, "GET", "/nowhere")[0],
        ask(connection, "GET", "/pieces"),
        ask(connection, "HEAD", "/head"),
        ask(connection, "DELETE", "/gone"),
        ask(connection, "POST", "/echo", body=iter([b"in ", b"chunks"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"}),
    ]

    assert asked == [(200, b"a"), 409, 404, (200, b"onetwo"), (200, b""), (204, b""), (200, b"in chunks")]


def test_calls_over_rest_are_journalled(world, connection):
    ask(connection, "POST", "/echo", body=b"a")
    ask(connection, "GET", "/nowhere")

    assert [(call.method, call.is_write, call.outcome) for call in world.calls.all()] == [
        ("echo.say", True, "OK"),
        ("GET /nowhere", False, "NOT_FOUND"),
    ]


@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_connection_over_rest_is_cut_without_a_word_and_the_next_one_works(world, connection, drop):
    world.injections.add(InjectedFault(method="echo.say", drop=drop))

    with pytest.raises(http.client.RemoteDisconnected):
        ask(connection, "POST", "/echo", body=b"a")
    assert ask(connection, "POST", "/echo", body=b"a") == (200, b"a")


@pytest.mark.parametrize(("verb", "path", "body"), [("POST", "/echo", b"abcd"), ("GET", "/pieces", None)])
def test_a_body_is_cut_short(world, connection, verb, path, body):
    world.injections.add(InjectedFault(method="echo.*", is_partial=True))

    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(connection, verb, path, body=body)
    assert caught.value.partial in (b"ab", b"one")


def test_a_body_without_an_end_is_a_bad_request_or_a_lost_client(servers, connection):
    host, port = servers.endpoints.http.split(":")
    with socket.create_connection((host, int(port))) as lost:
        lost.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc")
    assert ask(connection, "POST", "/echo", body=b"", headers={"Content-Length": "x"})[0] == 400


def test_closing_ends_connections_that_are_kept_open(servers, connection):
    assert ask(connection, "POST", "/echo", body=b"a") == (200, b"a")
    servers.close()

    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask(connection, "POST", "/echo", body=b"a")


def say(channel, name, **fields):
    call = channel.unary_unary("/test.Echo/Say", operations_pb2.GetOperationRequest.SerializeToString, operations_pb2.Operation.FromString)
    return call(operations_pb2.GetOperationRequest(name=name), timeout=DEADLINE_S, **fields).name


def follow(channel, *names):
    call = channel.stream_stream(
        "/test.Echo/Follow", operations_pb2.GetOperationRequest.SerializeToString, operations_pb2.Operation.FromString
    )
    return call(iter([operations_pb2.GetOperationRequest(name=name) for name in names]))


def test_a_handler_knows_how_long_its_caller_waits(channel):
    assert say(channel, "a") == "a True"


def test_streams_bring_answers_until_an_error(channel):
    stream = follow(channel, "a", "b", "wrong", "c")

    assert [next(stream).name, next(stream).name] == ["a", "b"]
    with pytest.raises(grpc.RpcError) as caught:
        next(stream)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_stream_is_cut_after_its_first_answer_and_the_next_one_is_whole(world, channel):
    world.injections.add(InjectedFault(method="test.Echo/Follow", is_partial=True))
    stream = follow(channel, "a", "b")

    assert next(stream).name == "a"
    with pytest.raises(grpc.RpcError) as caught:
        next(stream)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert [answer.name for answer in follow(channel, "a", "b")] == ["a", "b"]


def test_a_method_that_nobody_offers_and_a_defect_are_answered_and_journalled(world, channel):
    call = channel.unary_unary("/test.Other/Say")
    broken = channel.unary_unary("/test.Echo/Break")

    for asked, code in ((call, grpc.StatusCode.UNIMPLEMENTED), (broken, grpc.StatusCode.UNKNOWN)):
        with pytest.raises(grpc.RpcError) as caught:
            asked(b"", timeout=DEADLINE_S)
        assert caught.value.code() == code
    assert [(call.method, call.outcome) for call in world.calls.all()] == [
        ("test.Other/Say", "UNIMPLEMENTED"),
        ("test.Echo/Break", "broken"),
    ]


def test_closing_ends_a_stream_that_would_go_on_for_ever(servers, channel):
    stream = follow(channel, "a", "forever")
    assert next(stream).name == "a"

    servers.close()

    with pytest.raises((StopIteration, grpc.RpcError)):
        next(stream)


def test_many_callers_are_answered_at_once(channel, servers):
    waiting = [follow(channel, "x", "forever") for _ in range(20)]
    assert [next(stream).name for stream in waiting] == ["x"] * 20

    assert say(channel, "a") == "a True"
    servers.close()


def test_the_whole_emulator_speaks_every_service_and_stops_twice(tmp_path):
    emulator = Emulator(tmp_path, buckets=("bucket",))
    services = {name.rpartition("/")[0] for name in emulator.method_names()} | {name.partition(".")[0] for name in emulator.route_names()}
    emulator.close()
    emulator.close()

    assert services == {
        "google.cloud.run.v2.Jobs",
        "google.cloud.run.v2.Executions",
        "google.cloud.run.v2.Tasks",
        "google.longrunning.Operations",
        "google.logging.v2.LoggingServiceV2",
        "google.container.v1.ClusterManager",
        "compute",
        "storage",
        "logging",
        "emulator",
    }
    with Emulator(tmp_path, buckets=("bucket",)) as again:
        assert again.buckets.directory("bucket").is_dir()


def test_an_emulator_without_a_project_is_refused(tmp_path):
    with pytest.raises(ValueError, match="projects is empty"):
        Emulator(tmp_path, projects=())


@pytest.mark.parametrize(
    "headers", [{"Host": "rebound.example:80"}, {"Origin": "http://a.example"}, {"Origin": "null"}, {"Host": "127.0.0.1.example"}]
)
def test_a_page_of_a_browser_is_refused(servers, headers):
    connection = http.client.HTTPConnection(servers.endpoints.http, timeout=DEADLINE_S)
    connection.request("POST", "/echo", body=b"x", headers=headers)

    with contextlib.closing(connection.getresponse()) as answer:
        assert (answer.status, b"pages of a browser" in answer.read()) == (403, True)
    connection.close()


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "[::1]:80", "127.0.0.1"])
def test_a_program_of_this_machine_may_name_it_as_it_likes(servers, host):
    connection = http.client.HTTPConnection(servers.endpoints.http, timeout=DEADLINE_S)
    connection.request("POST", "/echo", body=b"x", headers={"Host": host})

    with contextlib.closing(connection.getresponse()) as answer:
        assert answer.read() == b"x"
    connection.close()
