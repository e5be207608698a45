"""Watches the cluster without ever blocking who asks: a thread a kind of object reads, ``drain`` takes what has come."""

import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Literal

import urllib3

from harness.targets.kubernetes.api import GONE, Api, ApiError, Object, Resource, lines_of, uid_of
from harness.targets.kubernetes.gaps import is_lost

RETRY_S = 0.25
"""A restarting API server refuses connections for some seconds; four questions a second find it soon and cost nothing."""

JOIN_S = 2.0

_KINDS: dict[str, Literal["added", "modified", "deleted"]] = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched: one kind of object, in one namespace or everywhere, with some labels or any."""

    resource: Resource
    namespace: str = ""
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """An object that came, changed or went. After a break in the watch what was missed comes as one change an object."""

    kind: Literal["added", "modified", "deleted"]
    resource: Resource
    object: Object


class Watches:
    """Watches several kinds of objects at once.

    Attributes:
        descriptor: Readable while ``drain`` has something to give.
    """

    def __init__(self, api: Api, watched: Sequence[Watched]) -> None:
        self._changes: deque[Change] = deque()
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self.descriptor = self._reader.fileno()
        self._threads = [_Watch(api, one, self._put) for one in watched]
        for thread in self._threads:
            thread.start()

    @property
    def is_synced(self) -> bool:
        """Whether all that was there at the start has been seen."""
        return all(thread.is_synced for thread in self._threads)

    @property
    def is_failing(self) -> bool:
        """Whether no watch is open: the API server does not answer any of them."""
        return all(thread.is_failing for thread in self._threads)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Watches that are not open just now, each with why."""
        return tuple(f"{thread.name}: {thread.trouble}" for thread in self._threads if thread.is_failing)

    @property
    def gaps(self) -> int:
        """Of how many objects a watch that had to list again has lost something that they went through."""
        return sum(thread.gaps for thread in self._threads)

    @property
    def broken(self) -> str:
        """Which watch has ended by a fault of its own, and why; empty while all go on."""
        ended = [thread for thread in self._threads if thread.failure or not thread.is_alive()]
        return "; ".join(f"{thread.name}: {thread.failure or 'ended'}" for thread in ended)

    def drain(self) -> list[Change]:
        """What has changed since, each kind of object in its own order."""
        with suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass
        changes: list[Change] = []
        while self._changes:
            changes.append(self._changes.popleft())
        return changes

    def close(self) -> None:
        """Stop watching."""
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join(JOIN_S)
        self._reader.close()
        self._writer.close()

    def _put(self, change: Change) -> None:
        self._changes.append(change)
        with suppress(OSError):  # full: it is readable already; closed: nobody asks any more
            self._writer.send(b"\0")


class _Watch(threading.Thread):
    """One watch: lists, then reads changes, and begins again whenever that breaks."""

    def __init__(self, api: Api, watched: Watched, put: Callable[[Change], None]) -> None:
        super().__init__(name=f"watch {watched.resource.plural}", daemon=True)
        self.is_synced = False
        self.is_failing = False
        self.gaps = 0
        self.failure = ""
        self.trouble = ""
        self._api = api
        self._watched = watched
        self._put = put
        self._version = ""
        self._known: dict[str, Object] = {}
        self._is_stopping = threading.Event()
        self._response: urllib3.BaseHTTPResponse | None = None

    def run(self) -> None:
        """Watch until stopped; an object that is not what the API says it is ends it, and is noted."""
        try:
            self._watch()
        except (LookupError, TypeError, AttributeError) as error:
            self.failure = f"{type(error).__name__}: {error}"

    def _watch(self) -> None:
        while not self._is_stopping.is_set():
            try:
                if not self._version:
                    self._list()
                self._follow()
            except (ApiError, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                if isinstance(error, ApiError) and error.status == GONE:
                    self._version = ""
                self.trouble = str(error)
                self.is_failing = True
                self._is_stopping.wait(RETRY_S)

    def stop(self) -> None:
        """End it, also while it waits for the server."""
        self._is_stopping.set()
        response = self._response
        if response is not None:
            with suppress(OSError, ValueError, RuntimeError):  # it has ended by itself
                response.shutdown()

    def _list(self) -> None:
        """Take all objects as they are, and tell those that went unseen."""
        listing = self._api.listing(self._watched.resource, self._watched.namespace, self._watched.selector)
        there = {uid_of(item): item for item in listing.items}
        self.gaps += sum(is_lost(self._watched.resource, known, there.get(uid)) for uid, known in self._known.items())
        for uid in [uid for uid in self._known if uid not in there]:
            self._tell("deleted", self._known[uid])
        for item in listing.items:
            known = self._known.get(uid_of(item))
            if known is None or known["metadata"].get("resourceVersion") != item["metadata"].get("resourceVersion"):
                self._tell("added" if known is None else "modified", item)
        self._version = listing.version
        self.is_synced = True

    def _follow(self) -> None:
        """Read changes until the server ends the watch.

        Raises:
            ApiError: When it could not be opened, or the version is too old by now.
        """
        watched = self._watched
        self._response = response = self._api.watch(watched.resource, watched.namespace, watched.selector, self._version)
        self.is_failing = False
        with closing(response):
            if self._is_stopping.is_set():
                return  # it was stopped while it opened, when there was nothing yet to shut down
            for line in lines_of(response):
                self._take(json.loads(line))

    def _take(self, change: Object) -> None:
        kind, item = str(change["type"]), change["object"]
        if kind == "ERROR":
            code, reason = int(item.get("code", 0)), str(item.get("reason", ""))
            raise ApiError(attempted="watch", what=self._watched.resource.plural, status=code, reason=reason)
        self._version = str(item["metadata"]["resourceVersion"])
        if kind in _KINDS:
            self._tell(_KINDS[kind], item)

    def _tell(self, kind: Literal["added", "modified", "deleted"], item: Object) -> None:
        if kind == "deleted":
            self._known.pop(uid_of(item), None)
        else:
            self._known[uid_of(item)] = item
        self._put(Change(kind, self._watched.resource, item))
