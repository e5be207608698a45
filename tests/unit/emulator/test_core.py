"""What the services share: names of errors, projects, the journal, faults, operations, pages."""

import base64

import pytest

from harness.clock import ManualClock
from harness.emulator.address import Endpoints
from harness.emulator.calls import CallJournal
from harness.emulator.failures import CODES, ApiError, permission_denied, quota_exceeded, stockout
from harness.emulator.injection import InjectedFault, Injections
from harness.emulator.operations import ENDED_KEPT_S, Operations
from harness.emulator.pages import page_of
from harness.emulator.project import Callers, Projects, ProjectState, project_of


def test_the_environment_names_both_addresses_and_the_storage_clients_own_variable():
    endpoints = Endpoints(grpc="127.0.0.1:1", http="127.0.0.1:2")

    assert endpoints.environment() == {
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:2",
        "HARNESS_GCP_EMULATOR": "grpc=127.0.0.1:1,http=127.0.0.1:2",
    }


def test_an_error_has_the_number_and_the_status_of_its_code():
    error = ApiError("NOT_FOUND", "gone")

    assert (error.number, error.http_status) == (5, 404)
    assert ApiError("FAILED_PRECONDITION", "x", http_status=412).http_status == 412
    with pytest.raises(ValueError, match="NOT_FOUND"):
        ApiError("MISSING", "x")
    assert sorted(number for number, _ in CODES.values()) == list(range(17))


def test_errors_speak_googles_words():
    assert permission_denied("run.jobs.get", "projects/p").metadata == {"permission": "run.jobs.get", "resource": "projects/p"}
    assert "exceeded.  Limit: 16.0 in region r." in quota_exceeded("NVIDIA_A100_GPUS", limit=16, place="region r").message
    assert stockout("projects/p/zones/z").message.startswith("The zone 'projects/p/zones/z' does not have enough resources")


def test_a_project_is_found_by_id_and_by_number_and_a_stranger_is_denied_as_one_without_permission():
    projects = Projects([ProjectState(name="p", number=7, granted=frozenset({"run.jobs.get"}))])

    assert projects.require("run.jobs.get", "projects/p/locations/l/jobs/j") is projects.require("run.jobs.get", "projects/7/x")
    assert projects.require("run.jobs.get", "a-bucket", project="p").name == "p"
    for resource, permission in (("projects/other/x", "run.jobs.get"), ("projects/p/x", "run.jobs.create"), ("a-bucket", "run.jobs.get")):
        with pytest.raises(ApiError, match="PERMISSION_DENIED") as caught:
            projects.require(permission, resource)
        assert caught.value.reason == "IAM_PERMISSION_DENIED"


@pytest.mark.parametrize(
    ("resource", "project"),
    [("projects/p/locations/l", "p"), ("//run.googleapis.com/projects/p/x", "p"), ("b", ""), ("my-projects/p", "")],
)
def test_the_project_of_a_resource_is_read_from_its_name(resource, project):
    assert project_of(resource) == project


def test_a_quota_is_used_up_only_where_there_is_one():
    project = ProjectState(name="p", number=7, quotas={"GPUS": 2})

    project.require_quota("GPUS", 2)
    project.require_quota("CPUS", 10_000)
    with pytest.raises(ApiError, match="RESOURCE_EXHAUSTED") as caught:
        project.require_quota("GPUS", 3)
    assert caught.value.reason == "QUOTA_EXCEEDED"


def test_a_token_is_good_until_it_expires_and_again_when_it_is_renewed():
    callers = Callers()
    callers.check({"authorization": "Bearer old"})
    callers.expire("old")

    callers.check({"authorization": "Bearer new"})
    with pytest.raises(ApiError, match="UNAUTHENTICATED"):
        callers.check({"authorization": "Bearer old"})
    callers.renew("old")
    callers.check({"authorization": "Bearer old"})


def test_the_journal_keeps_refused_writes_among_the_writes():
    journal = CallJournal()
    journal.note("google.cloud.run.v2.Jobs/GetJob", resource="j", is_write=False, outcome="OK")
    journal.note("google.cloud.run.v2.Jobs/RunJob", resource="j", is_write=True, outcome="PERMISSION_DENIED")
    journal.note("storage.objects.insert", resource="o", is_write=True, outcome="OK")

    assert [call.number for call in journal.all()] == [1, 2, 3]
    assert [(call.service, call.outcome) for call in journal.writes()] == [
        ("google.cloud.run.v2.Jobs", "PERMISSION_DENIED"),
        ("storage", "OK"),
    ]


def test_reads_push_no_write_out_of_the_journal_and_what_is_gone_is_a_gap_in_the_numbers():
    journal = CallJournal(kept_max=3)
    journal.note("storage.objects.insert", resource="o", is_write=True, outcome="OK")
    for _ in range(9):
        journal.note("storage.objects.list", resource="o", is_write=False, outcome="OK")

    assert [call.number for call in journal.all()] == [1, 8, 9, 10]
    assert [call.number for call in journal.writes()] == [1]


def strikes(injections, method, calls):
    return [injections.take(method) is not None for _ in range(calls)]


@pytest.mark.parametrize(
    ("nth", "times", "expected"),
    [
        (None, 1, [True, False, False, False]),
        (None, 2, [True, True, False, False]),
        (None, 0, [True, True, True, True]),
        (3, 1, [False, False, True, False]),
        (2, 0, [False, True, True, True]),
    ],
)
def test_a_fault_strikes_the_calls_that_it_names(nth, times, expected):
    injections = Injections()
    injections.add(InjectedFault(method="google.cloud.run.v2.*", nth=nth, times=times, delay_s=1))

    assert strikes(injections, "storage.objects.get", 5) == [False] * 5
    assert strikes(injections, "google.cloud.run.v2.Jobs/RunJob", 4) == expected
    injections.clear()
    assert strikes(injections, "google.cloud.run.v2.Jobs/RunJob", 1) == [False]


def test_all_faults_that_match_count_a_call_and_the_first_that_strikes_takes_it():
    injections = Injections()
    first, second = InjectedFault(method="a", drop="before"), InjectedFault(method="*", nth=2, drop="after")
    injections.add(first)
    injections.add(second)

    assert [injections.take("a"), injections.take("a"), injections.take("a")] == [first, second, None]


@pytest.mark.parametrize("fields", [{}, {"nth": 0, "delay_s": 1}, {"times": -1, "delay_s": 1}, {"delay_s": -1}])
def test_a_fault_that_could_do_nothing_is_refused(fields):
    with pytest.raises(ValueError, match=r"nothing|nth|times"):
        InjectedFault(method="*", **fields)


def begin(operations, **fields):
    return operations.begin("projects/p/locations/l", family="run", target="projects/p/x", **fields)


def test_an_operation_ends_when_its_time_on_the_clock_has_come_and_its_work_is_done_once():
    clock = ManualClock()
    operations = Operations(clock)
    done = []
    operation = begin(operations, lasts_s=60, work=lambda: done.append(1) or "response")

    clock.advance(59)
    assert operations.find(operation.name) is operation
    assert not operation.is_done
    assert operations.working_on("projects/p/x") is operation
    clock.advance(1)
    operations.settle()
    operations.settle()

    assert (operation.is_done, operation.response, operation.error, done) == (True, "response", None, [1])
    assert operation.ended == clock.utc()
    assert operations.working_on("projects/p/x") is None


def test_work_that_fails_is_the_error_of_its_operation():
    def fail():
        raise ApiError("RESOURCE_EXHAUSTED", "no room")

    operation = begin(Operations(ManualClock()), lasts_s=0, work=fail)

    assert operation.is_done
    assert operation.error.code == "RESOURCE_EXHAUSTED"


def test_an_operation_that_has_ended_does_not_end_otherwise_afterwards():
    operations = Operations(ManualClock())
    operation = begin(operations)
    operations.finish(operation, "response")
    operations.fail(operation, ApiError("ABORTED", "late"))

    assert (operation.response, operation.error) == ("response", None)


def test_a_waiter_goes_on_when_the_operation_ends_the_time_is_over_or_the_caller_is_gone():
    clock = ManualClock()
    operations = Operations(clock)
    operation = begin(operations, lasts_s=5)
    looks = []

    def moves_the_clock():
        looks.append(clock.advance(1))
        return True

    assert not operations.wait(operation, 2, is_active=moves_the_clock)
    assert operations.wait(operation, 60, is_active=moves_the_clock)
    assert len(looks) <= 6
    assert not operations.wait(begin(operations), 60, is_active=lambda: False)


def test_operations_are_told_by_service_and_place_and_can_be_forgotten():
    operations = Operations(ManualClock())
    one = begin(operations)
    operations.begin("projects/p/locations/other", family="run", target="x")
    operations.begin("projects/p/locations/l", family="container", target="x")

    assert operations.below("projects/p/locations/l", family="run") == [one]
    operations.delete(one)
    assert operations.find(one.name) is None


def pages(items, **fields):
    token, seen = "", []
    while True:
        assert len(seen) < 10, "pages without end"
        page, token = page_of(items, key=str, size=2, token=token, size_max=10, **fields)
        seen.append(page)
        if not token:
            return seen


def test_pages_hold_all_once_in_order():
    assert pages(["c", "a", "b", "e", "d"]) == [["a", "b"], ["c", "d"], ["e"]]
    assert pages(["a", "b"]) == [["a", "b"]]
    assert pages([]) == [[]]


def test_a_page_cut_short_has_a_token_for_the_rest():
    assert pages(["a", "b", "c"], is_partial=True) == [["a"], ["b"], ["c"]]


def test_what_goes_between_two_pages_moves_nothing_else():
    _, token = page_of(["a", "b", "c", "d"], key=str, size=2, token="", size_max=10)

    assert page_of(["c", "d"], key=str, size=2, token=token, size_max=10) == (["c", "d"], "")


@pytest.mark.parametrize("token", ["!", "é", base64.urlsafe_b64encode(b"before:a").decode(), base64.urlsafe_b64encode(b"\xff").decode()])
def test_a_token_that_is_none_and_a_size_below_zero_are_refused(token):
    with pytest.raises(ApiError, match="page_token"):
        page_of(["a"], key=str, size=2, token=token, size_max=10)
    with pytest.raises(ApiError, match="page_size"):
        page_of(["a"], key=str, size=-1, token="", size_max=10)


def test_an_operation_that_ended_long_ago_is_forgotten_and_one_that_lasts_is_not():
    clock = ManualClock()
    operations = Operations(clock)
    ended, lasting = begin(operations, lasts_s=0), begin(operations)

    clock.advance(ENDED_KEPT_S - 1)
    assert operations.find(ended.name) is ended
    clock.advance(1)
    assert operations.find(ended.name) is None
    assert operations.all() == [lasting]


def test_of_too_many_ended_operations_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr("harness.emulator.operations.ENDED_KEPT_MAX", 3)
    operations = Operations(ManualClock())
    lasting = begin(operations)

    ended = [begin(operations, lasts_s=0) for _ in range(5)]

    assert operations.all() == [lasting, *ended[2:]]


def test_an_operation_that_was_deleted_does_its_work_no_more():
    clock, done = ManualClock(), []
    operations = Operations(clock)
    operations.delete(begin(operations, lasts_s=1, work=lambda: done.append(1)))

    clock.advance(2)
    operations.settle()

    assert done == []
