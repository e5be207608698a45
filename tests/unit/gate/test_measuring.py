"""The figures of a run: what its directory tells, and what it does not."""

import dataclasses
import math

import msgspec
import pytest
from msgspec.structs import replace

from harness.gate.figures import FIGURE_NAMES, Figure
from harness.gate.measuring import measure
from harness.history import AttemptExited, ObservationLost
from harness.ledger import Ledger
from harness.report.record import Record
from harness.scenario import Injection, LogPatterns, Outside
from harness.scenario.faults import EndGrace, Terminate
from harness.scenario.triggers import AtStep, OnEffect
from harness.verdict import Finding, Outcome, merge
from tests.unit.checkers.builders import SILENT, Run, resumed, uninterrupted
from tests.unit.report.records import KILL, bare, record_of

NOTICE = Injection(fault=Terminate(), at=AtStep(step=7), name="notice")


def test_an_uninterrupted_run_has_goodput_and_nothing_else_to_measure():
    found = measure(record_of(uninterrupted()))

    assert [name for name in FIGURE_NAMES if not found[name].is_absent] == ["goodput"]
    assert 0 < (found["goodput"].value or 0) <= 1


def test_a_death_costs_steps_and_time():
    found = measure(record_of(resumed(), injections=(KILL,)))

    assert found["lost_steps"] == Figure(value=2)
    assert found["recovery_s"].value == pytest.approx(1.3)
    assert found["grace_margin_s"].is_absent


def test_what_a_checker_counted_goes_before():
    verdict = merge(
        [
            Finding(checker="resume", outcome=Outcome.VALID, reason="", measures={"lost_steps": 9.0, "resumes": 1.0}),
            Finding(checker="grace-conduct", outcome=Outcome.VALID, reason="", measures={"margin_s": 3.5}),
        ]
    )
    found = measure(record_of(resumed(), verdict=verdict))

    assert (found["lost_steps"].value, found["grace_margin_s"].value) == (9.0, 3.5)


def test_a_death_without_a_new_step_after_it_is_missing_and_not_absent():
    run = Run().attempt(0).begin().steps(1, 7).killed()
    found = measure(record_of(run, injections=(KILL,)))

    assert "no new step was seen after it" in found["recovery_s"].missing
    assert "no new step was seen after it" in found["lost_steps"].missing


def test_a_run_that_was_not_judged_tells_nothing():
    found = measure(record_of(resumed(), verdict=None))

    assert {figure.missing for figure in found.values()} == {"the run was not judged"}


def test_a_run_without_an_attempt_tells_nothing():
    assert {figure.missing for figure in measure(record_of(Run())).values()} == {"no attempt of the job was seen"}


def test_where_words_of_the_job_are_lost_nothing_is_measured():
    run = resumed().add(ObservationLost, what="events", count=3, detail="a line was no event")

    assert {figure.missing for figure in measure(record_of(run)).values()} == {"words of the job are lost: a line was no event"}


def test_of_a_job_that_is_followed_by_its_log_lost_lines_are_lost_words():
    lost = {"what": "logs", "count": 19, "detail": "19 lines over the limit"}
    followed = replace(SILENT, outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)")))
    run = Run(followed).attempt(0).steps(1, 7).killed().attempt(1).steps(6, 20).add(ObservationLost, **lost).complete()

    assert {figure.missing for figure in measure(record_of(run)).values()} == {"words of the job are lost: 19 lines over the limit"}
    assert measure(record_of(resumed().add(ObservationLost, **lost)))["lost_steps"] == Figure(value=2), "its words are not in its log"


def test_without_a_step_no_time_is_productive():
    run = Run().attempt(0).exit(0, retried=False).end_task().finish()

    assert measure(record_of(run))["goodput"].missing == "no step was seen, so no time can be called productive"


def test_a_margin_is_what_was_left_of_the_grace():
    run = Run().attempt(0).begin().steps(1, 7).terminated(143, saves=7).attempt(1).begin(7).steps(8, 20).complete()

    assert measure(record_of(run, injections=(NOTICE,)))["grace_margin_s"].value == pytest.approx(10 - 0.6)


def test_a_grace_that_a_fault_has_ended_tells_no_margin():
    end = Injection(fault=EndGrace(), at=OnEffect(of="notice"))
    run = Run().attempt(0).begin().steps(1, 7).terminated(None, signal=9).attempt(1).begin().steps(1, 20).complete()
    run.events[:] = [
        event if not isinstance(event, AttemptExited) or event.signal is None else type(event)(**{**fields(event), "cause": "grace"})
        for event in run.events
    ]

    assert measure(record_of(run, injections=(NOTICE, end)))["grace_margin_s"].is_absent


def test_a_kill_within_the_grace_tells_no_margin():
    run = Run().attempt(0).begin().steps(1, 7).terminated(None, signal=9).attempt(1).begin().steps(1, 20).complete()

    assert measure(record_of(run, injections=(NOTICE,)))["grace_margin_s"].is_absent


def test_an_exit_that_was_not_seen_is_missing():
    run = Run().attempt(0).begin().steps(1, 7).request("notice", "terminate").signal("SIGTERM").observe("notice")

    assert "was not seen" in measure(record_of(run, injections=(NOTICE,)))["grace_margin_s"].missing


def test_a_record_of_nothing_tells_nothing():
    assert all(figure.missing for figure in measure(bare()).values())


# ---- what is not what it seems ----


def test_of_a_damaged_history_nothing_is_measured():
    whole = record_of(resumed(), injections=(KILL,))
    found = measure(dataclasses.replace(whole, problems=("the history is damaged", "the scenario cannot be read")))

    assert {figure.missing for figure in found.values()} == {"the history is damaged; the scenario cannot be read"}


def test_a_number_of_a_checker_that_cannot_be_is_missing():
    for lost, margin in ((-1.0, math.inf), (math.nan, math.nan)):
        measures = {"lost_steps": lost, "resumes": 1.0, "margin_s": margin}
        verdict = merge([Finding(checker="resume", outcome=Outcome.VALID, reason="", measures=measures)])
        found = measure(record_of(resumed(), verdict=verdict))

        assert "cannot be" in found["lost_steps"].missing
        assert "cannot be" in found["grace_margin_s"].missing


def with_ledgers(record: Record, *ledgers: Ledger) -> Record:
    """The record, with these ledgers as if they were kept of its history."""
    vars(record)["ledgers"] = ledgers
    return record


def test_a_recovery_that_ended_before_it_began_is_missing_however_long_the_others_are():
    record = record_of(resumed(), injections=(KILL,))
    (ledger,) = record.ledgers
    (recovery,) = ledger.recoveries
    early = dataclasses.replace(recovery, recovered_s=recovery.fault_s - 1.0)
    found = measure(with_ledgers(record, dataclasses.replace(ledger, recoveries=(recovery, early))))["recovery_s"]

    assert "recovery of -1 cannot be" in found.missing


def test_the_least_productive_task_counts():
    record = record_of(resumed(), injections=(KILL,))
    (worse,) = record.ledgers
    (better,) = record_of(uninterrupted()).ledgers
    assert worse.goodput < better.goodput

    for ledgers in ((worse, better), (better, worse)):
        assert measure(with_ledgers(record, *ledgers))["goodput"] == Figure(value=worse.goodput)


def test_a_ledger_that_does_not_add_up_measures_no_goodput():
    record = record_of(resumed(), injections=(KILL,))
    (ledger,) = record.ledgers
    found = measure(with_ledgers(record, dataclasses.replace(ledger, end_s=ledger.end_s + 5.0)))["goodput"]

    assert found == Figure(missing="the ledger of task 0 does not add up: 5.000 s are in no span")


def test_what_the_platform_cannot_retry_owes_no_recovery():
    run = Run().attempt(0).begin().steps(1, 7).killed()
    record = record_of(run, injections=(KILL,))
    assert record.scenario is not None
    beyond = dataclasses.replace(record, scenario=msgspec.structs.replace(record.scenario, within_budget=False))

    assert measure(record)["recovery_s"].missing
    assert measure(beyond)["recovery_s"].is_absent
    assert measure(beyond)["lost_steps"].is_absent


def test_the_shortest_margin_counts():
    again = Injection(fault=Terminate(), at=AtStep(step=12), name="again")
    run = Run().attempt(0).begin().steps(1, 7).terminated(143, saves=7, name="notice").attempt(1).begin(7).steps(8, 12)
    run.request("again", "terminate").signal("SIGTERM").observe("again")
    run.t_s += 6.0
    run.exit(143, cause="fault").heal("again").attempt(2).begin(10).steps(11, 20).complete()

    found = measure(record_of(run, injections=(NOTICE, again)))["grace_margin_s"]

    assert 0 < (found.value or 0) < 4


def test_a_grace_that_was_exceeded_counts_whoever_ended_it():
    run = Run().attempt(0).begin().steps(1, 7).request("notice", "terminate").signal("SIGTERM").observe("notice")
    run.t_s += 11.0
    run.exit(signal=9, cause="fault").heal("notice").attempt(1).begin(5).steps(6, 20).complete()

    assert (measure(record_of(run, injections=(NOTICE,)))["grace_margin_s"].value or 0) < -1


def fields(event: AttemptExited) -> dict[str, object]:
    return {name: getattr(event, name) for name in event.__struct_fields__}
