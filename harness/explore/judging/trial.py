"""One state tried: a copy is made of it, the job's own recovery is let loose on the copy, and what it did is told.

A worker makes one ``Trials`` and tries one state after the other; it must adopt orphans (``subreaper``), so that nothing outlives a state.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import HarnessError
from harness.explore.blobs import BlobStore
from harness.explore.judgement import Recovery
from harness.explore.judging.company import Company
from harness.explore.judging.copies import copy_tree, describe, digest_of_file, remove_tree
from harness.explore.judging.ended import Command, Ended, run_to_end
from harness.explore.judging.observation import PatternListener, observe, read_events
from harness.explore.judging.place import Place
from harness.explore.judging.room import require_room, speaks_of_no_room
from harness.explore.judging.warm import WarmChild, WarmChildError
from harness.explore.pieces import state_name
from harness.explore.recipe import Recipe, StateTask, Tried
from harness.history import JobEvent

INSPECTION_FAILED = -1

INSPECT_S_MAX = 60.0
"""It reads one checkpoint; what it imports for that takes some seconds, more where all workers begin at once."""

COMPARED = frozenset(4**power for power in range(12))
"""Which reuses of warm processes are compared with a new one: the first at once, since what a job keeps in memory shows there, and the
later ones ever more rarely, since a new one costs an import."""

FORGETFUL = "no process of this job may serve a second state"

DISTURBED = "recoveries that ran beside one another got in each other's way, so they are tried one at a time; explore with --jobs 1"


class InspectionHangsError(HarnessError):
    """``inspect`` does not end, so nothing is known of the state."""

    def __init__(self, *, command: Sequence[str]) -> None:
        self.command = tuple(command)
        super().__init__(f"`{' '.join(command)}`, which is to inspect its checkpoints, did not end within {INSPECT_S_MAX:g} s")


class _Answer(msgspec.Struct):
    """What ``inspect`` prints: one JSON object, as the last line of its standard output."""

    step: int


class Trials:
    """Recoveries by one recipe in one place. There is one of these in a process at a time: it ends all other descendants.

    Attributes:
        replaced: Why a warm process did not serve the next state, or states are tried alone: a sentence for each time.
    """

    def __init__(self, recipe: Recipe, place: Place, *, blobs: Path, clock: Clock, company: Company | None = None) -> None:
        self.replaced: list[str] = []
        self._recipe, self._place, self._blobs, self._clock = recipe, place, BlobStore(blobs), clock
        self._child: WarmChild | None = None
        self._reused, self._is_forgetful = 0, False
        self._company = company
        self._is_alone = False
        self._confirmed: set[str] = set()

    def try_state(self, task: StateTask) -> Tried:
        """Try recovery from a state.

        What fails beside other recoveries is tried once more alone, once for each way to fail, and that counts: they may share a port, or a
        file. Where it then comes through, this worker tries all others alone.
        """
        try:
            return self._try_warm(task) if self._company is None else self._try_in(self._company, task)
        except (HarnessError, OSError, WarmChildError) as error:
            self._drop_child(str(error))
            return Tried(state=task.state, lost=str(error) or type(error).__name__)

    def _try_in(self, company: Company, task: StateTask) -> Tried:
        if self._is_alone:
            with company.alone():
                return self._try_warm(task)
        with company.beside_others():
            tried = self._try_warm(task)
        way = _way(tried)
        if _came_through(tried) or way in self._confirmed:
            return tried
        with company.alone():
            alone = self._try_warm(task)
        if _way(alone) == way:
            self._confirmed.add(way)
        else:
            self._is_alone = True
            self.replaced.append(DISTURBED)
        return alone

    def _try_warm(self, task: StateTask) -> Tried:
        """Try it, where there is a warm process in that.

        What fails in a warm process that has served other states is tried once more in a new one, and that counts: what an earlier state
        left in its memory may have been why. So is now and then what comes through; where both do not do the same, no process of the job
        serves a second state from then on.
        """
        if task.fresh or self._is_forgetful:
            self._drop_child("a state that wants a new one" if task.fresh else FORGETFUL)
        was_used = self._child is not None and self._child.served > 0
        tried = self._try(task)
        self._reused += was_used
        if was_used and (not _came_through(tried) or self._reused in COMPARED):
            return self._compare(task, tried)
        return tried

    def close(self) -> None:
        """End the warm process."""
        if self._child is not None:
            child, self._child = self._child, None
            child.end()

    def _compare(self, task: StateTask, warm: Tried) -> Tried:
        """Try it again in a new process; its answer counts."""
        self.close()
        new = self._try(task)
        if _told(warm) != _told(new):
            self._is_forgetful = True
            self.replaced.append("a used one did not do what a new one does")
        return new

    def _try(self, task: StateTask) -> Tried:
        """Try it, and once more where a recovery only says that there was no room: there may be some now, and that counts."""
        tried = self._try_once(task)
        failed = [each for each in (tried.first, tried.second) if each is not None and each.exit_code != 0 and not each.timed_out]
        return self._try_once(task) if any(speaks_of_no_room(each.detail) for each in failed) else tried

    def _try_once(self, task: StateTask) -> Tried:
        place = self._place
        place.clear()
        self._blobs.materialise(task.pieces, place.checkpoints, changed=task.changed, links=task.links)
        first = self._recover(task.attempt, self._inspect())
        self._keep(task.keeps[:1])
        second = None
        if task.again:
            place.clear_surroundings()
            second = self._recover(task.attempt + 1, first.inspected_after)
            self._keep(task.keeps[1:2])
        return Tried(state=task.state, first=first, second=second)

    def _keep(self, targets: Sequence[str]) -> None:
        """Copy what a recovery has left."""
        for target in targets:
            remove_tree(Path(target))  # a state may be tried twice, and the last time counts
            copy_tree(self._place.checkpoints, Path(target))

    def _recover(self, attempt: int, inspected_before: int | None) -> Recovery:
        listener = PatternListener(self._recipe.patterns)
        ended = self._run(attempt, None if self._recipe.speaks_protocol else listener)
        require_room(self._place.checkpoints, self._place.scratch, said=ended.said, came_through=ended.is_good)
        events: list[JobEvent] = listener.events
        unheard = f"{listener.lost} events of its output, over the limit" if listener.lost else ""
        if self._recipe.speaks_protocol:
            events, unheard = read_events(self._place.events, attempt=attempt, now_s=self._clock.monotonic_s())
        pieces = describe(self._place.checkpoints)
        result = self._recipe.result and digest_of_file(Path(self._place.fill(self._recipe.result)))
        seen = observe(ended, events, unheard=unheard)
        return msgspec.structs.replace(
            seen,
            detail=seen.detail.replace(str(self._place.checkpoints), "{checkpoint_dir}"),
            result=result,
            inspected_before=inspected_before,
            inspected_after=self._inspect(),
            left=tuple(piece.path + "/" * (piece.kind == "directory") for piece in pieces),
            tree_digest=state_name(pieces),
        )

    def _run(self, attempt: int, listener: PatternListener | None) -> Ended:
        place, recipe = self._place, self._recipe
        environment, hear = place.environment(attempt), None if listener is None else listener.hear
        if not recipe.recover:
            words = [place.fill(word) for word in recipe.command]
            command = Command(words=words, directory=Path(recipe.directory), environment=environment, marks=place.marks)
            return run_to_end(command, timeout_s=recipe.timeout_s, clock=self._clock, hear=hear)
        ended = self._warm().recover(environment, checkpoints=place.checkpoints, timeout_s=recipe.timeout_s, hear=hear)
        if self._warm().stale:
            self._drop_child("; ".join(self._warm().stale))
        return ended

    def _warm(self) -> WarmChild:
        if self._child is None:
            environment, directory = self._place.environment(1), Path(self._recipe.directory)
            self._child = WarmChild(
                self._recipe.recover, directory=directory, environment=environment, marks=self._place.marks, clock=self._clock
            )
        return self._child

    def _drop_child(self, why: str) -> None:
        if self._child is not None:
            self.replaced.append(why)
            self.close()

    def _inspect(self) -> int | None:
        """The step that ``inspect`` finds in a copy; -1 when it fails, None when nobody asks.

        Raises:
            InspectionHangsError: When it does not end.
        """
        if not self._recipe.inspect:
            return None
        place = self._place
        copy_tree(place.checkpoints, place.inspected)
        words = [place.fill(word, checkpoints=place.inspected) for word in self._recipe.inspect]
        environment = place.inspection_environment()
        command = Command(words=words, directory=Path(self._recipe.directory), environment=environment, marks=place.marks)
        keep = self._child.pid if self._child is not None else 0
        ended = run_to_end(command, timeout_s=INSPECT_S_MAX, clock=self._clock, keep=keep)
        remove_tree(place.inspected)
        if ended.timed_out:
            raise InspectionHangsError(command=self._recipe.inspect)
        lines = ended.printed.splitlines()
        try:
            return msgspec.json.decode(lines[-1], type=_Answer).step if ended.is_good and lines else INSPECTION_FAILED
        except (msgspec.MsgspecError, RecursionError):
            return INSPECTION_FAILED


def _came_through(tried: Tried) -> bool:
    return all(recovery.exit_code == 0 for recovery in (tried.first, tried.second) if recovery is not None)


def _way(tried: Tried) -> str:
    """How it failed, whatever the numbers in its words are."""
    failed = [recovery for recovery in (tried.first, tried.second) if recovery is not None and recovery.exit_code != 0]
    return "; ".join(f"{recovery.exit_code} {recovery.signal} {re.sub('[0-9]+', '#', recovery.detail)}" for recovery in failed)


def _told(tried: Tried) -> list[Recovery | None]:
    """What must be alike whenever a state is tried: neither time nor names of files, which may be random."""
    plain = {"seconds": 0.0, "detail": "", "left": (), "tree_digest": ""}
    return [None if recovery is None else msgspec.structs.replace(recovery, **plain) for recovery in (tried.first, tried.second)]
