"""A job that trains, saves and collects as Hypothesis likes, dies in any state that a storage model says, and must come back each time."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from harness.explore.enumeration import Enumeration, Found
from harness.explore.judgement import Judgement, Recovery
from harness.explore.judging.criteria import judge
from harness.explore.judging.expected import Expected, expect
from harness.explore.judging.standing import made_by_saves
from harness.explore.models import MODELS
from harness.explore.pieces import pieces_of
from harness.explore.recipe import Recipe, Tried
from harness.explore.relapses import expected_in
from harness.explore.replay import Replay
from harness.explore.states import Model, Scope
from tests.explore_model.disk import DataInMemory, Disk, Files, new_recording, replay_in_memory
from tests.explore_model.job import EVERY, LAST, Job, Kind, recover
from tests.unit.explore.recordings import ROOT

STATES_MAX = 400
"""Looked at of one crash: all of what a right checkpointer leaves in such a short run."""

JUDGED_MAX = 6
"""Judged of one crash; the machine goes on from the first."""


PROTOCOL = Recipe(command=())
"""Of a job that speaks the protocol."""


class Surface(NamedTuple):
    """A storage model in one scope."""

    model: Model
    scope: Scope

    def __str__(self) -> str:
        return f"{self.model} × {self.scope}"


SURFACES = tuple(Surface(model.name, scope) for model in MODELS.values() for scope in model.scopes)
"""All of them."""

DISTINCT = tuple(surface for surface in SURFACES if surface.scope not in MODELS[surface.model].same)
"""Those that are not the same as another one whatever the job does."""


class BrokenPromiseError(AssertionError):
    """Recovery from a state broke a promise, or could not be judged."""

    def __init__(self, surface: Surface, found: str, judgement: Judgement) -> None:
        super().__init__(f"{surface}, {found}: {judgement.broken}")
        self.promises = frozenset(broken.promise for broken in judgement.broken)


@functools.cache
def uninterrupted(kind: Kind) -> tuple[Recovery, Recovery]:
    """The golden run, and the one after it."""
    disk = Disk()
    return recover(disk, kind), recover(disk, kind)


class CrashMachine(RuleBasedStateMachine):
    """See the module. Subclasses say which checkpointer on which storage.

    Attributes:
        kind: The checkpointer.
        surfaces: One of them is drawn for each example.
        checked: How often each promise was checked.
    """

    kind: Kind
    surfaces: Sequence[Surface] = SURFACES
    checked: Counter[str]

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.surface = data.draw(st.sampled_from(self.surfaces), label="surface")
        self.before, self.generation = None, 0
        self._run({})

    @precondition(lambda self: self._is_running() and self.job.step < LAST)
    @rule(steps=st.integers(1, EVERY))
    def train(self, steps: int) -> None:
        for _ in range(min(steps, LAST - self.job.step)):
            self._live(self.job.train)

    @precondition(lambda self: self._is_running() and self.job.step > 0)
    @rule()
    def save(self) -> None:
        self._live(self.job.save)

    @precondition(lambda self: self._is_running() and self.job.step > 0)
    @rule()
    def save_in_an_emergency(self) -> None:
        """The job is told to go: it saves once more, and trains no further."""
        self._live(functools.partial(self.job.save, is_emergency=True))
        self.is_over = True

    @precondition(lambda self: self._is_running())
    @rule()
    def collect_garbage(self) -> None:
        self._live(self.job.checkpointer.collect)

    @precondition(lambda self: self._is_running())
    @rule()
    def finish(self) -> None:
        self._live(self.job.finish)
        self.is_over = True

    @precondition(lambda self: self.files is None)
    @rule(pick=st.integers(0, STATES_MAX - 1))
    def crash(self, pick: int) -> None:
        """It dies somewhere in all that it has done since it was started, and recovers from some of the states that this can leave."""
        self._die(pick)

    @precondition(lambda self: self.files is not None)
    @rule()
    def recover(self) -> None:
        self._run(self.files)

    @precondition(lambda self: self.files is not None)
    @rule(pick=st.integers(0, STATES_MAX - 1))
    def crash_in_recovery(self, pick: int) -> None:
        self._run(self.files)
        self._die(pick)

    def _is_running(self) -> bool:
        return self.files is None and not self.is_over

    def _run(self, files: Files) -> None:
        """Start the job on what there is, recorded."""
        self.recording = new_recording()
        self.job = Job(Disk(files, self.recording), self.kind)
        self.files, self.is_over = None, False
        self.generation += 1
        self._live(self.job.start)

    def _live(self, act: Callable[[], None]) -> None:
        """What fails while nobody disturbs it fails the promise to recover."""
        try:
            act()
        except (OSError, ValueError) as error:
            failed = Tried(state="live", first=Recovery(exit_code=1, detail=repr(error)))
            with DataInMemory(bytes(self.recording.data)) as data:
                expected = self._expected(replay_in_memory(self.recording), data)
            self._hold(judge(failed, expected, at=len(self.recording.entries)), "live")

    def _die(self, pick: int) -> None:
        replayed = replay_in_memory(self.recording)
        with DataInMemory(bytes(self.recording.data)) as data:
            expected = self._expected(replayed, data)
            enumeration = Enumeration(replayed, data, model=self.surface.model, scope=self.surface.scope)
            found = list(itertools.islice(enumeration, STATES_MAX))
            stride = max(1, len(found) // JUDGED_MAX)
            chosen = [found[(pick + stride * number) % len(found)] for number in range(min(JUDGED_MAX, len(found)))]
            for each in chosen:
                self._judge(each, data, expected)
            self.files = data.files_of(chosen[0].crash.tree)
            self.before = (expected, chosen[0].crash.at)

    def _judge(self, found: Found, data: DataInMemory, expected: Expected) -> None:
        disk = Disk(data.files_of(found.crash.tree))
        first, second = recover(disk, self.kind), recover(disk, self.kind)
        pieces = pieces_of(found.crash.tree, data, root=ROOT)
        for at in {moment.at for moment in found.moments}:
            judgement = judge(Tried(state="in memory", first=first, second=second), expected, at=at, pieces=pieces)
            self._hold(judgement, f"at {at} of {len(self.recording.entries)}, {found.crash.cause}")

    def _hold(self, judgement: Judgement, found: str) -> None:
        self.checked.update(judgement.checked)
        if judgement.broken:
            raise BrokenPromiseError(self.surface, found, judgement)

    def _expected(self, replayed: Replay, data: DataInMemory) -> Expected:
        """As ``rehearsal`` has it of a job, and ``relapses`` of a recovery."""
        if self.before is not None:
            return expected_in(replayed, *self.before, PROTOCOL, data)
        golden, again = uninterrupted(self.kind)
        return expect(replayed.log.entries, golden, golden_again=again, made=made_by_saves(replayed, data, root=ROOT))


def machine(kind: Kind, surfaces: Sequence[Surface], *, base: type[CrashMachine] = CrashMachine) -> type[CrashMachine]:
    """A machine for a checkpointer."""
    return type(f"{base.__name__}Of{kind.__name__}", (base,), {"kind": kind, "surfaces": surfaces, "checked": Counter()})
