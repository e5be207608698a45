"""gRPC on loopback: a server over a table of methods, with the message classes of Google's own clients and no generated stubs.

Not emulated: a connection that is cut ends the call with ``UNAVAILABLE`` and the client's own words for it, while the channel lives on.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from harness.emulator.failures import ApiError, unimplemented
from harness.emulator.service import CallContext, Method
from harness.emulator.wire.intake import Arrival, ConnectionCut, answer_call
from harness.emulator.world import World

WORKERS_MAX = 64
"""Waiters for operations and followers of logs hold one each; the clients of one run are far fewer."""

MESSAGE_BYTES_MAX = 64 << 20
"""More than Google takes (10 MiB for most), so that it is a service that refuses, in its words."""

CUT_TEXT = "recvmsg:Connection reset by peer"
"""What a client of gRPC says when its connection is cut."""

STOP_S = 0.5
"""Calls that are under way when the emulator closes get so long: those that wait end by themselves."""


class GrpcWire:
    """A server on a port of loopback, which serves from its construction on; 0 is any that is free.

    Attributes:
        address: ``127.0.0.1:PORT``.
    """

    def __init__(self, world: World, methods: Sequence[Method], port: int = 0) -> None:
        self._workers = ThreadPoolExecutor(WORKERS_MAX, thread_name_prefix="emulator-grpc")
        options = [
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
            ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
        ]
        self._server = grpc.server(self._workers, handlers=[MethodTable(world, methods)], options=options)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{port}')}"
        self._server.start()

    def close(self) -> None:
        """Take no more calls, end those under way, and wait until all threads are gone."""
        self._server.stop(STOP_S).wait()
        self._workers.shutdown(wait=True, cancel_futures=True)


class MethodTable(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # no generic class when it runs
    """Finds a method by the name on the wire."""

    def __init__(self, world: World, methods: Sequence[Method]) -> None:
        self._world = world
        self._methods = {method.name: method for method in methods}
        if len(self._methods) != len(methods):
            names = [method.name for method in methods]
            raise ValueError(f"{', '.join(sorted({name for name in names if names.count(name) > 1}))}: offered by two services")

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any]":
        """How a call is handled; a method that nobody offers is answered UNIMPLEMENTED, and journalled too."""
        name = handler_call_details.method
        method = self._methods.get(name)
        if method is None:
            return grpc.stream_stream_rpc_method_handler(lambda _, context: self._refuse(name, context))
        deserialize = _deserializer(method.request)
        if method.streams:
            return grpc.stream_stream_rpc_method_handler(
                lambda requests, context: self._stream(method, requests, context), deserialize, serialize_message
            )
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._answer(method, request, context), deserialize, serialize_message
        )

    def _answer(self, method: Method, request: object, context: grpc.ServicerContext) -> object:
        is_write = method.is_write and not getattr(request, "validate_only", False)
        arrival = _arrival(method, context, resource=method.resource(request), is_write=is_write)
        try:
            return answer_call(
                self._world, arrival, lambda is_partial: method.handle(request, self._context(arrival, context, is_partial=is_partial))
            )
        except ApiError as error:
            _abort(context, error)
        except ConnectionCut:
            _cut(context)

    def _stream(self, method: Method, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[object]:
        arrival = _arrival(method, context, resource="", is_write=method.is_write)
        partial: list[bool] = []

        def begin(is_partial: bool) -> Iterator[object]:  # noqa: FBT001 - as ``answer_call`` calls it
            partial.append(is_partial)
            answers: Iterator[object] = method.handle(requests, self._context(arrival, context, is_partial=is_partial))
            return answers

        try:
            for answer in answer_call(self._world, arrival, begin):
                yield answer
                if any(partial):
                    _cut(context)
        except ApiError as error:
            _abort(context, error)
        except ConnectionCut:
            _cut(context)

    def _refuse(self, name: str, context: grpc.ServicerContext) -> Iterator[object]:
        error = unimplemented(name.lstrip("/"))
        self._world.calls.note(name.lstrip("/"), resource="", is_write=False, outcome=error.code)
        _abort(context, error)

    def _context(self, arrival: Arrival, context: grpc.ServicerContext, *, is_partial: bool) -> CallContext:
        return CallContext(
            method=arrival.method,
            headers=arrival.headers,
            is_partial=is_partial,
            remaining_s=lambda: _remaining_s(context),
            is_active=lambda: context.is_active() and not self._world.closing.is_set(),
        )


def serialize_message(message: Any) -> bytes:
    """The bytes of a message, of proto-plus or of protobuf."""
    data: bytes = plain_message(message).SerializeToString()
    return data


def plain_message(message: Any) -> Any:
    """The protobuf message inside a proto-plus one; a protobuf message itself."""
    kind = type(message)
    return kind.pb(message) if hasattr(kind, "pb") else message


def status_of(error: ApiError) -> status_pb2.Status:
    """An error as ``google.rpc.Status``, with its details."""
    status = status_pb2.Status(code=error.number, message=error.message)
    if error.reason.isupper():
        info = error_details_pb2.ErrorInfo(reason=error.reason, domain=error.domain, metadata=dict(error.metadata))
        _pack(status.details.add(), info)
    if error.retry_after_s:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(round(error.retry_after_s * 1000))
        _pack(status.details.add(), error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def _pack(box: any_pb2.Any, message: Any) -> None:
    box.Pack(message)


def _abort(context: grpc.ServicerContext, error: ApiError) -> NoReturn:
    context.abort_with_status(rpc_status.to_status(status_of(error)))
    raise AssertionError("abort_with_status raises")


def _cut(context: grpc.ServicerContext) -> NoReturn:
    context.abort(grpc.StatusCode.UNAVAILABLE, CUT_TEXT)
    raise AssertionError("abort raises")


def _deserializer(kind: type[Any]) -> Any:
    return kind.deserialize if hasattr(kind, "deserialize") else kind.FromString


def _arrival(method: Method, context: grpc.ServicerContext, *, resource: str, is_write: bool) -> Arrival:
    headers = {str(key): str(value) for key, value in context.invocation_metadata()}
    return Arrival(method=method.name.lstrip("/"), resource=resource, is_write=is_write, headers=headers, is_active=context.is_active)


def _remaining_s(context: grpc.ServicerContext) -> float:
    remaining_s: float | None = context.time_remaining()
    return float("inf") if remaining_s is None else remaining_s
