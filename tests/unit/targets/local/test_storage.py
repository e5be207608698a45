"""A storage rule outlives the attempt it was set in."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.capabilities import StorageRule
from harness.targets.local.storage import StorageInForce


@dataclass
class Supervisor:
    """What an attempt's supervisor was told, and how often it has hit."""

    hit: int = 0
    is_gone: bool = False
    told: list[Any] = field(default_factory=list)

    def set(self, rule: StorageRule) -> None:
        self.hit = 0
        self.told.append(rule)

    def clear(self) -> None:
        if self.is_gone:
            raise LookupError
        self.told.append(None)

    def hits(self) -> int:
        return self.hit


def test_the_next_attempt_starts_under_what_is_left_of_the_rule():
    storage, first, second = StorageInForce(), Supervisor(), Supervisor()
    storage.note(0, first)
    storage.set(0, StorageRule(error="EIO", operations=3))
    first.hit = 2

    assert storage.rule_for(0) == StorageRule(error="EIO", operations=1)
    storage.note(0, second)
    second.hit = 1
    assert storage.rule_for(0) is None
    assert storage.hits(0) == 3


def test_a_rule_without_an_end_goes_on_until_it_is_taken_back():
    storage, first = StorageInForce(), Supervisor()
    storage.note(0, first)
    rule = StorageRule(delay_s=0.1)
    storage.set(0, rule)
    first.hit, first.is_gone = 50, True

    assert storage.rule_for(0) == rule
    storage.clear(0)
    assert storage.rule_for(0) is None
    assert storage.hits(0) == 50


def test_a_new_rule_counts_from_zero():
    storage, first, second = StorageInForce(), Supervisor(), Supervisor()
    storage.note(0, first)
    storage.set(0, StorageRule(error="EIO"))
    first.hit = 4
    storage.note(0, second)

    storage.set(0, StorageRule(error="ENOSPC"))

    assert storage.hits(0) == 0
    assert second.told == [StorageRule(error="ENOSPC")]


def test_tasks_have_rules_of_their_own():
    storage = StorageInForce()
    storage.note(0, Supervisor())
    storage.set(0, StorageRule(error="EIO"))

    assert storage.rule_for(1) is None
    with pytest.raises(LookupError):
        storage.set(1, StorageRule(error="EIO"))


def test_an_attempt_without_a_supervisor_takes_no_rule():
    storage = StorageInForce()
    storage.note(0, None)

    with pytest.raises(LookupError):
        storage.set(0, StorageRule(error="EIO"))
