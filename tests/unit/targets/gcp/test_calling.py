"""Calls: what is repeated, what is not, when they give up, and what a person then reads."""

import random
from collections.abc import Callable

import grpc
import pytest
import requests
import urllib3
from google.api_core import exceptions
from google.auth.exceptions import RefreshError, TransportError

from harness.clock import ManualClock
from harness.targets.gcp.calling import Caller, Effect, Page, Request, RetryPolicy
from harness.targets.gcp.exceptions import HTTP_CODES
from harness.targets.gcp.failures import (
    CLASSES,
    CallError,
    CredentialsError,
    DeadlineError,
    EmulatorLostError,
    PagesError,
    QuotaExceededError,
    StockoutError,
)

SECRET = "ya29.a0AfB_planted-token"
RUN_JOB = Request(service="run.googleapis.com", method="Jobs.RunJob", resource="projects/p/locations/r/jobs/j", effect=Effect.WRITE)

REPEATED = {
    Effect.READ: {"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED"},
    Effect.IDEMPOTENT: {"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED"},
    Effect.WRITE: {"RESOURCE_EXHAUSTED"},
}


class Service:
    """Fails as it is told, one exception after the other, then answers; counts deeds."""

    def __init__(self, clock: ManualClock, *failures: Exception, does_before_failing: bool = False, takes_s: float = 0.0) -> None:
        self.clock, self.failures, self.takes_s = clock, list(failures), takes_s
        self.does_before_failing = does_before_failing
        self.sent, self.deeds = 0, 0
        self.timeouts: list[float] = []

    def send(self, timeout_s: float) -> str:
        self.sent += 1
        self.timeouts.append(timeout_s)
        self.clock.advance(min(self.takes_s, timeout_s))
        if self.failures:
            self.deeds += self.does_before_failing
            raise self.failures.pop(0)
        self.deeds += 1
        return "done"

    def look(self, timeout_s: float) -> str | None:
        return "found" if self.deeds else None


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def caller(clock) -> Caller:
    return Caller(clock=clock, chance=random.Random(7))


def request_of(effect: Effect) -> Request:
    return Request(service="run.googleapis.com", method="Jobs.GetJob", resource="projects/p/locations/r/jobs/j", effect=effect)


def grpc_error(code: str, message: str = "as told", details: tuple[object, ...] = ()) -> Exception:
    return exceptions.from_grpc_status(grpc.StatusCode[code], message, details=details)


def http_error(status: int, body: object = None, headers: dict[str, str] | None = None) -> Exception:
    response = requests.Response()
    response.status_code = status
    response.headers.update(headers or {})
    response._content = requests.models.complexjson.dumps(body).encode() if body is not None else b"<html>no JSON</html>"
    response.request = requests.Request(
        "GET", f"https://example.invalid/b?access_token={SECRET}", headers={"Authorization": f"Bearer {SECRET}"}
    ).prepare()
    return exceptions.from_http_response(response)


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("code", sorted(CLASSES))
def test_what_may_be_done_twice_is_repeated_and_nothing_else(code, effect, clock, caller):
    service = Service(clock, grpc_error(code))
    if code in REPEATED[effect]:
        assert caller.call(request_of(effect), service.send) == "done"
        assert service.sent == 2
        return
    with pytest.raises(CLASSES[code]) as caught:
        caller.call(request_of(effect), service.send)
    assert service.sent == 1
    assert caught.value.code == code


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("status", sorted(HTTP_CODES))
def test_a_bare_http_status_is_what_its_code_is(status, effect, clock, caller):
    service = Service(clock, http_error(status))
    code = HTTP_CODES[status]
    if code in REPEATED[effect]:
        assert caller.call(request_of(effect), service.send) == "done"
        return
    with pytest.raises(CLASSES[code]) as caught:
        caller.call(request_of(effect), service.send)
    assert service.sent == 1
    assert caught.value.failure.http_status == status


@pytest.mark.parametrize("code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "CANCELLED", "DATA_LOSS"])
def test_a_deed_whose_answer_was_lost_is_found_and_not_done_again(code, clock, caller):
    service = Service(clock, grpc_error(code), does_before_failing=True)
    assert caller.call(RUN_JOB, service.send, look=service.look) == "found"
    assert (service.sent, service.deeds) == (1, 1)


def test_a_deed_that_lands_only_after_its_time_was_over_is_not_done_again(clock, caller):
    service = Service(clock, grpc_error("DEADLINE_EXCEEDED"))
    lands_s = clock.monotonic_s() + caller.policy.settle_s - 1.0

    def look(timeout_s: float) -> str | None:
        return "found" if clock.monotonic_s() >= lands_s else None

    assert caller.call(RUN_JOB, service.send, look=look) == "found"
    assert service.sent == 1


def test_a_deed_that_is_not_there_is_done_once_more(clock, caller):
    service = Service(clock, grpc_error("UNAVAILABLE"))
    assert caller.call(RUN_JOB, service.send, look=service.look) == "done"
    assert (service.sent, service.deeds) == (2, 1)


def test_where_nobody_can_look_a_lost_answer_is_told_and_nothing_is_repeated(clock, caller):
    service = Service(clock, grpc_error("UNAVAILABLE"), does_before_failing=True)
    with pytest.raises(CallError, match="may have done it") as caught:
        caller.call(RUN_JOB, service.send)
    assert caught.value.may_be_done
    assert service.sent == 1


def test_when_looking_fails_nothing_is_sent_again(clock, caller):
    service = Service(clock, grpc_error("UNAVAILABLE"), does_before_failing=True)

    def look(timeout_s: float) -> str | None:
        raise grpc_error("PERMISSION_DENIED")

    with pytest.raises(CallError) as caught:
        caller.call(RUN_JOB, service.send, look=look)
    assert caught.value.may_be_done
    assert service.sent == 1


@pytest.mark.parametrize("second", ["ALREADY_EXISTS", "FAILED_PRECONDITION", "ABORTED"])
def test_a_repeated_write_that_meets_its_own_work_is_done(second, clock, caller):
    service = Service(clock, grpc_error("UNAVAILABLE"), grpc_error(second), does_before_failing=True)
    answers = iter([None] * 20)

    def look(timeout_s: float) -> str | None:
        return "found" if service.sent == 2 else next(answers)

    assert caller.call(request_of(Effect.IDEMPOTENT), service.send, look=look) == "found"


def test_a_write_that_meets_what_is_somebody_elses_is_refused(clock, caller):
    service = Service(clock, grpc_error("ALREADY_EXISTS"))
    with pytest.raises(CallError) as caught:
        caller.call(RUN_JOB, service.send, look=lambda timeout_s: "another's")
    assert not caught.value.may_be_done


@pytest.mark.parametrize("effect", [Effect.READ, Effect.IDEMPOTENT])
@pytest.mark.parametrize("deadline_s", [0.5, 3.0, 17.0, 100.0])
def test_the_deadline_is_never_overrun(deadline_s, effect, clock, caller):
    began_s = clock.monotonic_s()
    service = Service(clock, *(grpc_error("UNAVAILABLE") for _ in range(1000)), takes_s=7.0)
    with pytest.raises(CallError):
        caller.call(request_of(effect), service.send, deadline_s=deadline_s)
    assert clock.monotonic_s() - began_s <= deadline_s
    assert all(timeout_s <= deadline_s for timeout_s in service.timeouts)


def test_looking_does_not_overrun_the_deadline_either(clock, caller):
    began_s = clock.monotonic_s()
    service = Service(clock, grpc_error("UNAVAILABLE"))
    with pytest.raises(CallError) as caught:
        caller.call(RUN_JOB, service.send, look=service.look, deadline_s=3.0)
    assert caught.value.may_be_done
    assert clock.monotonic_s() - began_s <= 3.0
    assert service.sent == 1


def test_a_call_without_time_is_not_sent(clock, caller):
    service = Service(clock)
    with pytest.raises(DeadlineError):
        caller.call(request_of(Effect.READ), service.send, deadline_s=0.0)
    assert service.sent == 0


def test_a_service_that_fails_on_and_on_is_left_in_peace(clock, caller):
    service = Service(clock, *(http_error(503) for _ in range(1000)))
    with pytest.raises(CallError, match=f"after {caller.policy.attempts_max} attempts"):
        caller.call(request_of(Effect.READ), service.send, deadline_s=1e6)
    assert service.sent == caller.policy.attempts_max


def retry_info(seconds: int) -> object:
    from google.protobuf.duration_pb2 import Duration
    from google.rpc.error_details_pb2 import RetryInfo

    return RetryInfo(retry_delay=Duration(seconds=seconds))


ASKS: dict[str, Callable[[], Exception]] = {
    "RetryInfo": lambda: grpc_error("RESOURCE_EXHAUSTED", details=(retry_info(40),)),
    "Retry-After in seconds": lambda: http_error(429, headers={"Retry-After": "40"}),
    "Retry-After as a date": lambda: http_error(503, headers={"Retry-After": "Thu, 01 Jan 2026 00:00:40 GMT"}),
}


@pytest.mark.parametrize("asks", ASKS)
def test_a_service_that_asks_for_patience_gets_it(asks, clock, caller):
    service = Service(clock, ASKS[asks]())
    assert caller.call(request_of(Effect.READ), service.send) == "done"
    assert clock.monotonic_s() >= 40.0


@pytest.mark.parametrize("asks", ASKS)
def test_more_patience_than_there_is_time_is_not_waited_for(asks, clock, caller):
    service = Service(clock, ASKS[asks]())
    with pytest.raises(CallError):
        caller.call(request_of(Effect.READ), service.send, deadline_s=30.0)
    assert clock.monotonic_s() == 0.0


def test_waits_are_drawn_within_bounds_that_double(clock):
    waits: dict[int, list[float]] = {}
    for seed in range(200):
        caller = Caller(clock=clock, chance=random.Random(seed), policy=RetryPolicy(first_s=1.0, longest_s=5.0))
        for attempt in (1, 2, 3, 9):
            waits.setdefault(attempt, []).append(caller.pause_s(attempt))
    for attempt, bound_s in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 5.0)):
        assert 0.0 <= min(waits[attempt]) < bound_s * 0.1  # full jitter: not all of a herd waits the same
        assert bound_s * 0.9 < max(waits[attempt]) <= bound_s


QUOTAS = {
    "allocation": (
        grpc_error("RESOURCE_EXHAUSTED", "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region europe-west1."),
        QuotaExceededError,
    ),
    "GKE": (grpc_error("PERMISSION_DENIED", 'Insufficient regional quota to satisfy request: resource "C2_CPUS"'), QuotaExceededError),
    "JSON": (http_error(403, {"error": {"code": 403, "message": "no", "errors": [{"reason": "quotaExceeded"}]}}), QuotaExceededError),
    "stockout": (
        grpc_error("UNAVAILABLE", "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request."),
        StockoutError,
    ),
}


@pytest.mark.parametrize("kind", QUOTAS)
def test_what_waiting_does_not_help_is_not_waited_for(kind, clock, caller):
    error, kind_of_error = QUOTAS[kind]
    service = Service(clock, error)
    with pytest.raises(kind_of_error):
        caller.call(request_of(Effect.READ), service.send)
    assert (service.sent, clock.monotonic_s()) == (1, 0.0)


@pytest.mark.parametrize(
    "error",
    [
        grpc_error("RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute per region'"),
        http_error(403, {"error": {"code": 403, "message": "slow down", "errors": [{"reason": "rateLimitExceeded"}]}}),
    ],
)
def test_a_rate_is_waited_for(error, clock, caller):
    service = Service(clock, error)
    assert caller.call(RUN_JOB, service.send) == "done"


def test_an_address_beyond_the_pool_is_no_stockout(clock, caller):
    with pytest.raises(QuotaExceededError):
        caller.call(
            request_of(Effect.READ), Service(clock, grpc_error("RESOURCE_EXHAUSTED", "IP resource pool exhausted: quota exceeded")).send
        )


def test_a_permission_that_is_missing_is_named(clock, caller):
    error = grpc_error(
        "PERMISSION_DENIED", "Permission 'run.jobs.run' denied on resource 'projects/p/locations/r/jobs/j' (or it may not exist)."
    )
    with pytest.raises(CallError, match=r"run\.googleapis\.com Jobs\.GetJob of projects/p.*grant run\.jobs\.run"):
        caller.call(request_of(Effect.READ), Service(clock, error).send)


def test_the_api_that_is_not_enabled_is_named(clock, caller):
    body = {
        "error": {
            "code": 403,
            "message": "off",
            "status": "PERMISSION_DENIED",
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "SERVICE_DISABLED",
                    "metadata": {"service": "storage.googleapis.com"},
                }
            ],
        }
    }
    with pytest.raises(CallError, match=r"gcloud services enable storage\.googleapis\.com"):
        caller.call(request_of(Effect.READ), Service(clock, http_error(403, body)).send)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TransportError("no route"), "UNAVAILABLE"),
        (requests.exceptions.ChunkedEncodingError("broken"), "UNAVAILABLE"),
        (ConnectionResetError("reset"), "UNAVAILABLE"),
        (urllib3.exceptions.ProtocolError("a body that broke off"), "UNAVAILABLE"),
        (urllib3.exceptions.ReadTimeoutError(urllib3.HTTPConnectionPool("h"), "/", "late"), "DEADLINE_EXCEEDED"),
        (requests.exceptions.ReadTimeout("late"), "DEADLINE_EXCEEDED"),
        (TimeoutError("late"), "DEADLINE_EXCEEDED"),
    ],
)
def test_a_connection_that_breaks_is_made_again_for_a_read(error, code, clock, caller):
    assert caller.read(error).code == code
    assert caller.call(request_of(Effect.READ), Service(clock, error).send) == "done"


def test_what_never_left_may_be_sent_again_whatever_it_does(clock, caller):
    service = Service(clock, ConnectionRefusedError("refused"))
    assert caller.call(RUN_JOB, service.send) == "done"


def test_a_defect_of_ours_is_no_failure_of_a_service(clock, caller):
    with pytest.raises(KeyError):
        caller.call(request_of(Effect.READ), Service(clock, KeyError("ours")).send)
    with pytest.raises(FileNotFoundError):
        caller.call(request_of(Effect.READ), Service(clock, FileNotFoundError("a local file")).send)


def test_a_token_that_has_expired_is_renewed_once(clock):
    renewed: list[str] = []
    caller = Caller(clock=clock, renew=lambda: renewed.append("token"))
    assert caller.call(RUN_JOB, Service(clock, grpc_error("UNAUTHENTICATED")).send) == "done"
    assert renewed == ["token"]
    service = Service(clock, grpc_error("UNAUTHENTICATED"), grpc_error("UNAUTHENTICATED"))
    with pytest.raises(CredentialsError):
        caller.call(RUN_JOB, service.send)
    assert service.sent == 2


def test_credentials_that_cannot_be_refreshed_are_told(clock, caller):
    with pytest.raises(CredentialsError, match="application-default login"):
        caller.call(request_of(Effect.READ), Service(clock, RefreshError("Reauthentication is needed.")).send)


class Pages:
    """Serves pages by token."""

    def __init__(self, pages: dict[str, Page[int]], failures: dict[str, Exception] | None = None) -> None:
        self.pages, self.failures, self.asked = pages, failures or {}, []

    def fetch(self, token: str, timeout_s: float) -> Page[int]:
        self.asked.append(token)
        if token in self.failures:
            raise self.failures.pop(token)
        return self.pages[token]


def test_every_page_is_read_and_one_that_fails_is_asked_for_again(caller):
    pages = Pages(
        {"": Page(items=[1, 2], token="a"), "a": Page(items=[], token="b"), "b": Page(items=[3])}, {"a": grpc_error("UNAVAILABLE")}
    )
    assert list(caller.pages(request_of(Effect.READ), pages.fetch)) == [1, 2, 3]
    assert pages.asked == ["", "a", "a", "b"]


def test_pages_that_go_in_a_circle_are_noticed(caller):
    pages = Pages({"": Page(items=[1], token="a"), "a": Page(items=[2], token="b"), "b": Page(items=[3], token="a")})
    with pytest.raises(PagesError, match="was there before"):
        list(caller.pages(request_of(Effect.READ), pages.fetch))
    assert pages.asked == ["", "a", "b"]


def test_a_list_without_end_ends(clock, caller):
    def fetch(token: str, timeout_s: float) -> Page[int]:
        return Page(items=[], token=str(int(token or 0) + 1))

    with pytest.raises(PagesError, match="more than 50 pages"):
        list(caller.pages(request_of(Effect.READ), fetch, pages_max=50))


def slow_pages(clock: ManualClock, page_s: float, count: int):
    def fetch(token: str, timeout_s: float) -> Page[int]:
        number = int(token or 0) + 1
        if page_s > timeout_s:
            clock.advance(timeout_s)
            raise grpc_error("DEADLINE_EXCEEDED")
        clock.advance(page_s)
        return Page(items=[number], token=str(number) if number < count else "")

    return fetch


def test_each_page_has_a_deadline_of_its_own_for_a_long_list_takes_long(clock, caller):
    assert list(caller.pages(request_of(Effect.READ), slow_pages(clock, 30.0, 10), deadline_s=35.0)) == [*range(1, 11)]
    with pytest.raises(DeadlineError):
        list(caller.pages(request_of(Effect.READ), slow_pages(clock, 40.0, 10), deadline_s=35.0))


def test_all_pages_together_have_one_too(clock, caller):
    with pytest.raises(DeadlineError):
        list(caller.pages(request_of(Effect.READ), slow_pages(clock, 10.0, 100), deadline_s=35.0, list_deadline_s=95.0))
    assert clock.monotonic_s() <= 95.0


@pytest.mark.parametrize("effect", Effect)
def test_where_an_emulator_was_nobody_is_asked_twice(clock, effect):
    gone = Caller(clock=clock, problem=lambda: "the emulator at grpc=127.0.0.1:1,http=127.0.0.1:2 is gone")
    service = Service(clock, *[grpc_error("UNAVAILABLE")] * 20)

    with pytest.raises(EmulatorLostError, match=r"the emulator at \S+ is gone; see why it has ended"):
        gone.call(request_of(effect), service.send, look=service.look)

    assert service.sent == 1


def test_an_emulator_that_is_there_and_fails_once_is_asked_again(clock):
    asked = []
    there = Caller(clock=clock, problem=lambda: asked.append("looked") or "")
    service = Service(clock, grpc_error("UNAVAILABLE"))

    assert there.call(request_of(Effect.READ), service.send) == "done"
    assert (service.sent, asked) == (2, ["looked"])
