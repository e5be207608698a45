import msgspec
import pytest

from harness.clock import ManualClock
from harness.history import ObservationLost, read_history
from harness.incidents import JobWords, incident_of, read_export, reproduce, timeline_of
from harness.incidents.directory import Kept, keep_incident
from harness.incidents.incident import Incident
from harness.ledger import keep
from harness.lineage import trace
from harness.report.index import overview_of
from harness.scenario import Workload, read_scenario
from harness.store import RunStore
from harness.verdict import Verdict
from tests.unit.incidents.logs import EXPORTS, PREEMPTED, SIGTERM, Log, as_lines

JOB = Workload(name="job", command=("true",), steps=40)


def kept_of(data: bytes, store: RunStore) -> Kept:
    export = read_export(data)
    timeline = timeline_of(export, JobWords())
    incident = incident_of(export, timeline)
    made = reproduce(timeline, incident.diagnoses, JOB) if timeline.attempts else None
    return keep_incident(incident, timeline, reproduction=made, store=store, argv=("harness", "reproduce"))


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs", ManualClock())


@pytest.mark.parametrize("path", sorted(EXPORTS.iterdir()), ids=lambda path: path.name)
def test_an_incident_lies_in_a_run_directory_and_stands_in_the_index(path, store):
    kept = kept_of(path.read_bytes(), store)

    (row,) = overview_of(store).newest
    assert (row.summary.scenario, row.summary.outcome) == (kept.directory.path.parent.name, kept.incident.outcome)
    assert row.href.endswith("report.html")
    assert msgspec.json.decode(kept.directory.incident_path.read_bytes(), type=Incident) == kept.incident
    verdict = msgspec.json.decode(kept.directory.verdict_path.read_bytes(), type=Verdict)
    assert [finding.checker for finding in verdict.findings] == [diagnosis.kind for diagnosis in kept.incident.diagnoses]


@pytest.mark.parametrize("path", sorted(EXPORTS.iterdir()), ids=lambda path: path.name)
def test_its_history_is_read_by_lineage_and_ledger_like_that_of_a_run(path, store):
    kept = kept_of(path.read_bytes(), store)

    lineage = trace(read_history(kept.directory.history_path).events)

    for losses in kept.incident.losses:
        ledger = keep(lineage, losses.task)
        assert ledger is not None
        assert ledger.adds_up
        assert losses.wall_s == ledger.wall_s
        assert sum(losses.seconds.values()) == pytest.approx(losses.wall_s, abs=0.01)


def test_the_scenario_beside_it_can_be_read(store):
    kept = kept_of((EXPORTS / "cloud-run-preempted-and-resumed.json").read_bytes(), store)

    assert kept.reproduction is not None
    assert read_scenario(kept.directory.reproduction_path) == kept.reproduction.scenario
    page = kept.directory.report_path.read_text(encoding="utf-8")
    assert f"harness run {kept.directory.reproduction_path}" in page
    assert "&#34;name&#34;: &#34;reproduced-train-x7k2p&#34;" in page


def test_what_could_not_be_read_is_told_in_the_history_and_on_the_page(store):
    log = Log().lines(0, "Step 1", "Step 2").platform(3, "Something new").add(4, "some%2Flog", {}, textPayload="hello")

    kept = kept_of(as_lines(log.entries) + b'{"insertId": "torn\n', store)

    lost = [event for event in read_history(kept.directory.history_path).events if isinstance(event, ObservationLost)]
    page = kept.directory.report_path.read_text(encoding="utf-8")
    assert [(event.what, event.count) for event in lost] == [("logs", 1)]
    assert "line 5: no JSON" in page
    assert "Something new" in page
    assert "of no execution" in page


def test_a_line_of_a_log_can_do_nothing_on_the_page(store):
    log = Log().line(0, "<script>alert(1)</script>").line(1, "\x1b[31mred").line(2, SIGTERM + "<img src=x onerror=alert(1)>")

    page = kept_of(as_lines(log.platform(3, PREEMPTED).entries), store).directory.report_path.read_text(encoding="utf-8")

    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x1b" not in page
