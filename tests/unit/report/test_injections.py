"""The faults of a run as a table."""

import pytest

from harness.history import FaultRequested
from harness.report.injections import fault_rows, moment_of
from harness.scenario import Injection, Victim
from harness.scenario.cluster_faults import LosePool
from harness.scenario.faults import FlipByte, Pause
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, OnEffect, OnLog
from tests.unit.checkers.builders import resumed, uninterrupted
from tests.unit.report.records import KILL, record_of


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        (AtStep(step=7), "when step 7 is done"),
        (AtStep(step=7, rank=1), "when step 7 is done by rank 1"),
        (AtMarker(event="save.begin"), "right after save.begin"),
        (AtMarker(event="save.begin", nth=2, when="before", rank=1), "just before save.begin for the 2nd time of rank 1"),
        (AtOperation(operation="rename", path="step_*"), "right after rename of step_*"),
        (
            AtOperation(operation="sync", path=".", nth=2, after="save.begin", after_nth=3, when="before", rank=1),
            "just before sync of . for the 2nd time since save.begin number 3 of rank 1",
        ),
        (OnLog(pattern="^Saving", nth=3), "at the 3rd line of the log that matches ^Saving"),
        (AfterSeconds(seconds=0.5), "0.50 s after the attempt started"),
        (OnEffect(of="1-kill"), "as soon as 1-kill is observed"),
    ],
)
def test_a_trigger_is_told_in_words(trigger, told):
    assert moment_of(trigger) == told


def test_a_fault_that_landed_says_so():
    (row,) = fault_rows(record_of(resumed(), injections=(KILL,)))

    assert (row.name, row.what, row.whom, row.state) == ("1-kill", "kill", "attempt 0", "landed")
    assert row.strike is not None


def test_a_fault_that_never_acted_has_a_row_all_the_same():
    pause = Injection(fault=Pause(duration_s=2.0), at=AtStep(step=30), victim=Victim(rank=0))

    (row,) = fault_rows(record_of(uninterrupted(), injections=(pause,)))

    assert (row.what, row.whom, row.state, row.strike) == ("pause (duration_s 2.0)", "attempt 0, rank 0", "not requested", None)


def test_a_parameter_that_says_nothing_is_not_told():
    lost = Injection(fault=LosePool(), at=AtStep(step=30))

    (row,) = fault_rows(record_of(uninterrupted(), injections=(lost,)))

    assert row.what == "lose-pool (duration_s 60.0)"


def test_a_fault_on_an_effect_belongs_to_whatever_attempt_it_hit():
    damage = Injection(fault=FlipByte(), at=OnEffect(of="1-kill"))
    run = resumed()
    run.damaged()

    rows = fault_rows(record_of(run, injections=(KILL, damage)))

    assert [(row.name, row.state) for row in rows] == [("1-kill", "landed"), ("2-flip-byte", "landed")]


def test_a_fault_that_nobody_declared_is_not_hidden():
    run = uninterrupted()
    run.add(FaultRequested, injection="stray", fault="kill", attempt=1, task=2)

    (row,) = fault_rows(record_of(run))

    assert (row.name, row.when, row.whom, row.state) == ("stray", "", "task 2, attempt 1", "not observed")
