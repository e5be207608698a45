"""The moment of a fault, as data."""

import re
from typing import Literal

import msgspec

from harness.scenario.rules import positive, regular_expression, require


class AtStep(msgspec.Struct, frozen=True, kw_only=True, tag="at-step", tag_field="type", forbid_unknown_fields=True):
    """When a rank has done step ``step`` in the attempt.

    Exact where the job keeps the barrier of the protocol; else as soon as that step, or a later one, is seen.
    """

    step: int
    rank: int = 0

    def __post_init__(self) -> None:
        require(self.step >= 1, "step", self.step, "steps are counted from 1")
        require(self.rank >= 0, "rank", self.rank, "ranks are counted from 0")


class AtMarker(msgspec.Struct, frozen=True, kw_only=True, tag="at-marker", tag_field="type", forbid_unknown_fields=True):
    """At the nth occurrence, in the attempt, of an event of the protocol or of a marker of the job's own.

    ``before``: the job is about to say it; ``after``: it has said it and has done nothing since.
    """

    event: str
    nth: int = 1
    when: Literal["before", "after"] = "after"
    rank: int = 0

    def __post_init__(self) -> None:
        require(
            bool(re.fullmatch(r"[a-z][a-z0-9_.-]*", self.event)),
            "event",
            self.event,
            "an event of the protocol or a marker, like save.begin",
        )
        require(self.nth >= 1, "nth", self.nth, "occurrences are counted from 1")
        require(self.rank >= 0, "rank", self.rank, "ranks are counted from 0")


class OnLog(msgspec.Struct, frozen=True, kw_only=True, tag="on-log", tag_field="type", forbid_unknown_fields=True):
    """When a line of the attempt's log matches a regular expression, in its first 4,096 characters, for the nth time."""

    pattern: str
    nth: int = 1

    def __post_init__(self) -> None:
        require(self.nth >= 1, "nth", self.nth, "occurrences are counted from 1")
        regular_expression("pattern", self.pattern)


class AfterSeconds(msgspec.Struct, frozen=True, kw_only=True, tag="after-seconds", tag_field="type", forbid_unknown_fields=True):
    """So long after the attempt started. The weakest address: it moves with the load of the machine."""

    seconds: float

    def __post_init__(self) -> None:
        positive("seconds", self.seconds, zero_allowed=True)


class OnEffect(msgspec.Struct, frozen=True, kw_only=True, tag="on-effect", tag_field="type", forbid_unknown_fields=True):
    """As soon as another injection's effect was observed, before the platform's next move: so storage is damaged between two attempts."""

    of: str

    def __post_init__(self) -> None:
        require(bool(self.of), "of", self.of, "the name of another injection")


class AtSubmission(msgspec.Struct, frozen=True, kw_only=True, tag="at-submission", tag_field="type", forbid_unknown_fields=True):
    """Before the job is submitted to the cluster: quota is lowered, capacity is taken, an image is missing from the start."""


ConditionOf = Literal["workload", "provisioning-request", "submission"]


class OnCondition(msgspec.Struct, frozen=True, kw_only=True, tag="on-condition", tag_field="type", forbid_unknown_fields=True):
    """When a condition of the victim's object in the cluster is seen to become ``status`` for the nth time.

    Attributes:
        of: ``workload`` of Kueue, its ``provisioning-request``, or the ``submission`` (its status then stands for a condition).
        condition: Its type, like ``Admitted``, ``Provisioned``, ``Evicted``; of a submission the status, like ``Running``.
        status: ``True`` or ``False``.
        reason: Its reason; empty: any.
        nth: Counted from 1, in the whole run.
    """

    of: ConditionOf
    condition: str
    status: Literal["True", "False"] = "True"
    reason: str = ""
    nth: int = 1

    def __post_init__(self) -> None:
        require(bool(re.fullmatch(r"[A-Za-z]+", self.condition)), "condition", self.condition, "the type of a condition, like Admitted")
        require(self.nth >= 1, "nth", self.nth, "occurrences are counted from 1")


Trigger = AtStep | AtMarker | OnLog | AfterSeconds | OnEffect | AtSubmission | OnCondition
