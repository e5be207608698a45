"""Which entries match a filter."""

import pytest

from harness.emulator.logging.query import matches, parse_filter

ENTRY = {
    "logName": "projects/p/logs/run.googleapis.com%2Fstdout",
    "resource": {"type": "cloud_run_job", "labels": {"job_name": "Train", "location": "us-central1"}},
    "labels": {"run.googleapis.com/execution_name": "train-abc", "instanceId": "00ff"},
    "timestamp": "2026-01-01T00:00:05.5Z",
    "receiveTimestamp": "2026-01-01T00:00:06Z",
    "severity": "ERROR",
    "insertId": "x1",
    "httpRequest": {"status": 503, "latency": "1.5s", "responseSize": "2048", "remoteIp": "10.1.2.3"},
    "operation": {"first": True},
    "jsonPayload": {
        "message": "Saved Checkpoint",
        "step": 40,
        "loss": 0.25,
        "ok": True,
        "nothing": None,
        "shards": [{"host": "a", "bytes": 1}, {"host": "b", "bytes": 2}],
    },
}
AUDIT = {
    "logName": "projects/p/logs/cloudaudit.googleapis.com%2Fsystem_event",
    "resource": {"type": "cloud_run_job", "labels": {}},
    "protoPayload": {"@type": "type.googleapis.com/google.cloud.audit.AuditLog", "status": {"code": 10, "message": "failed"}},
}


@pytest.mark.parametrize(
    "text",
    [
        'resource.type="cloud_run_job"',
        "resource.type=CLOUD_RUN_JOB",
        "resource.labels.job_name=train",
        'labels."run.googleapis.com/execution_name"="train-abc"',
        "labels.instanceId:00",
        "severity=ERROR",
        "severity=error",
        "severity>=WARNING",
        "severity<500 OR severity=500",
        "severity!=INFO",
        'timestamp>="2026-01-01T00:00:05.5Z"',
        'timestamp<"2026-01-01T00:00:05.500000001Z"',
        'timestamp="2026-01-01T01:00:05.5+01:00"',
        'timestamp>"2025-12-31"',
        'timestamp>="2025-12-31T22:00:05.500000-0200"',
        'receive_timestamp>"2026-01-01T00:00:05.9"',
        "jsonPayload.step=40",
        'jsonPayload.step="40.0"',
        "jsonPayload.step>39 jsonPayload.step<=40",
        "jsonPayload.loss<0.3",
        "jsonPayload.ok=true",
        "jsonPayload.nothing=null",
        "jsonPayload.message:checkpoint",
        'jsonPayload.message=~"^Saved"',
        'jsonPayload.message!~"^saved"',
        r'jsonPayload.message=~"^Saved\sC\w+$"',  # what is no escape of a string is one of the expression
        r'jsonPayload.message=~"^Saved\\sC"',
        "jsonPayload.shards.host=b",
        "jsonPayload.shards.bytes>1",
        "jsonPayload:checkpoint",
        "jsonPayload:*",
        "jsonPayload.step:*",
        "httpRequest.status>=500",
        'httpRequest.latency>"900ms"',
        "http_request.response_size>2000",
        "operation.first=true",
        "operation.last=false",
        'log_id("run.googleapis.com/stdout")',
        "LOG_ID(run.googleapis.com/stdout)",
        "logName:stdout",
        '"saved checkpoint"',
        "train-abc",
        "40",
        'ip_in_net(httpRequest.remoteIp, "10.0.0.0/8")',
        "sample(insertId, 1)",
        'resource.type=("gae_app" OR "cloud_run_job")',
        "jsonPayload.message:(saved AND checkpoint AND NOT lost)",
        'textPayload=""',
        "trace!=x",
        "NOT jsonPayload.absent=1",
        "severity:ERROR",
    ],
)
def test_it_matches(text):
    assert matches(parse_filter(text), ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "severity>ERROR",
        "severity<=WARNING",
        "jsonPayload.step=41",
        "jsonPayload.step=forty",
        "jsonPayload.step!=forty",  # what cannot be compared fails, whatever the operator
        "jsonPayload.absent!=1",
        'jsonPayload.absent!~"x"',
        "labels.absent:*",
        "jsonPayload.absent:*",
        'jsonPayload.message=~"^saved"',
        'jsonPayload.step=~"4"',
        "jsonPayload.message.deeper=1",
        "jsonPayload.shards.host=c",
        "jsonPayload=x",
        'log_id("stdout")',
        'ip_in_net(httpRequest.remoteIp, "192.168.0.0/16")',
        "sample(insertId, 0)",
        'textPayload:"Saved"',
        "7",
        'resource.labels.location="us-central"',
    ],
)
def test_it_does_not_match(text):
    assert not matches(parse_filter(text), ENTRY)


def test_fields_of_an_audit_log_are_compared_by_their_own_types():
    assert matches(parse_filter("protoPayload.status.code=10 protoPayload.status.code>9"), AUDIT)
    assert matches(parse_filter('protoPayload."@type":AuditLog'), AUDIT)
    assert not matches(parse_filter("protoPayload.status.code=1"), AUDIT)


def test_an_entry_without_a_severity_has_the_default_one():
    assert matches(parse_filter("severity=DEFAULT"), AUDIT)
    assert not matches(parse_filter("severity>=INFO"), AUDIT)


def test_a_sample_takes_about_its_share_and_the_same_entries_each_time():
    entries = [{"insertId": str(number)} for number in range(1000)]
    tree = parse_filter("sample(insertId, 0.25)")
    taken = [entry for entry in entries if matches(tree, entry)]
    assert 150 < len(taken) < 350
    assert taken == [entry for entry in entries if matches(tree, entry)]


def test_an_entry_of_a_million_values_is_searched_within_bounds():
    assert not matches(parse_filter("needle"), {"jsonPayload": {"list": list(range(1_000_000))}})
