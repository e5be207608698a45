"""Entries between JSON and the messages of the API."""

import json

import pytest
from google.cloud.logging_v2.types import ListLogEntriesRequest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.cloud_run.log_entries import ExecutionEnd, LogEntries
from harness.emulator.failures import ApiError
from harness.emulator.logging.messages import _any_message, parse_request, to_entry, to_message
from harness.history import ExecutionFinished, LogLine


def test_what_the_platform_writes_survives_the_wire(tmp_path):
    path = tmp_path / "entries.jsonl"
    entries = LogEntries(path, job="train", execution="train-abc")
    finished = ExecutionFinished(t_s=1.0, succeeded=0, failed=1, cancelled=0, retried=1)
    end = ExecutionEnd(
        message="failed", code=10, reason="NonZeroExitCode", task_message="task failed", finished=finished, retried_attempt=0
    )
    lines = [
        LogLine(t_s=0.0, task=0, attempt=0, stream="stdout", text='{"step": 5}'),
        LogLine(t_s=0.0, task=0, attempt=0, stream="system", text="Container called exit(1).", severity="WARNING"),
        LogLine(t_s=1.0, task=0, attempt=0, stream="audit", text="failed", severity="ERROR"),
    ]
    entries.append(lines, ManualClock().utc(), end)
    entries.close()
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        sent = {name: value.replace(".000000Z", "Z") if isinstance(value, str) else value for name, value in entry.items()}
        assert to_entry(to_message(entry)) == {name: value for name, value in sent.items() if value != "DEFAULT"}


def test_a_payload_of_a_type_that_is_not_known_keeps_its_fields():
    payload = {"@type": "type.googleapis.com/google.cloud.unknown.Thing", "serviceName": "x"}
    read = to_entry(to_message({"logName": "projects/p/logs/l", "protoPayload": payload}))
    assert read["protoPayload"]["value"] == payload


def test_fields_of_newer_entries_are_left_out():
    assert to_entry(to_message({"textPayload": "x", "someday": 1})) == {"textPayload": "x"}


def test_a_body_becomes_a_request():
    request = parse_request(ListLogEntriesRequest, b'{"resourceNames": ["projects/p"], "pageSize": 3}')
    assert (list(request.resource_names), request.page_size) == (["projects/p"], 3)
    assert parse_request(ListLogEntriesRequest, b"").page_size == 0


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'{"nosuch": 1}', b'{"pageSize": "x"}', b"[" * 100_000])
def test_a_body_that_is_no_request_is_refused(body):
    with pytest.raises(ApiError, match="Invalid JSON payload received") as caught:
        parse_request(ListLogEntriesRequest, body)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_whole_numbers_have_no_fraction():
    entry = {"jsonPayload": {"step": 7, "loss": 0.5, "far": 1e300, "list": [1, {"a": 2}]}}
    assert repr(to_entry(to_message(entry))["jsonPayload"]["list"]) == "[1, {'a': 2}]"
    assert repr(to_entry(to_message(entry))["jsonPayload"]["step"]) == "7"
    assert to_entry(to_message(entry)) == entry


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
LINES = st.fixed_dictionaries(
    {},
    optional={
        "logName": TEXTS,
        "insertId": TEXTS,
        "textPayload": TEXTS,
        "severity": st.sampled_from(["DEFAULT", "INFO", "EMERGENCY"]),
        "labels": st.dictionaries(TEXTS, TEXTS, max_size=3),
        "resource": st.fixed_dictionaries({}, optional={"type": TEXTS, "labels": st.dictionaries(TEXTS, TEXTS, max_size=2)}),
        "timestamp": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456789Z", "1969-12-31T23:59:59.5Z"]),
        "receiveTimestamp": st.sampled_from(["2026-01-01T00:00:00.000001Z"]),
    },
)


@given(LINES)
def test_a_line_becomes_what_any_entry_would(line):
    assert to_message(line) == _any_message(line)
    assert to_message(line).SerializeToString(deterministic=True) == _any_message(line).SerializeToString(deterministic=True)


@pytest.mark.parametrize("odd", [{"timestamp": "yesterday"}, {"textPayload": 7}, {"labels": {"a": 1}}])
def test_a_line_that_is_none_is_refused_as_any_entry_is(odd):
    with pytest.raises((json_format.ParseError, TypeError)):
        to_message({"logName": "projects/p/logs/l", **odd})


def test_a_severity_that_is_none_is_the_default():
    assert to_message({"severity": "LOUD"}) == _any_message({}) == to_message({})
