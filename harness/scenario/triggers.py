"""The moment of a fault, as data."""

import re
from typing import Literal

import msgspec

from harness.scenario.rules import positive, regular_expression, require

EVENT_NAME = re.compile(r"[a-z][a-z0-9_.-]*")

EVENT_WANTED = "an event of the protocol or a marker, like save.begin"


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
        require(bool(EVENT_NAME.fullmatch(self.event)), "event", self.event, EVENT_WANTED)
        require(self.nth >= 1, "nth", self.nth, "occurrences are counted from 1")
        require(self.rank >= 0, "rank", self.rank, "ranks are counted from 0")


OperationKind = Literal[
    "create", "open", "write", "truncate", "sync", "close", "mkdir", "rename", "move-in", "move-out", "link", "symlink", "unlink", "rmdir"
]
"""What a call does to the checkpoint directory, as the operation log says it; ``move-in`` and ``move-out`` rename across its border."""


class AtOperation(msgspec.Struct, frozen=True, kw_only=True, tag="at-operation", tag_field="type", forbid_unknown_fields=True):
    """When a rank does an operation on a class of paths in the checkpoint directory for the nth time since a marker.

    Whoever does it is held, before or after it is done, until the fault has acted: the address of a kill point, the same in the next run.

    Attributes:
        operation: What is done, as the operation log calls it.
        path: The path's class: relative to the checkpoint directory, numbers and random parts are ``*``, as in a kill point.
        nth: Counted from 1, since the marker.
        after: An event of the protocol, or a marker, that the rank itself says, from which on it is counted; empty: from the start of the
            attempt.
        after_nth: Which occurrence of that in the attempt, from 1.
        when: ``before`` or ``after`` it is done.
        rank: Whose; what another rank says does not count.
    """

    operation: OperationKind
    path: str
    nth: int = 1
    after: str = ""
    after_nth: int = 1
    when: Literal["before", "after"] = "after"
    rank: int = 0

    def __post_init__(self) -> None:
        parts = self.path.split("/")
        wanted = "a path relative to the checkpoint directory, numbers and random parts as *, like step_*/data"
        require(self.path == "." or all(part not in ("", ".", "..") for part in parts), "path", self.path, wanted)
        require(not self.after or bool(EVENT_NAME.fullmatch(self.after)), "after", self.after, f"{EVENT_WANTED}, or nothing")
        require(self.nth >= 1, "nth", self.nth, "operations are counted from 1")
        require(self.after_nth >= 1, "after_nth", self.after_nth, "occurrences are counted from 1")
        require(bool(self.after) or self.after_nth == 1, "after_nth", self.after_nth, "1 where no marker is named in `after`")
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


Trigger = AtStep | AtMarker | AtOperation | OnLog | AfterSeconds | OnEffect | AtSubmission | OnCondition
