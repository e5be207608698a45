"""Following the log: a stream of what can be found from now on."""

from collections.abc import Iterator
from typing import Any

from google.cloud.logging_v2.types import TailLogEntriesRequest, TailLogEntriesResponse

from harness.emulator.failures import invalid_argument
from harness.emulator.logging.deliveries import Delivery
from harness.emulator.logging.following import Follower
from harness.emulator.logging.listing import PAGE_BYTES_MAX, read_filter, readable_projects
from harness.emulator.logging.messages import to_message
from harness.emulator.logging.query import Expression, find_subjects, matches
from harness.emulator.logging.store import LogEntryStore
from harness.emulator.service import CallContext
from harness.emulator.world import World

WINDOW_DEFAULT_S = 2.0
WINDOW_MAX_S = 60.0
"""Source of both: the comment of ``TailLogEntriesRequest.buffer_window`` in google.logging.v2."""

ANSWER_ENTRIES_MAX = 1000
LOOK_S = 0.02
"""Between two looks at the clock, which may be moved by hand."""

_NOT_CONSUMED = TailLogEntriesResponse.SuppressionInfo.Reason.NOT_CONSUMED


def tail(
    world: World, store: LogEntryStore, requests: Iterator[TailLogEntriesRequest], context: CallContext
) -> Iterator[TailLogEntriesResponse]:
    """What matches the first request, until the caller or the emulator ends it; what is asked later in the stream changes nothing.

    Entries wait for the buffer window after they can be found; each answer is in order of the timestamps, not one after another.

    Raises:
        ApiError: INVALID_ARGUMENT or PERMISSION_DENIED for a request that cannot be followed.
    """
    request = next(requests, None)
    if request is None:
        return iter(())
    projects = readable_projects(world.projects, tuple(request.resource_names))
    expression = read_filter(request.filter)
    window_s = _window_s(request)
    return _answers(world, store, _Following(projects, expression, window_s), context)


class _Following:
    """What is followed, and how long entries wait."""

    def __init__(self, projects: frozenset[str], expression: Expression, window_s: float) -> None:
        self._projects, self._expression, self._window_s = projects, expression, window_s
        self._subjects = find_subjects(expression)

    def take(self, follower: Follower, now_s: float) -> TailLogEntriesResponse | None:
        """The next answer, when there is something to say."""
        deliveries, missed = follower.take(now_s - self._window_s, ANSWER_ENTRIES_MAX, PAGE_BYTES_MAX)
        ours = sorted((found for found in deliveries if self._may_match(found)), key=lambda found: found.key)
        entries = [entry for entry in (found.entry() for found in ours) if matches(self._expression, entry)]
        if not entries and not missed:
            return None
        response = TailLogEntriesResponse()
        plain: Any = TailLogEntriesResponse.pb(response)
        plain.entries.extend(to_message(entry) for entry in entries)
        if missed:
            response.suppression_info = [TailLogEntriesResponse.SuppressionInfo(reason=_NOT_CONSUMED, suppressed_count=missed)]
        return response

    def _may_match(self, delivery: Delivery) -> bool:
        """Without a look at the entry itself: most of a busy log are of other executions."""
        return delivery.project in self._projects and all(delivery.subjects & subjects for subjects in self._subjects)


def _answers(world: World, store: LogEntryStore, following: _Following, context: CallContext) -> Iterator[TailLogEntriesResponse]:
    follower = store.follow()
    try:
        while context.is_active():
            store.settle()
            response = following.take(follower, world.clock.monotonic_s())
            if response is None:
                world.closing.wait(LOOK_S)
            else:
                yield response
    finally:
        store.unfollow(follower)


def _window_s(request: TailLogEntriesRequest) -> float:
    plain: Any = TailLogEntriesRequest.pb(request)
    if not plain.HasField("buffer_window"):
        return WINDOW_DEFAULT_S
    window_s: float = plain.buffer_window.ToNanoseconds() / 1e9
    if not 0 <= window_s <= WINDOW_MAX_S:
        raise invalid_argument("buffer_window", f"{window_s:g} s is not between 0 and {WINDOW_MAX_S:g} s")
    return window_s
