"""Exports that somebody means ill with, and those that are only broken: whatever stands in them, a document comes out, and the same one."""

import copy
import json
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.errors import UsageError
from harness.history import read_history
from harness.incidents import JobWords, incident_of, read_export, reproduce, timeline_of
from harness.incidents.directory import keep_incident
from harness.incidents.incident import Incident
from harness.scenario import Scenario, Workload, decode, encode
from harness.store import RunStore
from tests.unit.incidents.logs import EXPORTS, PREEMPTED, SIGTERM, as_lines
from tests.unit.incidents.test_written_exports import documents

JOB = Workload(
    name="job", command=("true",), environment={"STEPS": "40", "STEP_SECONDS": "0.02", "SAVE_EVERY": "5"}, save_every=5, steps=40
)
NAMES = sorted(path.name for path in EXPORTS.iterdir())
WHOLE = {name: documents(name) for name in NAMES}

TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "\0",
            "\x1b[2J",
            "\u202e",
            "<script>alert(1)</script>",
            "x" * 5000,
            "Step 9999999999999999999999",
            "Step 900719925474099",
            "Saving checkpoint at step 5...",
            "Resuming from checkpointed step 3.",
            "Container called exit(999).",
            "Container called exit(0).",
            "Container terminated on signal 99.",
            "Terminating task because it has reached the maximum timeout of 0 seconds.",
            "Terminating task because it has reached the maximum timeout of 999999999 seconds.",
            PREEMPTED,
            SIGTERM,
            "-1",
            "0",
            "7",
            "99999999999999999999",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999999Z",
            "2014-01-01T00:00:00Z",
            "2099-12-31T23:59:59Z",
            "2026-03-02T04:00:07Z",
        ]
    ),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=8,
)


def paths_in(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Every place in a document."""
    found = [path] if path else []
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [each for name, inner in members for each in paths_in(inner, (*path, name))]


@st.composite
def broken_exports(draw: st.DrawFn) -> list[object]:
    """An export in which some values are others, of any type, in any field."""
    entries = copy.deepcopy(WHOLE[draw(st.sampled_from(NAMES))])
    for _ in range(draw(st.integers(1, 12))):
        entry = draw(st.sampled_from(entries))
        places = paths_in(entry)
        if not places:
            continue
        *way, last = draw(st.sampled_from(places))
        target = entry
        for name in way:
            target = target[name]  # type: ignore[index]
        if draw(st.booleans()):
            target[last] = draw(VALUES)  # type: ignore[index]
        else:
            del target[last]  # type: ignore[attr-defined]
    return entries


def read_at_all(data: bytes) -> Incident | None:
    """The incident, of whichever job the export names first; None where it names none that can be told."""
    export = read_export(data)
    try:
        timeline = timeline_of(export, JobWords())
    except UsageError as error:
        name = str(error).partition("executions: ")[2].partition(", ")[0].partition(";")[0]
        try:
            timeline = timeline_of(export, JobWords(), name=name)
        except UsageError:
            return None
    incident = incident_of(export, timeline)
    made = reproduce(timeline, incident.diagnoses, JOB)
    assert decode(encode(made.scenario), Scenario, document="made") == made.scenario
    assert msgspec.json.decode(msgspec.json.encode(incident), type=Incident) == incident
    return incident


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(broken_exports(), st.randoms(use_true_random=False))
def test_wrong_values_in_any_field_neither_break_it_nor_depend_on_the_order(entries, chance):
    usual = read_at_all(as_lines(entries))
    again = list(entries)
    chance.shuffle(again)

    incident = read_at_all(as_lines([*again, *again[:7]]))

    if usual is None or incident is None:
        assert incident is usual
        return
    assert incident.diagnoses == usual.diagnoses
    assert (incident.losses, incident.moments, incident.gaps, incident.unknown) == (usual.losses, usual.moments, usual.gaps, usual.unknown)
    assert incident.diagnoses


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(NAMES), st.data())
def test_bytes_that_were_damaged_are_counted_and_the_rest_is_read(name, data):
    whole = bytearray((EXPORTS / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        action = data.draw(st.sampled_from(["change", "cut", "insert"]))
        if action == "change":
            whole[at] = data.draw(st.integers(0, 255))
        elif action == "cut":
            del whole[at : at + data.draw(st.integers(1, 400))]
        else:
            whole[at:at] = data.draw(st.binary(max_size=30))
        whole = whole or bytearray(b" ")

    read_at_all(bytes(whole))


@given(st.binary(max_size=300))
def test_bytes_that_are_no_export_are_none(data):
    export = read_export(data)

    assert export.entries == ()


@given(st.integers(50, 20_000), st.sampled_from(["[", '{"a":', '{"jsonPayload":{"a":']))
def test_what_is_nested_deeply_is_one_malformed_part(depth, opening):
    good = as_lines(WHOLE["cloud-run-cancelled.json"])

    export = read_export(good + opening.encode() * depth + b"\n")

    assert len(export.entries) == len(WHOLE["cloud-run-cancelled.json"])
    assert export.malformed_count >= 1


def test_what_is_nested_as_deeply_as_it_can_be_read_is_read():
    entry = {"insertId": "deep", "timestamp": "2026-03-01T12:00:00Z", "logName": "projects/p/logs/events"}
    for depth in (10, 100, 200, 400, 600, 800, 900, 950, 980):
        nested = json.dumps(entry)[:-1] + ', "jsonPayload": ' + '{"a":' * depth + "1" + "}" * depth + "}"
        export = read_export(nested.encode())
        assert len(export.entries) + export.malformed_count == 1
        assert read_at_all(nested.encode()) is not None


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(entries=broken_exports())
def test_everything_can_be_kept_and_shown(entries, tmp_path_factory):
    export = read_export(as_lines(entries))
    try:
        timeline = timeline_of(export, JobWords())
    except UsageError:
        return
    incident = incident_of(export, timeline)
    made = reproduce(timeline, incident.diagnoses, JOB)

    kept = keep_incident(incident, timeline, reproduction=made, store=RunStore(tmp_path_factory.mktemp("runs"), ManualClock()), argv=())

    page = kept.directory.report_path.read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "\x1b" not in page
    assert "\0" not in page
    assert read_history(kept.directory.history_path).events
    assert Path(kept.directory.verdict_path).exists()
