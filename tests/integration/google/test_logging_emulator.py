"""Cloud Logging spoken with its unmodified clients."""

import queue
import threading
import time

import google.api_core.exceptions
import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import logging as cloud_logging
from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
from google.cloud.logging_v2.services.logging_service_v2.transports import LoggingServiceV2GrpcTransport
from google.cloud.logging_v2.types import LogEntry, TailLogEntriesRequest
from google.protobuf.duration_pb2 import Duration

from harness.emulator import ApiError, Emulator, InjectedFault
from harness.emulator.project import ProjectState

LOG = "projects/p/logs/run.googleapis.com%2Fstdout"
RESOURCE = {"type": "cloud_run_job", "labels": {"job_name": "train"}}


@pytest.fixture
def emulator(tmp_path):
    with Emulator(tmp_path, projects=[ProjectState(name="p", number=7)]) as emulator:
        yield emulator


@pytest.fixture
def store(emulator):
    return emulator.log


@pytest.fixture
def service(emulator):
    with grpc.insecure_channel(emulator.endpoints.grpc) as channel:
        yield LoggingServiceV2Client(transport=LoggingServiceV2GrpcTransport(channel=channel))


@pytest.fixture
def client(emulator):
    options = {"api_endpoint": f"http://{emulator.endpoints.http}"}
    client = cloud_logging.Client(project="p", _use_grpc=False, client_options=options, credentials=AnonymousCredentials())
    yield client
    client._http.close()


def texts(entries):
    return [entry.text_payload for entry in entries]


def test_entries_written_are_listed_by_filter_and_in_pages(service):
    entries = [LogEntry(text_payload=f"step {number}", severity="INFO", labels={"attempt": str(number % 2)}) for number in range(25)]
    service.write_log_entries(log_name=LOG, resource=RESOURCE, labels={"run.googleapis.com/execution_name": "train-abc"}, entries=entries)
    found = service.list_log_entries(
        {
            "resource_names": ["projects/p"],
            "filter": 'resource.labels.job_name="train" labels."run.googleapis.com/execution_name"="train-abc" labels.attempt="1"',
            "page_size": 5,
        }
    )
    assert texts(found) == [f"step {number}" for number in range(1, 25, 2)]
    newest = service.list_log_entries({"resource_names": ["projects/p"], "order_by": "timestamp desc", "page_size": 1})
    assert next(iter(newest)).text_payload == "step 24"


def test_both_wires_show_the_same_entries(service, client):
    service.write_log_entries(log_name=LOG, resource=RESOURCE, entries=[LogEntry(json_payload={"step": 5, "note": "ü"}, insert_id="x")])
    (entry,) = client.list_entries(filter_="jsonPayload.step=5")
    assert (entry.payload, entry.insert_id, entry.log_name) == ({"step": 5, "note": "ü"}, "x", LOG)
    assert entry.received_timestamp >= entry.timestamp


def test_the_client_over_http_writes_lists_and_deletes(client, service):
    logger = client.logger("my-log%2Fwith-a-slash")
    logger.log_text("hello", severity="WARNING", labels={"a": "b"}, resource=cloud_logging.Resource(type="global", labels={}))
    logger.log_struct({"step": 7})
    is_ours = 'NOT jsonPayload."logging.googleapis.com/diagnostic":*'  # the client tells of itself, once a process
    found = list(client.list_entries(filter_=is_ours, page_size=1))
    assert [entry.payload for entry in found] == ["hello", {"step": 7}]
    assert found[0].severity == "WARNING"
    assert list(service.list_logs({"parent": "projects/p"})) == ["projects/p/logs/my-log%2Fwith-a-slash"]
    logger.delete()
    assert list(client.list_entries()) == []
    with pytest.raises(google.api_core.exceptions.NotFound):
        logger.delete()


def test_logs_are_listed_over_http_too(client, service):
    service.write_log_entries(log_name=LOG, resource=RESOURCE, entries=[LogEntry(text_payload="x")])
    assert client._connection.api_request(method="GET", path="/projects/p/logs") == {"logNames": [LOG]}


def test_an_audit_entry_of_the_platform_is_read_with_its_payload(service, store):
    payload = {"@type": "type.googleapis.com/google.cloud.audit.AuditLog", "methodName": "/Jobs.RunJob", "status": {"code": 10}}
    store.append([{"logName": "projects/p/logs/cloudaudit.googleapis.com%2Fsystem_event", "protoPayload": payload, "resource": RESOURCE}])
    (entry,) = service.list_log_entries({"resource_names": ["projects/p"], "filter": "protoPayload.status.code=10"})
    assert entry.proto_payload.type_url.endswith("google.cloud.audit.AuditLog")


def test_a_filter_that_cannot_be_read_is_an_invalid_argument_on_both_wires(service, client):
    said = r"Unparseable filter: syntax error at line 1, column 9, token '\)'"
    with pytest.raises(google.api_core.exceptions.InvalidArgument, match=said):
        service.list_log_entries({"resource_names": ["projects/p"], "filter": "severity=)"})
    with pytest.raises(google.api_core.exceptions.BadRequest, match=said):
        list(client.list_entries(filter_="severity=)"))


def test_a_project_that_is_not_there_may_not_be_read(service):
    with pytest.raises(google.api_core.exceptions.PermissionDenied, match=r"logging\.logEntries\.list"):
        service.list_log_entries({"resource_names": ["projects/other"]})


def test_with_partial_success_the_good_entries_are_written_and_without_none(service):
    entries = [LogEntry(text_payload="small"), LogEntry(text_payload="x" * 300 * 1024)]
    said = r"Log entry with size 300\.0K exceeds maximum size of 256\.0K"
    with pytest.raises(google.api_core.exceptions.InvalidArgument, match=said):
        service.write_log_entries(log_name=LOG, resource=RESOURCE, entries=entries)
    assert texts(service.list_log_entries({"resource_names": ["projects/p"]})) == []
    with pytest.raises(google.api_core.exceptions.InvalidArgument, match=said):
        service.write_log_entries({"log_name": LOG, "resource": RESOURCE, "entries": entries, "partial_success": True})
    assert texts(service.list_log_entries({"resource_names": ["projects/p"]})) == ["small"]


def test_a_dry_run_writes_nothing(service):
    service.write_log_entries({"log_name": LOG, "resource": RESOURCE, "entries": [LogEntry(text_payload="x")], "dry_run": True})
    assert texts(service.list_log_entries({"resource_names": ["projects/p"]})) == []


def test_entries_late_double_and_a_megabyte_long_come_through(service, client, store):
    store.hold_back("textPayload:late")
    store.duplicate("textPayload:twice")
    store.enlarge("textPayload:long", padded_bytes=1 << 20)
    entries = [LogEntry(text_payload=text) for text in ("late", "twice", "long")]
    service.write_log_entries(log_name=LOG, resource=RESOURCE, entries=entries)
    found = texts(service.list_log_entries({"resource_names": ["projects/p"]}))
    assert [len(text) for text in found] == [5, 5, 1 << 20]
    store.release()
    assert texts(service.list_log_entries({"resource_names": ["projects/p"]}))[0] == "late"
    assert [len(entry.payload) for entry in client.list_entries()] == [4, 5, 5, 1 << 20]


def test_pages_of_megabytes_pass_through_a_channel_that_was_told_nothing(service, store):
    store.enlarge(padded_bytes=1 << 20)
    service.write_log_entries(log_name=LOG, resource=RESOURCE, entries=[LogEntry(text_payload=str(number)) for number in range(7)])
    found = service.list_log_entries({"resource_names": ["projects/p"], "page_size": 1000})
    assert [len(text) for text in texts(found)] == [1 << 20] * 7


def test_a_page_cut_short_by_the_service_loses_nothing(service, emulator):
    service.write_log_entries(log_name=LOG, resource=RESOURCE, entries=[LogEntry(text_payload=str(number)) for number in range(20)])
    emulator.world.injections.add(InjectedFault(method="google.logging.v2.*/ListLogEntries", times=2, is_partial=True))
    found = service.list_log_entries({"resource_names": ["projects/p"], "page_size": 10})
    assert [len(page.entries) for page in found.pages] == [5, 5, 10]


def test_a_fault_of_the_service_reaches_the_client_and_the_journal_knows_reads_from_writes(service, emulator):
    emulator.world.injections.add(InjectedFault(method="google.logging.v2.*/ListLogEntries", error=ApiError("PERMISSION_DENIED", "no")))
    with pytest.raises(google.api_core.exceptions.PermissionDenied, match="no"):
        service.list_log_entries({"resource_names": ["projects/p"]})
    assert emulator.world.calls.writes() == ()
    service.write_log_entries(log_name=LOG, resource=RESOURCE, entries=[LogEntry(text_payload="x")])
    assert [(call.method, call.resource) for call in emulator.world.calls.writes()] == [
        ("google.logging.v2.LoggingServiceV2/WriteLogEntries", LOG)
    ]


class Tail:
    """Follows the log in a thread: the client waits for the first answer before it gives the stream."""

    def __init__(self, service, *, filter_="", window_s=0.0):
        window = Duration()
        window.FromMilliseconds(round(window_s * 1000))
        request = TailLogEntriesRequest(resource_names=["projects/p"], filter=filter_, buffer_window=window)
        self.answers = queue.Queue()
        self._thread = threading.Thread(target=self._follow, args=(service, request))
        self._thread.start()

    def _follow(self, service, request):
        try:
            for answer in service.tail_log_entries(iter([request])):
                self.answers.put(texts(answer.entries))
        except google.api_core.exceptions.GoogleAPICallError as error:
            self.answers.put(error)
        else:
            self.answers.put("over")

    def next(self):
        return self.answers.get(timeout=30)

    def join(self):
        self._thread.join()


def until_followed(store):
    while not store._followers:
        time.sleep(0.01)


@pytest.fixture
def follow(service, emulator):
    tails = []

    def begin(**asked):
        tails.append(Tail(service, **asked))
        return tails[-1]

    yield begin
    emulator.close()
    for tail in tails:
        tail.join()


def write(service, *written):
    service.write_log_entries(log_name=LOG, resource=RESOURCE, entries=[LogEntry(text_payload=text) for text in written])


def test_the_log_is_followed_from_now_on(service, store, follow):
    write(service, "before")
    tail = follow(filter_='textPayload:"step"')
    until_followed(store)
    write(service, "step 1", "noise", "step 2")
    assert tail.next() == ["step 1", "step 2"]
    store.hold_back("textPayload:held")
    write(service, "step 3 held")
    write(service, "step 4")
    assert tail.next() == ["step 4"]
    store.release()
    assert tail.next() == ["step 3 held"]


def test_a_follower_that_hangs_up_is_forgotten(emulator, store):
    with grpc.insecure_channel(emulator.endpoints.grpc) as channel:
        transport = LoggingServiceV2GrpcTransport(channel=channel)
        stream = transport.tail_log_entries(iter([TailLogEntriesRequest(resource_names=["projects/p"])]))
        until_followed(store)
        stream.cancel()
        while store._followers:
            time.sleep(0.01)


def test_a_follower_whose_filter_cannot_be_read_is_told_so(follow):
    error = follow(filter_="(((").next()
    assert isinstance(error, google.api_core.exceptions.InvalidArgument)
    assert "Unparseable filter: syntax error at line 1, column 3" in str(error)


def test_a_window_too_wide_is_refused(follow):
    assert "buffer_window: 61 s" in str(follow(window_s=61).next())


def test_a_stream_cut_short_ends_unavailable(service, store, emulator, follow):
    emulator.world.injections.add(InjectedFault(method="google.logging.v2.*/TailLogEntries", is_partial=True))
    tail = follow()
    until_followed(store)
    write(service, "x")
    assert tail.next() == ["x"]
    assert isinstance(tail.next(), google.api_core.exceptions.ServiceUnavailable)


def test_a_request_without_an_end_of_its_own_is_followed_too(emulator, store):
    over = threading.Event()

    def requests():
        yield TailLogEntriesRequest(resource_names=["projects/p"], buffer_window=Duration())
        over.wait()

    with grpc.insecure_channel(emulator.endpoints.grpc) as channel:
        service = LoggingServiceV2Client(transport=LoggingServiceV2GrpcTransport(channel=channel))
        writer = threading.Thread(target=lambda: (until_followed(store), write(service, "x")))
        writer.start()
        stream = service.tail_log_entries(requests())
        assert texts(next(stream).entries) == ["x"]
        stream.cancel()
        over.set()
        writer.join()


def test_the_emulator_closes_although_somebody_follows(emulator, store, follow):
    tail = follow()
    until_followed(store)
    emulator.close()
    assert tail.next() == "over"
    assert store._followers == []
