"""A crash state: what storage can hold when a run dies at one moment, under one storage model and one scope."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from harness.explore.content import Content

Model = Literal["posix", "posix-weak", "gcsfuse-flat", "gcsfuse-hns", "object-store"]
"""What storage promises."""

Scope = Literal["process", "sidecar", "node"]
"""How much dies, of the scopes of ``harness.scenario.cells.DeathScope``: those that storage can tell apart."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a crash state."""

    content: Content


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory of a crash state."""


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link of a crash state."""

    target: str


Thing = File | Directory | Link

Tree = Mapping[str, Thing]
"""All that is below the checkpoint directory, by path; every parent of a path is in it. The directory itself is not."""


class KillPoint(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The address of a moment that is the same in the next run of the job: never a raw index, never seconds.

    Attributes:
        marker: The event of the protocol, or the marker, that the job said last; ``start`` before the first.
        marker_nth: Its how manieth occurrence that was, from 1; 0 with ``start``.
        operation: Kind of the operation (``create``, ``write``, ``rename``, ...) after which, or in which, it dies; empty: right after the
            marker, before any operation.
        path_class: Of the operation's path: numbers and random parts are ``*``.
        nth: Of this operation on this class since the marker, from 1.
        part: Empty: after the operation. Else the part of it that was done, like ``object 3 of 14``.
    """

    marker: str
    marker_nth: int
    operation: str
    path_class: str
    nth: int
    part: str = ""


class Cause(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Why the state is not simply all that was done.

    ``prefix``: it is; ``omitted``: ``operation`` was not durable and is missing although ``at`` is there; ``unsynced``: so is all else that
    was not durable; ``torn``: of ``operation`` only a part was written (``part``); ``truncated``: the open file was published as far as it
    was written; ``vanished``: open files were never published; ``renaming``: a directory rename stopped half way.

    Attributes:
        operation: Index of the operation that is missing, torn or half done; 0 with ``prefix``.
        part: What of it there is: ``size``, ``zeros``, ``half``, ``empty``, ``half of its pages`` and its like, ``object 3 of 14`` or
            ``object 3 of 14 copied``; of several files that came in at once, which one; where other operations are missing too, ``and``
            the index of each.
    """

    kind: Literal["prefix", "omitted", "unsynced", "torn", "truncated", "vanished", "renaming"] = "prefix"
    operation: int = 0
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashState:
    """What is found after a crash.

    Attributes:
        model: The storage model.
        scope: How much died.
        at: Index of the last entry of the log that was executed; 0: none.
        cause: What makes it differ from a prefix.
        point: The same as an address that survives into another run.
        tree: What is there.
        assumed: Rows of the model behind it that nobody has confirmed on the real thing; empty: confirmed or the kernel's own promise.
    """

    model: Model
    scope: Scope
    at: int
    cause: Cause
    point: KillPoint
    tree: Tree
    assumed: tuple[str, ...] = ()
