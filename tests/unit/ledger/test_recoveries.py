"""From a death to the first step that had not been done before."""

import pytest

from harness.history import SigtermSeen
from harness.ledger import Ledger, keep
from tests.unit.checkers.builders import Run, resumed


def kept(run: Run) -> Ledger:
    ledger = keep(run.evidence().lineage, 0)
    assert ledger is not None
    return ledger


def lean() -> Run:
    return Run(is_surveyed=False).attempt(0).boot().start(0).step(1).save(1).step(2)


def test_a_recovery_is_told_in_parts_that_add_up():
    run = lean().request("1-kill", "kill").exit(signal=9, cause="fault")
    run.attempt(1).boot().restore(1).start(1).step(2).step(3).done().exit(0)
    (recovery,) = kept(run).recoveries
    assert recovery.attempt == 0
    assert recovery.lost_steps == 1
    assert recovery.parts == pytest.approx({"detect": 0.1, "requeue": 0.1, "provision": 0.1, "start": 0.2, "restore": 0.1, "replay": 0.2})
    assert recovery.seconds == pytest.approx(sum(recovery.parts.values()))
    assert recovery.restart_s == pytest.approx(0.6)


def test_a_recovery_is_over_with_the_first_step_that_is_new_to_the_task():
    run = lean().step(3).exit(signal=9).attempt(1).begin(1).step(2).exit(signal=9).attempt(2).begin(1).step(2).step(3)
    ends_s = run.t_s + 0.1
    ledger = kept(run.step(4).done().exit(0))
    assert [recovery.recovered_s for recovery in ledger.recoveries] == [ends_s, ends_s]
    assert [recovery.lost_steps for recovery in ledger.recoveries] == [2, 1]
    assert ledger.interruptions == 2


def test_a_death_before_training_is_recovered_from_too():
    run = Run(is_surveyed=False).attempt(0).boot().exit(signal=9).attempt(1).boot().start(0).step(1).done().exit(0)
    (recovery,) = kept(run).recoveries
    assert recovery.seconds == pytest.approx(0.4)
    assert recovery.lost_steps == 0


def test_a_job_that_was_complete_but_for_its_exit_has_recovered_when_it_says_so():
    run = lean().save(2).exit(signal=9).attempt(1).boot().restore(2).start(2)
    done_s = run.t_s + 0.1
    (recovery,) = kept(run.done().exit(0)).recoveries
    assert (recovery.recovered_s, recovery.lost_steps) == (done_s, 0)


def test_a_notice_is_when_it_began_and_a_fault_that_was_healed_is_not():
    run = lean().request("0-pause", "pause").heal("0-pause").step(3)
    sent_s = run.t_s + 0.1
    run.request("1-terminate", "terminate").here(SigtermSeen).save(3).exit(143, cause="fault")
    run.attempt(1).begin(3).step(4).done().exit(0)
    (recovery,) = kept(run).recoveries
    assert recovery.fault_s == sent_s
    assert recovery.parts["detect"] == pytest.approx(0.4)


def test_a_life_that_another_one_follows_inside_its_attempt_is_a_death():
    run = lean()
    hit_s = run.t_s + 0.1
    run.request("1-kill", "kill-ray-process").begin(1).step(2).step(3).done().exit(0)
    (recovery,) = kept(run).recoveries
    assert recovery.fault_s == hit_s
    assert recovery.parts["detect"] == pytest.approx(0.0)
    assert recovery.parts["requeue"] == pytest.approx(0.1)


def test_deaths_that_nothing_new_followed_are_kept_apart():
    run = lean().request("1-kill", "kill").exit(signal=9, cause="fault").attempt(1).begin(1).exit(1)
    ledger = kept(run)
    assert ledger.recoveries == ()
    assert ledger.unrecovered_s == pytest.approx((1.0, 1.7))


@pytest.mark.parametrize("end", ["still running", "stopped by us", "done"])
def test_the_last_attempt_is_no_death_unless_it_failed(end: str):
    run = resumed()
    assert kept(run).unrecovered_s == ()
    last = lean()
    if end == "stopped by us":
        last.exit(signal=9, cause="stop")
    elif end == "done":
        last.exit(0)
    assert kept(last).unrecovered_s == ()
