"""REST on loopback: a threaded HTTP/1.1 server over a table of routes, with kept connections and chunked bodies.

Not emulated: TLS, HTTP/2, compression.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qs, urlsplit

from harness.emulator.failures import ApiError
from harness.emulator.service import CallContext, HttpRequest, HttpResponse, Route
from harness.emulator.wire.http_bodies import error_response, read_body, require_local
from harness.emulator.wire.intake import Arrival, ConnectionCut, answer_call
from harness.emulator.wire.routing import Routes
from harness.emulator.world import World


class HttpWire:
    """A server on a port of loopback, which serves from its construction on; 0 is any that is free.

    Attributes:
        address: ``127.0.0.1:PORT``.
    """

    def __init__(self, world: World, routes: Sequence[Route], port: int = 0) -> None:
        self._server = _Server(world, Routes(routes), port)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="emulator-http")
        self._thread.start()

    def close(self) -> None:
        """Take no more requests, end the connections, and wait until all threads are gone."""
        self._server.shutdown()
        self._thread.join()
        self._server.end_connections()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # ``server_close`` then waits for them
    request_queue_size = 128

    def __init__(self, world: World, routes: Routes, port: int) -> None:
        self.world, self.routes = world, routes
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        """Those that are kept open wait for a next request for ever."""
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of ours; anything else is shown as usual."""
        import sys

        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "emulator"
    sys_version = ""
    wbufsize = -1  # a head and its body in one packet
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Calls are journalled, not printed."""

    def serve(self) -> None:
        """One request."""
        server = cast("_Server", self.server)
        target = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            require_local(headers)
            body = read_body(cast("BinaryIO", self.rfile), headers)
        except ApiError as error:
            self.close_connection = True  # what is left of the body is not read
            self._send(error_response(error), is_partial=False)
            return
        found = server.routes.find(self.command, target.path)
        if found is None:
            missing = ApiError("NOT_FOUND", f"Method not found: {self.command} {target.path}", reason="notFound")
            server.world.calls.note(f"{self.command} {target.path}", resource=target.path, is_write=False, outcome=missing.code)
            self._send(error_response(missing), is_partial=False)
            return
        route, parameters = found
        request = HttpRequest(
            verb=self.command,
            path=target.path,
            parameters=parameters,
            query=parse_qs(target.query, keep_blank_values=True),
            headers=headers,
            body=body,
            context=self._context(route, headers, is_partial=False),
        )
        self._answer(route, request)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = serve  # noqa: N815 - as the base class finds them

    def _answer(self, route: Route, request: HttpRequest) -> None:
        world = cast("_Server", self.server).world
        arrival = Arrival(
            method=route.name,
            resource=route.resource(request),
            is_write=route.is_write,
            headers=request.headers,
            is_active=request.context.is_active,
        )
        cut_short: list[bool] = []

        def work(is_partial: bool) -> HttpResponse:  # noqa: FBT001 - as ``answer_call`` calls it
            cut_short.append(is_partial)
            return route.handle(request)

        try:
            answer = route.handle(request) if route.is_control else answer_call(world, arrival, work)
            self._send(answer, is_partial=any(cut_short))
        except ApiError as error:
            self._send(error_response(error), is_partial=False)
        except ConnectionCut:
            self._cut()

    def _context(self, route: Route, headers: dict[str, str], *, is_partial: bool) -> CallContext:
        closing = cast("_Server", self.server).world.closing
        return CallContext(
            method=route.name,
            headers=headers,
            is_partial=is_partial,
            remaining_s=lambda: float("inf"),
            is_active=lambda: not closing.is_set(),
        )

    def _send(self, response: HttpResponse, *, is_partial: bool) -> None:
        """Send an answer; one cut short announces all and brings half, then the connection ends."""
        body = response.body
        has_body = self.command != "HEAD" and response.status not in (204, 304)
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if isinstance(body, bytes):
            if response.status not in (204, 304) and "Content-Length" not in response.headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if has_body:
                self.wfile.write(body[: len(body) // 2] if is_partial else body)
        else:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._send_chunks(body, is_partial=is_partial)
        self.wfile.flush()
        if is_partial:
            self._cut()

    def _send_chunks(self, body: Iterator[bytes], *, is_partial: bool) -> None:
        for piece in body:
            if piece:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
            if is_partial:
                return
        self.wfile.write(b"0\r\n\r\n")

    def _cut(self) -> None:
        """End the connection without another word."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
