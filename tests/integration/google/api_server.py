"""A Kubernetes API server on loopback: objects as ``FakeApi`` keeps them, spoken over HTTPS with a token, with watches, logs and failures."""

import base64
import ipaddress
import json
import select
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.targets.kubernetes.api import ApiError, Object, Resource
from tests.unit.targets.kubernetes.fake_api import FakeApi

TOKEN = "ya29.first-token-of-the-caller"


@dataclass
class Refusal:
    """What befalls matching calls; ``status`` 0: the connection is cut before an answer. ``times`` 0: every one."""

    verb: str
    plural: str
    status: int
    times: int = 0
    reason: str = "as the test wants it"
    seen: int = 0


class ApiServer:
    """One server. ``api`` is what it keeps: whoever touches it holds ``lock``."""

    def __init__(self, directory: Path) -> None:
        self.api, self.lock = FakeApi(), threading.RLock()
        self.tokens = {TOKEN}
        self.refusals: list[Refusal] = []
        self.calls: list[str] = []  # "VERB plural[/name]"
        certificate, key = _certificate()
        self.authority = base64.b64encode(certificate).decode()
        pair = directory / "server.pem"
        pair.write_bytes(certificate + key)
        self._ended = threading.Event()
        server = self

        class Handler(_Handler):
            owner = server
            ended = server._ended

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  a client that hangs up is no news
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.endpoint = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def writes(self) -> list[str]:
        """Calls that were to change something."""
        with self.lock:
            return [call for call in self.calls if call.split()[0] not in ("get", "list", "watch", "log")]

    def refusal(self, verb: str, plural: str) -> Refusal | None:
        with self.lock:
            for one in self.refusals:
                if one.verb in (verb, "*") and one.plural in (plural, "*") and (not one.times or one.seen < one.times):
                    one.seen += 1
                    return one
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ApiServer
    ended: threading.Event

    def log_message(self, *_args: object) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        place = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(place.query).items()}
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        resource, namespace, name, subresource = _place_of(place.path)
        verb = self._verb(name, subresource, query)
        called = name or str((body.get("metadata") or {}).get("name", ""))
        with self.owner.lock:
            self.owner.calls.append(f"{verb} {resource.plural}" + (f"/{called}" if called else ""))
            is_known = self.headers.get("Authorization", "").removeprefix("Bearer ") in self.owner.tokens
        refusal = self.owner.refusal(verb, resource.plural)
        if refusal is not None and not refusal.status:
            self.close_connection = True
            return
        if not is_known:
            self._answer(401, _status(401, "Unauthorized", "Unauthorized"))
        elif refusal is not None:
            self._answer(refusal.status, _status(refusal.status, "Refused", refusal.reason))
        elif verb == "watch":
            self._watch(resource, namespace, query)
        elif verb == "log":
            self._log(name)
        else:
            self._act(verb, resource, namespace, name, query=query, body=body)

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815  as the standard library names them

    def _verb(self, name: str, subresource: str, query: dict[str, str]) -> str:
        if subresource == "eviction":
            return "evict"
        if subresource == "log":
            return "log"
        if self.command == "GET":
            return "watch" if query.get("watch") else "get" if name else "list"
        is_apply = self.headers.get("Content-Type", "").startswith("application/apply-patch")
        return {"POST": "create", "PATCH": "apply" if is_apply else "patch", "DELETE": "delete"}[self.command]

    def _act(self, verb: str, resource: Resource, namespace: str, name: str, *, query: dict[str, str], body: Object) -> None:
        owner = self.owner
        try:
            with owner.lock:
                answer = self._done(verb, resource, namespace, name, query=query, body=body)
        except ApiError as error:
            self._answer(error.status, _status(error.status, error.reason, error.message))
            return
        if answer is None:
            self._answer(404, _status(404, "NotFound", f'{resource.plural} "{name}" not found'))
        else:
            self._answer(200, answer)

    def _done(self, verb: str, resource: Resource, namespace: str, name: str, *, query: dict[str, str], body: Object) -> Object | None:
        api = self.owner.api
        match verb:
            case "get":
                return api.get(resource, name, namespace)
            case "list":
                found = api.listing(resource, namespace, query.get("labelSelector", ""))
                return {"items": found.items, "metadata": {"resourceVersion": found.version}}
            case "create":
                return api.create(resource, body, namespace)
            case "apply":
                return api.apply(resource, body, namespace)
            case "patch":
                before = api.get(resource, name, namespace)
                wanted = (body.get("metadata") or {}).get("resourceVersion")
                if before is not None and wanted not in (None, before["metadata"]["resourceVersion"]):
                    raise ApiError(attempted="patch", what=name, status=409, reason="Conflict", message="the object has been modified")
                return api.patch(resource, name, body, namespace)
            case "evict":
                api.evict(name, namespace, uid=(body["deleteOptions"].get("preconditions") or {}).get("uid", ""))
                return _status(201, "Success", "")
            case _:
                uid = (body.get("preconditions") or {}).get("uid", "")
                is_there = api.delete(resource, name, namespace, body.get("gracePeriodSeconds"), uid)
                return _status(200, "Success", "") if is_there else None

    def _watch(self, resource: Resource, namespace: str, query: dict[str, str]) -> None:
        with self.owner.lock:
            stream = self.owner.api.watch(resource, namespace, query.get("labelSelector", ""), query["resourceVersion"])
        self._stream(iter(lambda: self._next(stream), None))

    def _is_heard(self) -> bool:
        """Whether anybody listens still; who watches says nothing more, so that something to read is the end."""
        return not self.ended.is_set() and not select.select([self.connection], [], [], 0)[0]

    def _next(self, stream: object) -> bytes | None:
        """Lines, or nothing while nothing happens, so that an end is noticed."""
        if not self._is_heard():
            return None
        with self.owner.lock:
            new, stream._seen = stream._api.changes[stream._seen :], len(stream._api.changes)  # type: ignore[attr-defined]
            lines = b"".join(stream._line(change) for change in new if stream._is_mine(change))  # type: ignore[attr-defined]
        if not lines:
            self.ended.wait(0.01)
        return lines

    def _log(self, name: str) -> None:
        def follow() -> Iterator[bytes]:
            sent = 0
            while self._is_heard():
                with self.owner.lock:
                    data = self.owner.api.logs.get(name, b"")
                    is_over = not self._is_running(name)
                yield data[sent:]
                sent = len(data)
                if is_over:
                    return
                self.ended.wait(0.01)

        self._stream(follow())

    def _is_running(self, name: str) -> bool:
        found = [one for key, one in self.owner.api.objects.items() if key[0] == "pods" and key[2] == name]
        return bool(found) and found[0]["status"]["phase"] == "Running"

    def _stream(self, parts: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for part in parts:
                if part:
                    self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                    self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def _answer(self, status: int, body: Object) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True


def _place_of(path: str) -> tuple[Resource, str, str, str]:
    """Resource, namespace, name and subresource of a path."""
    parts = path.strip("/").split("/")
    count = 2 if parts[0] == "api" else 3
    version, rest = "/".join(parts[1:count]), parts[count:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    is_namespaced = bool(namespace) or rest[0] in ("pods", "workloads", "jobs")
    resource = Resource(version, rest[0], is_namespaced)
    return resource, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else ""


def _status(code: int, reason: str, message: str) -> Object:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


def _certificate() -> tuple[bytes, bytes]:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api server of a test")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return built.public_bytes(serialization.Encoding.PEM), private
