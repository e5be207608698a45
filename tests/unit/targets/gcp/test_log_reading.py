"""Entries of Cloud Logging as lines: late, out of order, twice, missing, a megabyte long."""

import json
from datetime import UTC, datetime

import pytest

from harness.protocol.attempt_key import AttemptKey
from harness.protocol.lines import LOG_LINE_BYTES_MAX
from harness.targets.gcp.calling import Page
from harness.targets.gcp.failures import Failure, InvalidCallError, PagesError
from harness.targets.gcp.log_reading import RESTARTS_MAX, LongLogError, filter_for, list_entries, read_entry, read_time

STAMP = "2026-01-01T00:00:05.123456789Z"


def entry(text: str = "hello", log: str = "run.googleapis.com%2Fstdout", **fields: object) -> dict[str, object]:
    labels = {
        "run.googleapis.com/execution_name": "job-abc12",
        "run.googleapis.com/task_index": "2",
        "run.googleapis.com/task_attempt": "1",
    }
    return {
        "logName": f"projects/p/logs/{log}",
        "textPayload": text,
        "insertId": "a",
        "timestamp": STAMP,
        "severity": "INFO",
        "labels": labels,
        **fields,
    }


def test_a_line_has_its_attempt_its_stream_and_its_own_time():
    seen = read_entry(entry())

    assert seen is not None
    assert (seen.key, seen.stream, seen.text, seen.severity) == (AttemptKey(2, 1), "stdout", "hello", "INFO")
    assert seen.at == datetime(2026, 1, 1, 0, 0, 5, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("log", "stream"),
    [
        ("run.googleapis.com%2Fstderr", "stderr"),
        ("run.googleapis.com%2Fvarlog%2Fsystem", "system"),
        ("run.googleapis.com%2F%2Fvar%2Flog%2Fsystem", "system"),
        ("run.googleapis.com%2Fvar%2Flog%2Fsystem", "system"),
        ("run.googleapis.com/varlog/system", "system"),
        ("run.googleapis.com//var/log/system", "system"),
        ("cloudaudit.googleapis.com%2Fsystem_event", "audit"),
    ],
)
def test_each_log_is_a_stream(log: str, stream: str):
    seen = read_entry(entry(log=log))
    assert seen is not None
    assert seen.stream == stream


def test_logs_that_are_not_known_here_are_no_lines():
    assert read_entry(entry(log="requests")) is None
    assert read_entry({}) is None


def test_a_line_that_we_have_played_is_the_platforms_and_says_so():
    labels = {"harness/played": "platform", "reason": "INSTANCE_PREEMPTED", "run.googleapis.com/task_index": "0"}
    seen = read_entry(entry(log="harness", labels=labels))

    assert seen is not None
    assert (seen.stream, seen.is_played, seen.reason) == ("system", True, "INSTANCE_PREEMPTED")
    assert read_entry(entry(log="harness", labels={})) is None


def test_a_real_line_of_the_platform_is_read_as_such():
    seen = read_entry(entry("Container called exit(0).", log="run.googleapis.com%2Fvarlog%2Fsystem"))

    assert seen is not None
    assert not seen.is_played


def test_a_structured_line_and_an_audit_entry_have_their_text():
    structured = read_entry(entry(textPayload=None, jsonPayload={"step": 3, "loss": 0.5}))
    audit = read_entry(
        entry(textPayload=None, log="cloudaudit.googleapis.com%2Fsystem_event", protoPayload={"status": {"message": "It has failed."}})
    )

    assert structured is not None
    assert json.loads(structured.text) == {"step": 3, "loss": 0.5}
    assert audit is not None
    assert audit.text == "It has failed."


def test_a_line_of_a_megabyte_is_cut_and_that_is_known():
    seen = read_entry(entry("ä" * (1 << 20)))

    assert seen is not None
    assert seen.was_cut
    assert len(seen.text.encode()) <= LOG_LINE_BYTES_MAX
    whole = read_entry(entry("x" * LOG_LINE_BYTES_MAX))
    assert whole is not None
    assert not whole.was_cut


@pytest.mark.parametrize(
    "odd",
    [
        {"labels": None},
        {"labels": {"run.googleapis.com/task_index": "-3", "run.googleapis.com/task_attempt": "9" * 40}},
        {"timestamp": "yesterday"},
        {"timestamp": None},
        {"textPayload": 7},
        {"textPayload": None, "jsonPayload": []},
        {"textPayload": None, "protoPayload": {"status": []}},
    ],
)
def test_odd_entries_are_lines_all_the_same(odd: dict[str, object]):
    seen = read_entry(entry(**odd))

    assert seen is not None
    assert seen.key.task >= 0


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T00:00:00.5Z", datetime(2026, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)),
        ("", None),
        ("2026-13-01T00:00:00Z", None),
    ],
)
def test_times_of_google_are_read(text: str, wanted: datetime | None):
    assert read_time(text) == wanted


def test_the_query_names_the_execution_and_not_the_job():
    query = filter_for("p", "job-abc12", since=datetime(2026, 1, 1, tzinfo=UTC))

    assert 'labels."run.googleapis.com/execution_name"="job-abc12"' in query
    assert 'timestamp>="2026-01-01T00:00:00Z"' in query
    assert "job_name" not in query


def test_the_query_for_what_no_job_writes_names_those_logs():
    query = filter_for("p", "job-abc12", is_quiet=True)

    assert 'logName="projects/p/logs/run.googleapis.com%2Fvarlog%2Fsystem"' in query
    assert 'logName="projects/p/logs/cloudaudit.googleapis.com%2Fsystem_event"' in query
    assert 'logName="projects/p/logs/harness"' in query
    assert "stdout" not in query


def test_an_emulator_tells_of_entries_that_are_lost_and_nobody_else_does():
    labels = {"harness/lost": "7"}
    told = read_entry(entry("7 entries are lost", log="harness-emulator", labels=labels))
    claimed = read_entry(entry("7 entries are lost", labels=labels))

    assert told is not None
    assert claimed is not None
    assert (told.lost_count, told.stream, claimed.lost_count) == (7, "system", 0)


def test_a_page_that_comes_again_ends_the_reading():
    def again(query: str, token: str, deadline_s: float) -> Page[dict[str, object]]:
        return Page(items=[], token="a")

    with pytest.raises(PagesError, match="there before"):
        list(list_entries(again, lambda since: "q"))


def test_a_log_that_is_too_long_for_an_incident_is_refused_with_what_to_do():
    def endless(query: str, token: str, deadline_s: float) -> Page[dict[str, object]]:
        return Page(items=[entry(token)] * 10, token=f"{token}x")

    with pytest.raises(LongLogError, match=r"more than 25 log entries.*gcloud logging read"):
        list(list_entries(endless, lambda since: "q", entries_max=25))


class Expiring:
    """A page an entry; after ``lives`` pages a token is not taken any more."""

    def __init__(self, count: int, lives: int) -> None:
        self.count, self.lives, self.queries = count, lives, list[str]()

    def __call__(self, query: str, token: str, deadline_s: float) -> Page[dict[str, object]]:
        begun, _, number = token.partition(":")
        if not token:
            self.queries.append(query)
            begun, number = str(len(self.queries)), query
        first = int(number)
        if token and first - int(self.queries[int(begun) - 1]) >= self.lives:
            failure = Failure(code="INVALID_ARGUMENT", message="page_token has expired")
            raise InvalidCallError(service="logging", method="entries.list", resource="p", failure=failure)
        item = entry(number, insertId=number, timestamp=f"2026-01-01T00:00:{first:02d}Z")
        return Page(items=[item], token=f"{begun}:{first + 1}" if first + 1 < self.count else "")


def test_a_token_that_expires_on_the_way_costs_no_entry():
    pages = Expiring(9, lives=3)

    found = list(list_entries(pages, lambda since: str(since.second) if since else "0"))

    assert [each["textPayload"] for each in found] == [*"012", *"234", *"456", *"678"]
    assert pages.queries == ["0", "2", "4", "6"]


def test_a_token_that_is_never_taken_is_an_error():
    pages = Expiring(9, lives=1)

    with pytest.raises(InvalidCallError, match="has expired"):
        list(list_entries(pages, lambda since: str(since.second) if since else "0"))
    assert len(pages.queries) == 1 + RESTARTS_MAX
