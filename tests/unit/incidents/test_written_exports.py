"""Exports written by hand in the shapes of public samples, one of each kind of incident."""

import gzip
import json
import random

import pytest

from harness.incidents import JobWords, read_export, read_file, reproduce, timeline_of
from harness.incidents.diagnosis import DiagnosisKind
from harness.scenario import Scenario, Workload, decode, encode
from tests.unit.incidents.logs import EXPORTS, as_lines, diagnosed, kinds

SHOWS: dict[str, dict[DiagnosisKind, str]] = {
    "cloud-run-preempted-and-resumed.json": {"healthy": "valid", "preempted": "valid"},
    "cloud-run-out-of-memory.jsonl": {"out-of-memory": "invalid", "retries-exhausted": "invalid"},
    "cloud-run-timed-out.json": {"timed-out": "invalid", "no-save-after-sigterm": "invalid", "retries-exhausted": "invalid"},
    "cloud-run-failed-by-itself.json": {"failed-by-itself": "invalid", "retries-exhausted": "invalid"},
    "cloud-run-no-save-after-sigterm.json": {"no-save-after-sigterm": "invalid", "terminated": "valid"},
    "cloud-run-never-resumed.jsonl": {"never-resumed": "invalid", "preempted": "valid"},
    "cloud-run-cancelled.json": {"cancelled": "invalid"},
    "cloud-run-cancel-refused.jsonl": {"healthy": "valid"},
    "cloud-run-out-of-memory-second-generation.jsonl": {"out-of-memory": "invalid"},
    "cloud-run-one-task-failed.jsonl": {"failed-by-itself": "invalid", "retries-exhausted": "invalid"},
    "cloud-run-ended-by-sigterm.jsonl": {"no-save-after-sigterm": "invalid", "terminated": "valid"},
    "cloud-run-preemption-played.jsonl": {"preempted": "valid", "healthy": "valid"},
    "gke-fell-back-to-dws.json": {"fell-back-to-dws": "valid", "stockout": "valid", "waited-for-quota": "valid", "healthy": "valid"},
    "gke-preempted-in-the-queue.jsonl": {
        "preempted-in-the-queue": "valid",
        "waited-for-quota": "valid",
        "restarted-from-scratch": "invalid",
    },
    "gke-host-error.json": {"host-error": "valid", "healthy": "valid"},
    "gke-capacity-revoked.json": {"capacity-revoked": "invalid", "fell-back-to-dws": "valid"},
    "gke-stockout.json": {"stockout": "invalid"},
    "gke-spot-and-maintenance.jsonl": {"node-preempted": "valid", "node-maintenance": "valid", "healthy": "valid"},
    "gke-out-of-memory.json": {
        "out-of-memory": "invalid",
        "retries-exhausted": "invalid",
        "evicted": "valid",
        "restarted-from-scratch": "invalid",
    },
}

LOST = {
    "cloud-run-preempted-and-resumed.json": (0, 64.0),
    "cloud-run-out-of-memory.jsonl": (3, None),
    "cloud-run-no-save-after-sigterm.json": (2, 32.5),
    "gke-host-error.json": (7, 371.0),
    "gke-preempted-in-the-queue.jsonl": (30, 810.0),
    "gke-spot-and-maintenance.jsonl": (0, 197.5),
}
"""Steps done again, and the longest recovery in seconds, as whoever wrote the export meant them."""

JOB = Workload(
    name="job", command=("true",), environment={"STEPS": "40", "STEP_SECONDS": "0.02", "SAVE_EVERY": "5"}, save_every=5, steps=40
)


def documents(name: str) -> list[object]:
    text = (EXPORTS / name).read_text(encoding="utf-8")
    if name.endswith("jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    if name == "cloud-run-no-save-after-sigterm.json":  # objects one after the other
        decoder, found, at = json.JSONDecoder(), [], 0
        while at < len(text.rstrip()):
            value, at = decoder.raw_decode(text, at)
            found.append(value)
            at += 1
        return found
    whole = json.loads(text)
    return list(whole["entries"] if isinstance(whole, dict) else whole)


def test_every_export_is_diagnosed_here():
    assert sorted(path.name for path in EXPORTS.iterdir()) == sorted(SHOWS)


@pytest.mark.parametrize("name", SHOWS)
def test_what_happened_is_told_and_nothing_else(name):
    incident = diagnosed(read_file(EXPORTS / name))

    assert kinds(incident) == SHOWS[name]
    assert incident.counts.malformed == 0


@pytest.mark.parametrize("name", [name for name in SHOWS if name.startswith("cloud-run")])
def test_every_line_of_a_cloud_run_export_is_understood(name):
    assert diagnosed(read_file(EXPORTS / name)).unknown == ()


@pytest.mark.parametrize("name", SHOWS)
def test_each_diagnosis_names_entries_that_are_in_the_export(name):
    ids = {(each["insertId"], each["timestamp"]) for each in documents(name) if isinstance(each, dict)}

    for diagnosis in diagnosed(read_file(EXPORTS / name)).diagnoses:
        assert diagnosis.evidence, diagnosis
        assert {(evidence.insert_id, evidence.at) for evidence in diagnosis.evidence} <= ids
        assert diagnosis.advice
        assert diagnosis.says


@pytest.mark.parametrize("name", LOST)
def test_what_was_lost_is_told(name):
    (losses,) = diagnosed(read_file(EXPORTS / name)).losses

    assert (losses.lost_steps, losses.recovery_s) == pytest.approx(LOST[name])


@pytest.mark.parametrize("name", SHOWS)
def test_order_repetition_and_form_do_not_change_the_diagnosis(name):
    usual = diagnosed(read_file(EXPORTS / name))
    entries = documents(name)
    random.Random(3).shuffle(entries)

    for data in (as_lines([*entries, *entries[:9]]), json.dumps(entries, indent=4).encode()):
        again = diagnosed(data)
        assert (again.diagnoses, again.losses, again.moments, again.gaps) == (usual.diagnoses, usual.losses, usual.moments, usual.gaps)


@pytest.mark.parametrize("name", SHOWS)
def test_every_incident_has_a_scenario_that_can_be_run(name):
    export = read_export(read_file(EXPORTS / name))
    timeline = timeline_of(export, JobWords())

    made = reproduce(timeline, diagnosed(read_file(EXPORTS / name)).diagnoses, JOB, speed=60.0)

    assert decode(encode(made.scenario), Scenario, document=name) == made.scenario


@pytest.mark.parametrize("name", SHOWS)
def test_a_packed_export_is_the_same(name, tmp_path):
    path = tmp_path / "export.gz"
    path.write_bytes(gzip.compress((EXPORTS / name).read_bytes()))

    assert kinds(diagnosed(read_file(path))) == SHOWS[name]


@pytest.mark.parametrize("kept", range(0, 26, 5))
def test_a_part_of_an_incident_is_never_healthier_than_it_was(kept):
    """The end of a log is missing: what is not seen is not known."""
    entries = documents("gke-spot-and-maintenance.jsonl")[: kept or 1]

    incident = diagnosed(as_lines(entries))

    assert incident.outcome != "valid" or kept >= 25
