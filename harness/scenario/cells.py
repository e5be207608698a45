"""What of a job's life was hit, as coverage counts it: in which phase, how much of it, whom, and in which attempt."""

from typing import Literal, get_args

import msgspec

from harness.scenario.cluster_faults import (
    BreakNode,
    DeletePods,
    DrainNode,
    EvictPods,
    InterruptNode,
    LoseNode,
    LosePool,
    RevokeCapacity,
)
from harness.scenario.faults import EndGrace, ExpireTimeout, Kill, KillRayProcess, Maintenance, Terminate

JobPhase = Literal["init", "restore", "step", "save", "commit", "garbage-collection", "handler", "emergency-save", "finish"]
"""``init``: before the first step, but for the recovery; ``handler``: from the notice of a SIGTERM on, but for the save that follows it."""

DeathScope = Literal["process", "sidecar", "pod", "node", "pool"]
"""How much dies, the least first: the job's processes, all of them or those of one rank, as the victim says; the daemon of the mount that
they write through; the pod with both; its machine; all machines of its kind."""

HitScope = Literal["notice", DeathScope]
"""``notice``: nothing dies, but the job is asked to go. What ends it then counts where it ends it."""

Whom = Literal["rank-0", "other-rank", "all"]

AttemptClass = Literal["first", "second", "later"]
"""What is known to be different: nothing to restore, a recovery, a recovery from a recovery."""

PHASES: tuple[JobPhase, ...] = get_args(JobPhase)
DEATH_SCOPES: tuple[DeathScope, ...] = get_args(DeathScope)
HIT_SCOPES: tuple[HitScope, ...] = get_args(HitScope)
VICTIMS: tuple[Whom, ...] = get_args(Whom)
ATTEMPT_CLASSES: tuple[AttemptClass, ...] = get_args(AttemptClass)


class Cell(msgspec.Struct, frozen=True, order=True):
    """One kind of moment."""

    phase: JobPhase
    scope: HitScope
    victim: Whom
    attempt: AttemptClass

    def __str__(self) -> str:
        """For a line of text."""
        return f"{self.phase} x {self.scope} x {self.victim} x {self.attempt} attempt"


_HITS: tuple[tuple[HitScope, tuple[type[msgspec.Struct], ...]], ...] = (
    ("notice", (Terminate, Maintenance, ExpireTimeout)),
    ("process", (Kill, EndGrace, KillRayProcess)),
    ("pod", (DeletePods, EvictPods)),
    ("node", (DrainNode, InterruptNode, LoseNode, BreakNode)),
    ("pool", (LosePool, RevokeCapacity)),
)
_SCOPES = {str(kind.__struct_config__.tag): scope for scope, kinds in _HITS for kind in kinds}


def hit_scope(fault: str) -> HitScope | None:
    """How much a fault hits, by its kind; None: it ends nothing, at least not then, as an attempt that is only lost from sight goes on."""
    return _SCOPES.get(fault)


def whom(rank: int) -> Whom:
    """By rank, -1 for all."""
    return "all" if rank < 0 else "rank-0" if rank == 0 else "other-rank"


def attempt_class(attempt: int) -> AttemptClass:
    """By its number, from 0."""
    return ATTEMPT_CLASSES[min(attempt, len(ATTEMPT_CLASSES) - 1)]
