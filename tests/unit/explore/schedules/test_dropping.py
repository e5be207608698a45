"""A schedule from which a fault is taken still makes sense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explore.schedules.dropping import keep_only
from harness.scenario import Injection, Schedule, Victim
from harness.scenario.faults import EndGrace, Kill, Pause, Terminate, TruncateFile
from harness.scenario.triggers import AtMarker, AtOperation, AtStep, OnEffect
from harness.strategies import schedules
from tests.unit.explore.schedules.laboratory import JOB

SIGTERM = AtMarker(event="sigterm")
KILL = Injection(fault=Kill(), at=AtStep(step=3))
NOTICE = Injection(fault=Terminate(), at=AtStep(step=5), attempts=(1,))
END = Injection(fault=EndGrace(), at=SIGTERM, attempts=(1,))
LAST = Injection(fault=Kill(), at=AtStep(step=9), attempts=(2,))


def attempts(*injections: Injection) -> list[tuple[int, ...]]:
    return [injection.attempts for injection in injections]


def test_what_was_to_happen_after_a_death_that_is_gone_happens_one_attempt_earlier():
    assert attempts(*keep_only([KILL, NOTICE, LAST], [1, 2])) == [(0,), (1,)]
    assert attempts(*keep_only([KILL, NOTICE, LAST], [0, 2])) == [(0,), (1,)]
    assert attempts(*keep_only([KILL, NOTICE, LAST], [2])) == [(0,)]


def test_an_attempt_that_another_fault_ends_is_still_there():
    both = Injection(fault=Kill(), at=AtMarker(event="save.begin"), attempts=(0,))
    assert attempts(*keep_only([KILL, both, NOTICE], [1, 2])) == [(0,), (1,)]


def test_a_standstill_ends_no_attempt():
    pause = Injection(fault=Pause(), at=AtStep(step=2))
    assert attempts(*keep_only([KILL, pause, NOTICE], [0, 2])) == [(0,), (1,)]
    assert attempts(*keep_only([pause, KILL, NOTICE], [0, 2])) == [(0,), (0,)]


def test_deaths_of_another_task_move_nothing():
    other = Injection(fault=Kill(), at=AtStep(step=3), victim=Victim(task=1))
    assert attempts(*keep_only([KILL, other, NOTICE], [0, 2])) == [(0,), (1,)]


def test_a_fault_that_acts_in_several_attempts_acts_in_those_that_are_left():
    each = Injection(fault=Kill(), at=AtStep(step=3), attempts=(0, 1, 2))
    later = Injection(fault=Kill(), at=AtStep(step=20), attempts=(3,))
    assert attempts(*keep_only([each, later], [1])) == [(0,)]
    assert attempts(*keep_only([each, later], [0])) == [(0, 1, 2)]


@pytest.mark.parametrize(
    "waiting",
    [
        END,
        Injection(fault=Kill(), at=SIGTERM, attempts=(1,)),
        Injection(fault=Kill(), at=AtOperation(operation="sync", path="x", after="sigterm"), attempts=(1,)),
    ],
)
def test_what_waits_for_a_notice_goes_with_it(waiting: Injection):
    assert keep_only([KILL, NOTICE, waiting], [0, 2]) == (KILL,)
    assert keep_only([KILL, NOTICE, waiting], [0, 1]) == (KILL, NOTICE)
    assert keep_only([KILL, NOTICE, waiting], [0, 1, 2]) == (KILL, NOTICE, waiting)


def test_what_waits_for_an_effect_goes_with_it_and_finds_it_by_its_name():
    damage = Injection(fault=TruncateFile(), at=OnEffect(of="2-kill"))
    found = keep_only([KILL, LAST, damage], [1, 2])
    assert found == (Injection(fault=Kill(), at=AtStep(step=9), attempts=(1,), name="2-kill"), damage)
    assert Schedule(injections=found)
    assert keep_only([KILL, LAST, damage], [0, 2]) == (KILL,)


@given(st.data())
def test_whatever_is_taken_away_a_schedule_is_left(data: st.DataObject):
    injections = data.draw(schedules(JOB, max_faults=5)).injections
    kept = data.draw(st.sets(st.integers(0, len(injections) - 1)))

    left = keep_only(injections, kept)

    assert Schedule(injections=left)
    assert len(left) <= len(kept)
    ended = sorted({one.attempts[0] for one in left if not isinstance(one.fault, Pause)})
    assert ended == list(range(len(ended))), "no attempt is waited for that does not come"


@given(st.data())
def test_where_nothing_is_taken_away_nothing_changes(data: st.DataObject):
    injections = data.draw(schedules(JOB, max_faults=5)).injections
    assert keep_only(injections, range(len(injections))) == injections
