"""A run in one row."""

import pytest

from harness.history import ExecutionStarted
from harness.report.summary import Summary, summarize, summary_of
from harness.scenario import Injection
from harness.scenario.faults import FlipByte, Kill
from harness.scenario.triggers import AtStep, OnEffect
from harness.verdict import Finding, Outcome, merge
from tests.unit.checkers.builders import Run, resumed, uninterrupted
from tests.unit.report.records import INVALID, KILL, bare, keep, record_of


def test_an_uninterrupted_run_has_no_figures_of_recovery():
    summary = summary_of(record_of(uninterrupted()))

    assert (summary.outcome, summary.attempts) == ("valid", 1)
    assert (summary.faults_landed, summary.faults_declared) == (0, 0)
    assert (summary.lost_steps, summary.recovery_s, summary.margin_s) == (None, None, None)


def test_a_death_costs_the_steps_after_the_last_save_and_the_time_to_redo_them():
    summary = summary_of(record_of(resumed(), injections=(KILL,)))

    assert (summary.faults_landed, summary.faults_declared, summary.attempts, summary.lost_steps) == (1, 1, 2, 2)
    assert summary.recovery_s == pytest.approx(1.3)


def test_a_margin_is_measured_where_no_checker_was_asked_for_it():
    run = Run().attempt(0).begin().steps(1, 7).terminated(143, saves=7).attempt(1).begin(7).steps(8, 20).complete()

    assert summary_of(record_of(run)).margin_s == pytest.approx(10 - 0.6)


def test_what_a_checker_measured_goes_before():
    measured = merge(
        [
            Finding(checker="grace-conduct", outcome=Outcome.VALID, reason="", measures={"margin_s": 3.5}),
            Finding(checker="resume", outcome=Outcome.VALID, reason="", measures={"lost_steps": 9.0, "resumes": 1.0}),
            Finding(checker="landed", outcome=Outcome.VALID, reason="", measures={"faults_landed": 4.0, "faults_declared": 5.0}),
        ]
    )

    summary = summary_of(record_of(resumed(), verdict=measured))

    assert (summary.margin_s, summary.lost_steps, summary.faults_landed, summary.faults_declared) == (3.5, 9, 4, 5)


def test_reasons_are_those_of_the_findings_that_decided():
    assert summary_of(record_of(resumed(), verdict=INVALID)).reasons == ("bit-exact-resume: rng differs at step 6",)


def test_an_injection_counts_once_for_each_attempt_and_one_on_an_effect_once():
    twice = Injection(fault=Kill(), at=AtStep(step=7), attempts=(0, 1), name="kill")
    damage = Injection(fault=FlipByte(), at=OnEffect(of="kill"))

    assert summary_of(record_of(resumed(), injections=(twice, damage))).faults_declared == 3


def test_a_run_without_a_verdict_is_unknown_and_says_why(tmp_path):
    summary = summarize(keep(tmp_path, resumed().events, verdict=None))

    assert summary.outcome == "unknown"
    assert summary.reasons == ("report: the run is still going on",)


def test_nothing_at_all_can_be_summed_up():
    summary = summary_of(bare())

    assert (summary.outcome, summary.attempts, summary.wall_s, summary.opened_at) == ("unknown", 0, 0.0, "")


def test_a_summary_survives_json(tmp_path):
    import msgspec

    summary = summarize(keep(tmp_path, resumed().events))

    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary


def test_the_grace_that_was_granted_counts_and_not_the_one_that_is_usual():
    run = Run()
    run.events = [event for event in run.events if not isinstance(event, ExecutionStarted)]
    run.add(ExecutionStarted, execution="e", tasks=1, max_retries=3, timeout_s=600.0, grace_s=2.0)
    run.attempt(0).begin().steps(1, 3).terminated(143, saves=3)

    assert summary_of(record_of(run)).margin_s == pytest.approx(2 - 0.6)
