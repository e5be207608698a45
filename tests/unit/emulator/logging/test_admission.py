"""Which entries of a request are let in."""

import pytest
from google.cloud.logging_v2.types import LogEntry
from google.protobuf import json_format

from harness.emulator.logging.admission import ENTRY_BYTES_MAX, Defaults, admit
from harness.emulator.project import Projects, ProjectState

PROJECTS = Projects([ProjectState(name="p", number=7), ProjectState(name="closed", number=8, granted=frozenset())])
DEFAULTS = Defaults(log_name="projects/p/logs/default", resource={"type": "global"}, labels={"a": "1", "b": "2"})


def message(**fields):
    return json_format.ParseDict(fields, LogEntry.pb(LogEntry()))


def refusal(entry, defaults=DEFAULTS):
    admitted, refused = admit([entry], defaults, PROJECTS)
    assert admitted == []
    return refused[0]


def test_a_request_gives_what_an_entry_does_not_say():
    own = {"logName": "projects/p/logs/own", "resource": {"type": "gce_instance"}, "labels": {"b": "3"}, "textPayload": "x"}
    admitted, refused = admit([message(textPayload="x"), message(**own)], DEFAULTS, PROJECTS)
    assert refused == {}
    assert admitted[0] == {
        "textPayload": "x",
        "logName": "projects/p/logs/default",
        "resource": {"type": "global"},
        "labels": {"a": "1", "b": "2"},
    }
    assert admitted[1] == own | {"labels": {"a": "1", "b": "3"}}


def test_each_entry_that_is_refused_is_told_by_its_place():
    large = message(textPayload="x" * ENTRY_BYTES_MAX)
    admitted, refused = admit([message(textPayload="x"), large, message(logName="l")], DEFAULTS, PROJECTS)
    assert len(admitted) == 1
    assert sorted(refused) == [1, 2]


def test_an_entry_too_large_is_refused_in_google_s_words():
    assert refusal(message(textPayload="x" * 300 * 1024)).message == "Log entry with size 300.0K exceeds maximum size of 256.0K"
    assert refusal(message(textPayload="x" * (1 << 20))).message == "Log entry with size 1.00M exceeds maximum size of 256.0K"


@pytest.mark.parametrize("name", ["l", "projects/p/logs/", "projects/p/logs/a b", "projects/p/logs/a/b", "projects/p/logs/" + "x" * 512])
def test_a_log_whose_name_is_none_is_refused(name):
    assert refusal(message(logName=name)).code == "INVALID_ARGUMENT"


def test_a_log_id_with_a_slash_is_quoted():
    admitted, _ = admit([message(logName="projects/p/logs/run.googleapis.com%2Fstdout")], DEFAULTS, PROJECTS)
    assert admitted[0]["logName"] == "projects/p/logs/run.googleapis.com%2Fstdout"


@pytest.mark.parametrize("name", ["projects/closed/logs/l", "projects/other/logs/l", "folders/1/logs/l"])
def test_a_project_that_may_not_be_written_is_refused(name):
    error = refusal(message(logName=name))
    assert (error.code, "logging.logEntries.create" in error.message) == ("PERMISSION_DENIED", True)


def test_an_entry_without_a_resource_is_refused():
    assert refusal(message(textPayload="x"), Defaults(log_name="projects/p/logs/l", resource={}, labels={})).code == "INVALID_ARGUMENT"


def test_what_has_no_json_form_is_refused():
    entry = message(logName="projects/p/logs/l")
    entry.json_payload.update({"loss": float("nan")})
    assert refusal(entry).code == "INVALID_ARGUMENT"
    entry = message(logName="projects/p/logs/l")
    entry.proto_payload.type_url = "type.googleapis.com/unknown.Type"
    entry.proto_payload.value = b"x"
    assert refusal(entry).code == "INVALID_ARGUMENT"
