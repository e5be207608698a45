"""Where the time went, as tables."""

import pytest

from harness.report.accounts import MEANINGS, accounts_of, advising_of, budgets_of, recoveries_of
from harness.report.notices import Notice
from harness.report.page import page_of
from harness.scenario import Platform
from tests.unit.checkers.builders import Run, resumed, uninterrupted
from tests.unit.report.records import record_of
from tests.unit.report.test_page import words


def test_the_lines_of_a_ledger_add_up_to_the_wall_time():
    (account,) = accounts_of(record_of(resumed()))

    assert account.adds_up
    assert sum(entry.seconds for entry in account.entries) == pytest.approx(account.ledger.wall_s)
    assert account.sum_s == pytest.approx(account.ledger.wall_s)


def test_tasks_are_accounted_for_in_their_order_however_productive_they_were():
    run = Run(platform=Platform(tasks=2)).attempt(0).begin().steps(1, 20).complete()
    run.t_s += 60
    run.attempt(0, task=1).begin().steps(1, 2).exit(0).finish()

    record = record_of(run)

    assert [account.ledger.task for account in accounts_of(record)] == [0, 1]
    least = min(record.ledgers, key=lambda ledger: ledger.goodput)
    assert least.task == 1
    assert f"goodput{least.goodput:.0%} of task {least.task}" in words(page_of(record))


def test_every_line_says_what_it_is():
    (account,) = accounts_of(record_of(resumed()))

    assert [entry.meaning for entry in account.entries] == [MEANINGS[entry.category] for entry in account.entries]
    assert all(entry.seconds > 0 for entry in account.entries)


def test_a_recovery_is_told_part_by_part_in_the_order_in_which_they_come():
    (row,) = recoveries_of(record_of(resumed()))

    names = [part.category for part in row.parts]
    assert names == [name for name in ("detect", "requeue", "provision", "start", "restore", "compile", "replay") if name in names]
    assert sum(part.seconds for part in row.parts) == pytest.approx(row.recovery.seconds)


def test_advice_says_what_it_rests_on():
    advising = advising_of(record_of(resumed()))

    assert advising is not None
    assert advising.saves == 4
    assert advising.save_s == pytest.approx(0.1)
    assert advising.restart_s == pytest.approx(1.0)  # the recovery of 1.3 s without the steps that were done again
    for row, young_s in advising.rows:
        assert row.interval_s == pytest.approx(young_s, rel=0.05)


def test_without_saves_there_is_no_advice():
    assert advising_of(record_of(Run().attempt(0).begin().step(1).step(2).exit(0))) is None


def test_without_attempts_there_is_nothing_to_account_for():
    record = record_of(Run())

    assert (accounts_of(record), recoveries_of(record), advising_of(record)) == ((), (), None)


def test_an_uninterrupted_run_has_no_recovery():
    assert recoveries_of(record_of(uninterrupted())) == ()


def notice(**moments: float | None) -> Notice:
    told: dict[str, float | None] = {"seen_s": 1.5, "last_step_s": None, "save_s": 2.0, "durable_s": 4.0, "exit_s": 6.0, **moments}
    return Notice(task=0, attempt=0, cause="fault", sent_s=1.0, grace_s=10.0, is_killed=False, **told)


def test_a_budget_counts_each_leg_from_the_last_moment_that_was_seen():
    (row,) = budgets_of((notice(),))

    assert row.legs == (
        ("noticed", "+0.50 s"),
        ("last step done", "–"),
        ("save begun", "+0.50 s"),
        ("durable", "+2.00 s"),
        ("exit", "+2.00 s"),
    )
    assert (row.used, row.left) == (0.5, 0.5)


def test_a_moment_that_was_not_seen_is_said_and_does_not_hide_the_next():
    (row,) = budgets_of((notice(save_s=None, durable_s=None),))

    assert row.legs[2:] == (("save begun", "not seen"), ("durable", "not seen"), ("exit", "+4.50 s"))


@pytest.mark.parametrize(("exit_s", "used"), [(None, 1.0), (99.0, 1.0), (0.9, 0.0)])
def test_the_share_of_the_grace_stays_within_it(exit_s, used):
    (row,) = budgets_of((notice(exit_s=exit_s),))

    assert (row.used, row.left) == (used, 1.0 - used)
