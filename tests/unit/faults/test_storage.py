"""Failing and slow storage count by the operations that were hit."""

import pytest

from harness.capabilities import StorageRule
from harness.errors import HealError, InjectionError
from harness.scenario.faults import FailWrites, SlowWrites
from harness.undo import NothingToUndo


@pytest.mark.parametrize(
    ("fault", "rule", "heal_after_s"),
    [
        (FailWrites(error="EIO", duration_s=3.0), StorageRule(error="EIO"), 3.0),
        (FailWrites(error="ENOSPC", operations=2), StorageRule(error="ENOSPC", operations=2), None),
        (SlowWrites(delay_s=0.2, duration_s=4.0), StorageRule(delay_s=0.2), 4.0),
    ],
)
def test_a_fault_is_a_rule(make, target, fault, rule, heal_after_s) -> None:
    active = make(fault)
    active.inject()

    assert target.asked == [("set_storage_rule", 1, rule)]
    assert active.heal_after_s == heal_after_s
    assert isinstance(active.undo(), NothingToUndo)


def test_it_is_seen_when_an_operation_was_hit(make, target) -> None:
    fault = make(FailWrites(error="ENOSPC"))
    fault.inject()

    assert fault.observe(()) == ""
    target.hits = 3
    assert fault.observe(()) == "writing operations that failed with ENOSPC: 3"


def test_it_is_healed_by_taking_the_rule_back(make, target) -> None:
    fault = make(SlowWrites(delay_s=0.5))
    fault.inject()
    target.hits = 2

    assert fault.heal() == "the rule was taken back; writing operations that were held for 0.5 s: 2"
    assert target.asked[-1] == ("clear_storage_rule", 1)


def test_an_attempt_without_a_supervisor_is_said(make, target) -> None:
    fault = make(FailWrites())
    target.absent = "no attempt of task 1 runs under the supervisor"

    with pytest.raises(InjectionError, match="under the supervisor"):
        fault.inject()
    with pytest.raises(HealError, match="under the supervisor"):
        fault.heal()
