"""How often to save, by the formulas of Young and Daly."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ledger import advise, daly_interval_s, keep, waste_ratio, young_interval_s
from tests.unit.checkers.builders import Run, resumed, uninterrupted

HOUR_S = 3600.0
costs = st.floats(0.01, 1e4)
interruptions = st.floats(1.0, 1e6)


def test_the_check_values():
    save_s, mtti_s = 30.0, 3 * HOUR_S
    assert round(young_interval_s(save_s, mtti_s)) == 805
    assert round(daly_interval_s(save_s, mtti_s)) == 785
    assert waste_ratio(daly_interval_s(save_s, mtti_s), save_s, mtti_s, restart_s=120.0) == pytest.approx(0.086, abs=0.0005)


def test_where_saving_costs_more_than_working_is_left_there_is_one_save_an_interruption():
    assert daly_interval_s(200.0, 100.0) == 100.0
    assert daly_interval_s(300.0, 100.0) == 100.0


@given(costs, interruptions)
def test_young_s_interval_wastes_least_to_first_order(save_s: float, mtti_s: float):
    best_s = young_interval_s(save_s, mtti_s)
    least = waste_ratio(best_s, save_s, mtti_s, 0.0)
    assert least == pytest.approx(math.sqrt(2 * save_s / mtti_s))
    for other_s in (best_s / 2, best_s * 0.9, best_s * 1.1, best_s * 2):
        assert waste_ratio(other_s, save_s, mtti_s, 0.0) > least


@given(costs, interruptions)
def test_daly_s_interval_is_positive_and_near_young_s_where_saves_are_cheap(save_s: float, mtti_s: float):
    interval_s = daly_interval_s(save_s, mtti_s)
    assert interval_s > 0
    if save_s < mtti_s / 1000:
        assert interval_s == pytest.approx(young_interval_s(save_s, mtti_s), rel=0.05)


def advice_of(run: Run, *mttis_s: float):
    ledger = keep(run.evidence().lineage, 0)
    assert ledger is not None
    return advise(ledger, mttis_s=mttis_s)


def test_advice_counts_in_steps_of_the_job_and_names_its_assumption():
    (row,) = advice_of(resumed(), HOUR_S)
    assert row.mtti_s == HOUR_S
    assert row.interval_s == pytest.approx(daly_interval_s(0.1, HOUR_S))
    assert row.interval_steps == round(row.interval_s / 0.1)
    assert row.waste == pytest.approx(waste_ratio(row.interval_s, 0.1, HOUR_S, restart_s_of(resumed())))


def restart_s_of(run: Run) -> float:
    ledger = keep(run.evidence().lineage, 0)
    assert ledger is not None
    return ledger.recoveries[0].restart_s


def test_the_rarer_the_interruptions_the_longer_the_interval():
    rows = advice_of(uninterrupted(), HOUR_S, 6 * HOUR_S, 24 * HOUR_S)
    assert [row.interval_s for row in rows] == sorted(row.interval_s for row in rows)
    assert [row.waste for row in rows] == sorted((row.waste for row in rows), reverse=True)


def test_without_a_step_or_a_save_or_a_cost_there_is_no_advice():
    assert advice_of(Run().attempt(0).boot().save(1).exit(1), HOUR_S) == ()
    assert advice_of(Run().attempt(0).begin().step(1).exit(1), HOUR_S) == ()
    free = Run(is_surveyed=False).attempt(0).begin().step(1).begin_save(1).step(2).exit(0)
    assert advice_of(free, HOUR_S) == ()
