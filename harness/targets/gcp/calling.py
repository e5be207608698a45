"""The one way to call a Google API: with a deadline, retries where a second request is no second deed, and errors that say what to do.

Pure over an injected callable and clock; clients' own retries are switched off (``retry=None``), or they would repeat what must not be.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Generic, TypeVar

from msgspec.structs import replace as replace_fields

from harness.clock import Clock
from harness.targets.gcp.exceptions import call_errors, read_failure
from harness.targets.gcp.failures import (
    EMULATOR_GONE,
    CallError,
    Failure,
    OriginalError,
    PagesError,
    class_of,
)
from harness.targets.gcp.secrets import Secrets

T = TypeVar("T")

Send = Callable[[float], T]
"""Sends a request once; takes the seconds that it may last, for the client's ``timeout``."""

CALL_DEADLINE_S = 120.0
"""For a call that says nothing else: as long as a person would wait for one answer."""

LIST_DEADLINE_S = 900.0
"""For all pages of a list: each that comes is worth waiting for the next, but nobody waits for ever."""

PAGES_MAX = 10_000
"""Beyond that a list is a mistake: at 1000 items a page these are ten million."""

REPEATABLE_CODES = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL"})
"""Transient, for what may be done twice. Source: https://google.aip.dev/194, https://cloud.google.com/storage/docs/retry-strategy."""

SUPERSEDED_CODES = frozenset({"ALREADY_EXISTS", "FAILED_PRECONDITION", "ABORTED", "NOT_FOUND"})
"""What a second request may get because the first one, whose answer was lost, did its work."""


class Effect(StrEnum):
    """What a second request would do."""

    READ = "read"
    IDEMPOTENT = "idempotent write"
    """The same again, or nothing: by name, or under a precondition."""

    WRITE = "other write"
    """A second deed: RunJob starts a second execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of whom; for errors, and for what may be repeated.

    Attributes:
        service: Like ``run.googleapis.com``.
        method: Like ``Jobs.RunJob``.
        resource: Full name of what it is about.
        effect: What a second one would do.
    """

    service: str
    method: str
    resource: str
    effect: Effect = Effect.READ


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """One page of a list; without a token it is the last one."""

    items: Sequence[T]
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long is waited between attempts.

    Attributes:
        first_s: At most before the second attempt; each wait is drawn between 0 and a bound that doubles (full jitter).
        longest_s: Bound of the bound.
        attempt_s: How long one attempt may last.
        attempts_max: A service that fails as often as this is not asked again, however much time is left.
        settle_s: After an ambiguous failure, how long the deed is looked for before the request is sent again: it may still be on its way.
    """

    first_s: float = 1.0
    longest_s: float = 30.0
    attempt_s: float = 60.0
    attempts_max: int = 8
    settle_s: float = 10.0


@dataclass(slots=True, kw_only=True)
class Caller:
    """Calls. One for a run: its ``secrets`` mask what errors quote.

    Attributes:
        clock: For waiting.
        chance: Seeded: of jitter.
        policy: How long is waited.
        secrets: Credentials that must not be told.
        renew: Gets a new token where the one we hold is not believed any more; called once in a call.
        problem: Why nobody answers any more, however often we ask (``Clients.problem``); asked when somebody has not.
    """

    clock: Clock
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311  jitter, no cryptography
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    secrets: Secrets = field(default_factory=Secrets)
    renew: Callable[[], None] | None = None
    problem: Callable[[], str] = str

    def call(self, request: Request, send: Send[T], *, look: Send[T | None] | None = None, deadline_s: float = CALL_DEADLINE_S) -> T:
        """Send until it is answered, refused, or the time is over.

        Args:
            request: What it is about.
            send: Sends once.
            look: For what must not be done twice: finds what an earlier request of this call did, None when nothing is there. Without it
                such a request is never repeated once it may have been done.
            deadline_s: For all attempts, waits and looks together.

        Raises:
            CallError: When it was refused, or not answered in time.
        """
        return _Attempts(self, request, look, deadline_s).run(send)

    def pages(
        self,
        request: Request,
        fetch: Callable[[str, float], Page[T]],
        *,
        deadline_s: float = CALL_DEADLINE_S,
        list_deadline_s: float = LIST_DEADLINE_S,
        pages_max: int = PAGES_MAX,
    ) -> Iterator[T]:
        """Every item of a list, page by page; ``fetch`` takes the page's token and the seconds that it may last.

        Args:
            request: What is listed.
            fetch: Gets a page.
            deadline_s: For each page.
            list_deadline_s: For all of them.
            pages_max: More of them are a mistake.

        Raises:
            PagesError: When a token comes twice, or there are more than ``pages_max`` pages.
            CallError: When a page could not be had; those before it were given.
        """
        end_s = self.clock.monotonic_s() + list_deadline_s
        seen = {""}
        token = ""
        for _ in range(pages_max):
            page = self.call(request, partial(fetch, token), deadline_s=min(deadline_s, end_s - self.clock.monotonic_s()))
            yield from page.items
            if not page.token:
                return
            if page.token in seen:
                raise self._endless(request, f"the page after {len(seen)} pages is one that was there before")
            seen.add(page.token)
            token = page.token
        raise self._endless(request, f"there are more than {pages_max} pages")

    def read(self, error: Exception) -> Failure:
        """What a client raised, without anything secret."""
        return read_failure(error, self.secrets, self.clock)

    def pause_s(self, attempt: int) -> float:
        """How long to wait after the attempt of that number (from 1)."""
        bound_s = min(self.policy.longest_s, self.policy.first_s * 2.0 ** min(attempt - 1, 30))
        return self.chance.uniform(0.0, bound_s)

    def _endless(self, request: Request, what: str) -> CallError:
        failure = Failure(code="INTERNAL", message=what)
        return PagesError(service=request.service, method=request.method, resource=request.resource, failure=failure)


class _Attempts(Generic[T]):
    """One call: as many attempts as it takes, or may take."""

    def __init__(self, caller: Caller, request: Request, look: Send[T | None] | None, deadline_s: float) -> None:
        self._caller, self._request, self._look = caller, request, look
        self._end_s = caller.clock.monotonic_s() + deadline_s
        self._made = 0
        self._may_be_done = False
        self._has_renewed = False

    def run(self, send: Send[T]) -> T:
        """See ``Caller.call``."""
        while True:
            answer = self._once(send)
            if not isinstance(answer, Failure):
                return answer
            self._refuse_vain(answer)
            self._may_be_done |= answer.is_ambiguous
            found = self._search(answer)
            if found is not None:
                return found
            wait_s = self._wait_s(answer)
            if wait_s is None or wait_s >= self._left_s or self._made >= self._caller.policy.attempts_max:
                raise self._error(answer) from OriginalError(answer.original)
            self._caller.clock.sleep(wait_s)

    @property
    def _left_s(self) -> float:
        return self._end_s - self._caller.clock.monotonic_s()

    def _once(self, send: Send[T]) -> T | Failure:
        """Send, and have what was raised as data: outside of its handler nothing drags the client's exception along."""
        if self._left_s <= 0:
            return Failure(code="DEADLINE_EXCEEDED", message="there was no time left to send it", is_unsent=True)
        self._made += 1
        try:
            return send(min(self._caller.policy.attempt_s, self._left_s))
        except call_errors() as error:
            return self._caller.read(error)

    def _refuse_vain(self, failure: Failure) -> None:
        """Ask no more where nobody is left to answer.

        Raises:
            EmulatorLostError: Then.
        """
        problem = self._caller.problem() if failure.code == "UNAVAILABLE" else ""
        if problem:
            lost = replace_fields(failure, message=problem, reason=EMULATOR_GONE, is_unsent=True)
            raise self._error(lost) from OriginalError(failure.original)

    def _search(self, failure: Failure) -> T | None:
        """Look for what an earlier attempt may have done, for as long as it may still be on its way.

        Raises:
            CallError: When it could not be looked for: then nobody knows, and nothing is sent again.
        """
        if self._look is None or not self._may_be_done or not (failure.is_ambiguous or failure.code in SUPERSEDED_CODES):
            return None
        clock, policy = self._caller.clock, self._caller.policy
        until_s = clock.monotonic_s() + (policy.settle_s if failure.is_ambiguous else 0.0)
        reading = replace(self._request, effect=Effect.READ)
        while True:
            try:
                seen = self._caller.call(reading, self._look, deadline_s=self._left_s)
            except CallError as error:
                raise self._error(failure) from error
            if seen is not None or clock.monotonic_s() >= until_s:
                return seen
            clock.sleep(max(0.0, min(policy.first_s, self._left_s)))

    def _wait_s(self, failure: Failure) -> float | None:
        """Seconds until it is sent again; None: it is not."""
        if failure.code == "UNAUTHENTICATED" and self._caller.renew is not None and not self._has_renewed:
            self._has_renewed = True
            self._caller.renew()
            return 0.0
        if failure.is_quota or failure.is_stockout or not self._is_repeatable(failure):
            return None
        return max(self._caller.pause_s(self._made), failure.retry_after_s)

    def _is_repeatable(self, failure: Failure) -> bool:
        if failure.code == "RESOURCE_EXHAUSTED":  # a rate: refused before anything was done
            return True
        if failure.code not in REPEATABLE_CODES:
            return False
        return self._request.effect is not Effect.WRITE or not failure.is_ambiguous or self._look is not None

    def _error(self, failure: Failure) -> CallError:
        request = self._request
        return class_of(failure)(
            service=request.service,
            method=request.method,
            resource=request.resource,
            failure=failure,
            attempts=self._made,
            may_be_done=self._may_be_done and request.effect is not Effect.READ,
        )
