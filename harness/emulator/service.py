"""What a service brings to the wires."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What a call brings besides its request.

    Attributes:
        method: Its whole name.
        headers: By name, in small letters.
        is_partial: Whether an injected fault wants the answer cut short: a page then ends early, with a token for the rest.
        remaining_s: How long the caller will wait still; infinity when it has not said.
        is_active: Whether the caller is there still; False as well once the emulator closes.
    """

    method: str
    headers: Mapping[str, str]
    is_partial: bool
    remaining_s: Callable[[], float]
    is_active: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method spoken over gRPC.

    Attributes:
        name: As on the wire: ``/google.cloud.run.v2.Jobs/GetJob``.
        request: The message class of the request, of proto-plus or of protobuf.
        handle: Does the work. Gets the request and the context and returns the answer; where ``streams``, gets an iterator of requests
            and returns an iterator of answers, whatever side it is that streams. Raises ``ApiError``.
        is_write: Whether it changes something, unless the request is ``validate_only``.
        resource: What the request is about: for the journal of calls. A stream's is empty.
        streams: Whether either side streams.
    """

    name: str
    request: type[Any]  # proto-plus and protobuf have no class in common
    handle: Callable[[Any, CallContext], Any]
    is_write: bool = False
    resource: Callable[[Any], str] = lambda request: str(getattr(request, "name", ""))
    streams: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request over HTTP.

    Attributes:
        verb: ``GET``, ``POST``, ….
        path: As it came, still quoted.
        parameters: What the placeholders of the route's pattern stand for, unquoted.
        query: Each parameter with all its values, unquoted.
        headers: By name, in small letters.
        body: All of it; chunked bodies put together.
        context: What comes with every call.
    """

    verb: str
    path: str
    parameters: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    body: bytes
    context: CallContext

    def query_value(self, name: str, default: str = "") -> str:
        """The last value of a query parameter."""
        values = self.query.get(name, ())
        return values[-1] if values else default


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """An answer over HTTP; a body that is an iterator is sent in chunks as it comes."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Iterator[bytes] = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method spoken over REST.

    Attributes:
        verb: ``GET``, ``POST``, ….
        pattern: The path with placeholders: ``{bucket}`` is one segment, as it came quoted (``a%2Fb`` is one); ``{name=**}`` is
            everything, slashes included. Of two routes that match the one that a service names first is taken.
        name: Google's name of the method, like ``storage.objects.get``: faults are injected by it.
        handle: Does the work. Raises ``ApiError``.
        is_write: Whether it changes something.
        resource: What the request is about; its path, where nothing else is said.
        is_control: Whether it speaks with the emulator itself: no call of a service, neither journalled nor hit by faults.
    """

    verb: str
    pattern: str
    name: str
    handle: Callable[[HttpRequest], HttpResponse]
    is_write: bool = False
    resource: Callable[[HttpRequest], str] = lambda request: request.path
    is_control: bool = False


class Service(Protocol):
    """One of Google's services. Calls come from many threads at once."""

    def methods(self) -> Sequence[Method]:
        """What it speaks over gRPC."""
        ...

    def routes(self) -> Sequence[Route]:
        """What it speaks over REST."""
        ...

    def close(self) -> None:
        """End everything that it has started."""
        ...
