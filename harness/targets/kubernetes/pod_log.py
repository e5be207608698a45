"""What a pod prints, followed through the API server into a pipe: a thread reads, the loop never waits."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import urllib3

from harness.protocol.output import PipeSource
from harness.targets.kubernetes.api import LINE_BYTES, NOT_FOUND, Api, ApiError

RETRY_S = 0.5

HEAD_BYTES = 512
"""By so much of its beginning a log is known again; one that begins otherwise was rotated."""

JOIN_S = 2.0


class PodLog(threading.Thread):
    """The log of one pod's main container. The API server mixes stdout and stderr: all of it counts as stdout.

    Attributes:
        source: What the loop reads.
        rotations: How often the log was another one when it was opened again: what the old one said at its end is lost.
        is_cut: Whether its pod was gone before it was read to its end.
        failure: By which fault of its own the thread has ended; empty when by none.
    """

    def __init__(self, api: Api, *, pod: str, namespace: str, container: str) -> None:
        super().__init__(name=f"log of {pod}", daemon=True)
        reading, self._writing = os.pipe()
        self.source = PipeSource(reading)
        self._open: Callable[[], urllib3.BaseHTTPResponse] = lambda: api.log(pod, namespace, container)
        self._response: urllib3.BaseHTTPResponse | None = None
        self._is_stopping = threading.Event()
        self._passed = 0
        self._head = b""
        self.rotations = 0
        self.is_cut = False
        self.failure = ""

    def run(self) -> None:
        """Follow it to its end, again from where it was when the connection breaks; what else fails ends it, and is noted."""
        try:
            while not self._is_stopping.is_set() and not self._follow():
                self._is_stopping.wait(RETRY_S)
        except BrokenPipeError:
            return  # nobody reads any more
        except (OSError, LookupError, TypeError, AttributeError, RuntimeError) as error:
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            os.close(self._writing)

    def close(self) -> None:
        """Stop following."""
        self._is_stopping.set()
        response = self._response
        if response is not None:
            with suppress(OSError, ValueError, RuntimeError):
                response.shutdown()
        os.close(self.source.descriptor)
        if self.is_alive():
            self.join(JOIN_S)

    def _follow(self) -> bool:
        """Whether the log has ended: its container has, or the pod is gone."""
        try:
            self._response = response = self._open()
            with closing(response):
                skip = self._skip_known(response)
                while data := response.read1(LINE_BYTES):
                    new, skip = data[skip:], max(0, skip - len(data))
                    self._pass_on(new)
        except ApiError as error:
            self.is_cut = error.status == NOT_FOUND
            return self.is_cut
        except (urllib3.exceptions.HTTPError, ValueError):
            return False
        return True

    def _skip_known(self, response: urllib3.BaseHTTPResponse) -> int:
        """Read the beginning and pass on what is new of it; returns how many of the bytes that follow are known."""
        beginning = b""
        while len(beginning) < len(self._head) and (data := response.read1(LINE_BYTES)):
            beginning += data
        if beginning and not beginning.startswith(self._head):
            self.rotations += 1
            self._passed, self._head = 0, b""
        known = self._passed
        self._pass_on(beginning[known:])
        return max(0, known - len(beginning))

    def _pass_on(self, data: bytes) -> None:
        self._head += data[: HEAD_BYTES - len(self._head)]
        view = memoryview(data)
        while view:
            written = os.write(self._writing, view)
            self._passed += written
            view = view[written:]


class NoSource:
    """A stream that says nothing; see ``harness.protocol.output.Source``."""

    descriptor = -1
    is_open = False

    def read(self, budget_bytes: int) -> Iterator[bytes]:
        """See ``Source``."""
        del budget_bytes
        return iter(())
