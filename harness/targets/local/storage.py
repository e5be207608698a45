"""Storage rules as a platform's storage has them: in force for a task, whichever attempt of it runs."""

import msgspec

from harness.capabilities import StorageRule
from harness.targets.local.storage_rules import StorageRules


class StorageInForce:
    """The rule of each task, handed on from an attempt to the next one, and the supervisors that have kept it."""

    def __init__(self) -> None:
        self._rule: dict[int, StorageRule] = {}
        self._keepers: dict[int, list[StorageRules]] = {}
        self._running: dict[int, StorageRules] = {}

    def rule_for(self, task: int) -> StorageRule | None:
        """The rule an attempt starts under: what is left of the one in force."""
        rule = self._rule.get(task)
        if rule is None or not rule.operations:
            return rule
        left = rule.operations - self.hits(task)
        return msgspec.structs.replace(rule, operations=left) if left > 0 else None

    def note(self, task: int, rules: StorageRules | None) -> None:
        """A new attempt of the task runs, under a supervisor or not."""
        if rules is None:
            self._running.pop(task, None)
            return
        self._running[task] = rules
        self._keepers.setdefault(task, []).append(rules)

    def set(self, task: int, rule: StorageRule) -> None:
        """Put a rule in force.

        Raises:
            LookupError: When no attempt runs under a supervisor.
        """
        if task not in self._running:
            raise LookupError(f"no attempt of task {task} runs under the supervisor: it needs Launch.interpose_storage")
        self._running[task].set(rule)
        self._rule[task] = rule
        self._keepers[task] = [self._running[task]]

    def clear(self, task: int) -> None:
        """Take the rule back."""
        if self._rule.pop(task, None) is None:
            return
        try:
            self._running[task].clear()
        except LookupError:
            return  # the attempt has ended, and its rule with it

    def hits(self, task: int) -> int:
        """How many operations the rule in force, or the last one, has hit, in all attempts it was in force for."""
        return sum(rules.hits() for rules in self._keepers.get(task, []))
