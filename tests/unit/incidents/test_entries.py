import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.incidents.entries import read_entry, read_export, read_values
from tests.unit.incidents.logs import Log, as_lines

ENTRY = {
    "insertId": "a",
    "logName": "projects/p/logs/run.googleapis.com%2Fstdout",
    "timestamp": "2026-03-01T12:00:00Z",
    "resource": {"type": "cloud_run_job", "labels": {"job_name": "j"}},
    "labels": {"run.googleapis.com/task_index": "0"},
    "textPayload": "Step 1",
    "severity": "INFO",
}


def test_an_entry_is_read_as_json_has_it():
    entry = read_entry(ENTRY)

    assert (entry.insert_id, entry.log, entry.text, entry.severity) == ("a", "run.googleapis.com/stdout", "Step 1", "INFO")
    assert (entry.resource_type, entry.resource, entry.labels) == (
        "cloud_run_job",
        {"job_name": "j"},
        {"run.googleapis.com/task_index": "0"},
    )
    assert entry.at == "2026-03-01T12:00:00.000000Z"


def test_the_client_s_own_spelling_is_the_same():
    spelled = {"insert_id": "a", "log_name": ENTRY["logName"], "text_payload": "Step 1"}
    rest = {name: ENTRY[name] for name in ("timestamp", "resource", "labels", "severity")}

    assert read_entry({**spelled, **rest}) == read_entry(ENTRY)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"jsonPayload": {"message": "Step 2", "loss": 0.1}}, "Step 2"),
        ({"jsonPayload": {"loss": 0.1}}, '{"loss":0.1}'),
        ({"protoPayload": {"@type": "x", "methodName": "m", "status": {"message": "it failed"}}}, "it failed"),
        ({"protoPayload": {"@type": "x", "methodName": "m"}}, "m"),
        ({}, ""),
        ({"textPayload": 7, "jsonPayload": "no"}, ""),
    ],
)
def test_the_text_of_an_entry_is_what_a_person_reads(payload, text):
    bare = {name: value for name, value in ENTRY.items() if name != "textPayload"}

    assert read_entry({**bare, **payload}).text == text


def test_when_it_was_received_stands_for_a_timestamp_that_cannot_be_read():
    received = {"receiveTimestamp": "2026-03-01T12:00:01Z"}

    assert read_entry({**ENTRY, "timestamp": "0000-00-00T00:00:00Z", **received}).at == "2026-03-01T12:00:01.000000Z"
    for wrong in ({"timestamp": None}, {"timestamp": "9999-01-01T00:00:00Z"}, {"timestamp": 17}):
        with pytest.raises(ValueError, match=r"timestamp|year"):
            read_entry({**ENTRY, **wrong})


@given(st.permutations(Log().lines(0, *(f"Step {number}" for number in range(12))).entries), st.lists(st.integers(0, 11), max_size=8))
def test_order_and_repetition_do_not_count(entries, again):
    usual = read_export(as_lines(Log().lines(0, *(f"Step {number}" for number in range(12))).entries))

    export = read_export(as_lines([*entries, *(entries[index] for index in again)]))

    assert export.entries == usual.entries
    assert export.duplicates == len(again)


def test_entries_of_one_moment_are_in_the_order_of_the_numbers_in_their_ids():
    same = [{**ENTRY, "insertId": f"e-{number}", "textPayload": str(number)} for number in (10, 9, 2, 11)]

    assert [entry.text for entry in read_export(as_lines(same)).entries] == ["2", "9", "10", "11"]


def test_without_an_id_only_what_is_equal_in_everything_is_the_same():
    bare = {name: value for name, value in ENTRY.items() if name != "insertId"}

    export = read_export(as_lines([bare, bare, {**bare, "textPayload": "Step 2"}]))

    assert ([entry.text for entry in export.entries], export.duplicates) == (["Step 1", "Step 2"], 1)


def test_an_entry_that_was_written_again_with_other_content_is_still_one():
    export = read_export(as_lines([ENTRY, {**ENTRY, "severity": "ERROR"}]))

    assert (len(export.entries), export.duplicates) == (1, 1)


def test_one_id_in_two_logs_is_two_entries():
    other = {**ENTRY, "logName": "projects/p/logs/run.googleapis.com%2Fstderr"}

    assert len(read_export(as_lines([ENTRY, other])).entries) == 2


def test_a_line_of_a_megabyte_is_cut_to_what_an_entry_may_hold():
    export = read_export(as_lines([{**ENTRY, "textPayload": "x" * (1 << 20)}]))

    assert len(export.entries[0].text) == 256 << 10


def test_what_has_no_moment_is_counted_with_its_place():
    export = read_export(
        json.dumps([ENTRY, {"insertId": "b", "textPayload": "when?"}, {**ENTRY, "insertId": "c", "timestamp": "soon"}]).encode()
    )

    assert (len(export.entries), export.malformed_count) == (1, 2)
    assert [(each.place, each.sample) for each in export.malformed] == [("entry 2", "b"), ("entry 3", "c")]


def test_entries_of_a_live_query_are_read_as_those_of_an_export():
    export = read_values(iter([ENTRY, ENTRY]))

    assert (export.entries, export.duplicates) == (read_export(as_lines([ENTRY])).entries, 1)
