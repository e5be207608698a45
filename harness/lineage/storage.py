"""What storage held, survey by survey, and who changed it.

A survey shows contents, never causes. The cause is read from what else happened since the step was last looked at: a save of it, a fault
that damages storage at rest, or nothing that would explain it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from harness.history import CheckpointSeen, CheckpointsSeen, FaultRequested, SaveBegun, SaveEnded

DAMAGE = frozenset({"flip-byte", "truncate-file", "delete-path", "tear-rename", "add-empty-step", "add-stale-temporary"})
"""Kinds of fault that change storage at rest: what a survey finds altered after one of them, the job did not do."""

Change = Literal["none", "save", "fault", "unexplained"]
"""Why a checkpoint is not what it was when first seen whole: it is; a save of its step, never acknowledged; damage; or nobody knows."""

_STATE_ORDER = {"temporary": 0, "incomplete": 1, "committed": 2}


class StoredStep(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was last seen of a checkpoint on storage.

    Attributes:
        step: Its step; -1 where nothing says it.
        state: ``committed``, ``incomplete`` or ``temporary``.
        digest: Its content as last seen.
        committed_digest: Its content when it was first seen committed, or after its last acknowledged save; empty when it never was.
        is_latest: Whether the layout offers it to the next restore.
        change: Why it is not what it was.
        path: Where, relative to the checkpoint directory.
    """

    step: int
    state: str
    digest: str
    committed_digest: str
    is_latest: bool
    change: Change = "none"
    path: str = ""

    @property
    def is_sound(self) -> bool:
        """Committed, and unchanged since it was."""
        return self.state == "committed" and self.change == "none"

    @property
    def is_good(self) -> bool:
        """Committed, and no fault has touched it: what the job itself has made of it."""
        return self.state == "committed" and self.change != "fault"


class Survey(msgspec.Struct, frozen=True):
    """A survey with what is known of storage after it.

    Attributes:
        seen: As it was recorded.
        looked_at: What it looked at: all there was, or the checkpoint just saved.
        is_after_damage: Whether a fault changed storage at rest since the survey before.
        held: Checkpoints by step as known after it; the same mapping goes on to change with the next survey.
    """

    seen: CheckpointsSeen
    looked_at: tuple[StoredStep, ...]
    is_after_damage: bool
    held: Mapping[int, StoredStep]


StorageEvent = CheckpointsSeen | SaveBegun | SaveEnded | FaultRequested
"""What storage is read from."""

STORAGE_EVENTS = (CheckpointsSeen, SaveBegun, SaveEnded, FaultRequested)
"""The same for ``isinstance``, which looks a tuple through several times faster than a union."""


def newest_sound(held: Mapping[int, StoredStep]) -> int | None:
    """The newest sound step; 0 when there is none; None when something sound is there and nothing says of which step."""
    sound = [stored.step for stored in held.values() if stored.is_sound]
    return max((step for step in sound if step >= 0), default=None if sound else 0)


Look = tuple[CheckpointsSeen, tuple[StoredStep, ...], bool]
"""A survey, what it looked at, and whether a fault came before it."""


def read_looks(events: Iterable[StorageEvent]) -> Iterator[Look]:
    """Find out who changed what; ``events`` are those of one task in order of time."""
    ledger = _Ledger()
    for event in events:
        if isinstance(event, CheckpointsSeen):
            yield ledger.look(event)
        elif isinstance(event, SaveBegun):
            ledger.begun[event.step] = event.attempt
        elif isinstance(event, SaveEnded):
            ledger.ended.add(event.step)
        elif event.fault in DAMAGE:
            ledger.note_damage()


def follow(looks: Iterable[Look]) -> Iterator[Survey]:
    """Go through the surveys of a task with what storage held after each."""
    held: dict[int, StoredStep] = {}
    for seen, looked_at, is_after_damage in looks:
        if seen.is_whole:
            held = {}
        held.update((stored.step, stored) for stored in looked_at)
        yield Survey(seen, looked_at, is_after_damage, held)


@dataclass(slots=True)
class _Ledger:
    """Storage as known so far.

    Attributes:
        begun: Steps whose saves are under way, with the attempt that began them.
        ended: Steps whose saves were acknowledged and that were not looked at since.
        held: Checkpoints by step.
    """

    begun: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    held: dict[int, StoredStep] = field(default_factory=dict)
    _first_digest: dict[int, str] = field(default_factory=dict)
    _seen_since_damage: set[int] | None = None
    _is_damaged: bool = False

    def note_damage(self) -> None:
        """A fault has changed storage at rest."""
        self._is_damaged, self._seen_since_damage = True, set()

    def look(self, seen: CheckpointsSeen) -> Look:
        """Take in what was looked at; of several checkpoints of a step, the most finished one counts."""
        before = self.held
        self.held = {} if seen.is_whole else before
        in_order = sorted(seen.checkpoints, key=lambda checkpoint: _STATE_ORDER[checkpoint.state])
        looked_at = {checkpoint.step: self._store(checkpoint, before.get(checkpoint.step)) for checkpoint in in_order}
        self.held.update(looked_at)
        self._settle(seen)
        is_after_damage, self._is_damaged = self._is_damaged, False
        return seen, tuple(looked_at.values()), is_after_damage

    def _settle(self, seen: CheckpointsSeen) -> None:
        """Forget what this look has explained; no save of an attempt that has ended is under way any more."""
        looked_at = set(self.ended) if seen.is_whole else {checkpoint.step for checkpoint in seen.checkpoints} & self.ended
        self.ended -= looked_at
        is_over = seen.occasion == "attempt-end"
        self.begun = {step: by for step, by in self.begun.items() if step not in looked_at and not (is_over and by <= seen.attempt)}
        if seen.is_whole:
            self._seen_since_damage = None
        elif self._seen_since_damage is not None:
            self._seen_since_damage.update(checkpoint.step for checkpoint in seen.checkpoints)

    def _store(self, checkpoint: CheckpointSeen, before: StoredStep | None) -> StoredStep:
        change = self._change(checkpoint, before)
        if checkpoint.state == "committed" and checkpoint.digest and change == "none":
            self._first_digest[checkpoint.step] = checkpoint.digest
        return StoredStep(
            step=checkpoint.step,
            state=checkpoint.state,
            digest=checkpoint.digest,
            committed_digest=self._first_digest.get(checkpoint.step, ""),
            is_latest=checkpoint.is_latest,
            change=change,
            path=checkpoint.path,
        )

    def _change(self, checkpoint: CheckpointSeen, before: StoredStep | None) -> Change:
        step, first = checkpoint.step, self._first_digest.get(checkpoint.step, "")
        is_touched = self._seen_since_damage is not None and step not in self._seen_since_damage
        if checkpoint.state != "committed":
            return self._change_to_unfinished(checkpoint, before, is_touched=is_touched)
        if step in self.ended or step < 0:
            return "none"
        if before is not None and before.state == "committed" and checkpoint.digest in (before.digest, ""):
            return before.change
        if is_touched and checkpoint.digest != first and step not in self.begun:
            return "fault"
        if first in (checkpoint.digest, ""):
            return "none"
        return "save" if step in self.begun else "unexplained"

    def _change_to_unfinished(self, checkpoint: CheckpointSeen, before: StoredStep | None, *, is_touched: bool) -> Change:
        """Only what stands under a final name, and was whole or was not there before, can have been changed.

        A checkpoint that is gone, as retention removes them, has not become what another save of its step left under another name.
        """
        if before is not None and before.path != checkpoint.path:
            before = None
        if checkpoint.state == "temporary" or (before is not None and before.state != "committed"):
            return before.change if before is not None else "none"
        if is_touched:
            return "fault"
        if before is None:
            return "none"
        return "save" if checkpoint.step in self.begun else "unexplained"
