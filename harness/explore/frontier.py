"""The states of all surfaces of one recording, the most telling first: what is to be tried, and what was said of it so far."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from harness.explore.data_file import DataFile
from harness.explore.enumeration import Enumeration, Found, rests_on, same_as
from harness.explore.judgement import Judgement
from harness.explore.judging.criteria import judge
from harness.explore.judging.expected import Expected
from harness.explore.models import MODELS
from harness.explore.ordering import in_turns, spread
from harness.explore.own_path import believed
from harness.explore.ranks import RANKS
from harness.explore.recipe import StateTask, Tried
from harness.explore.replay import Replay
from harness.explore.result import StateResult, Strip, Surface
from harness.explore.states import Model, Scope
from harness.explore.vulnerabilities import find_vulnerabilities
from harness.verdict import Outcome

SurfaceName = tuple[Model, Scope]


def surfaces_of(models: Iterable[Model], scopes: Iterable[Scope]) -> tuple[SurfaceName, ...]:
    """The surfaces of some models, as far as they have these scopes."""
    wanted = frozenset(scopes)
    return tuple((model, scope) for model in models for scope in MODELS[model].scopes if not wanted or scope in wanted)


@dataclass(slots=True, eq=False)
class Due:
    """One state of one surface.

    Attributes:
        side: Its surface.
        found: How it comes about.
        task: The state.
        judgement: What is said of it; None: nothing yet.
    """

    side: "Side"
    found: Found
    task: StateTask
    judgement: Judgement | None = None

    @property
    def outcome(self) -> Outcome | None:
        """None while nothing is said."""
        return None if self.judgement is None else self.judgement.outcome


@dataclass(slots=True, eq=False)
class Side:
    """One surface while it is enumerated.

    Attributes:
        model: The storage model.
        scope: How much dies.
        enumeration: Its states; None where another scope leaves the same ones.
        dues: Its states so far.
        looked_to: The rank up to which all states were found; -1: none.
    """

    model: Model
    scope: Scope
    enumeration: Enumeration | None
    dues: list[Due] = field(default_factory=list)
    looked_to: int = -1
    _rest: Iterator[Found] | None = None
    _waiting: Found | None = None

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"{self.model} × {self.scope}"

    @property
    def is_plain(self) -> bool:
        """Whether nothing is missing that was done: it costs the moments of the recording, not pairs of them."""
        return self.model == "posix" or self.scope == "process"

    def next_of(self, rank: int) -> Found | None:
        """The next state of a rank or a more telling one; None: there is none."""
        found = self._next()
        if found is None or found.rank > rank:
            self._waiting = found
            self.looked_to = max(self.looked_to, rank)
            return None
        return found

    def _next(self) -> Found | None:
        if self.enumeration is None:
            return None
        if self._rest is None:
            self._rest = iter(self.enumeration)
        found, self._waiting = self._waiting or next(self._rest, None), None
        return found


class Frontier:
    """All states of a recording on its surfaces.

    Args:
        replayed: The recording.
        data: Its data.
        expected: What every recovery owes.
        names: The surfaces, the most telling first.

    Attributes:
        expected: What every recovery owes.
        sides: The surfaces.
    """

    def __init__(self, replayed: Replay, data: DataFile, expected: Expected, names: Sequence[SurfaceName]) -> None:
        self.expected = expected
        self._data, self._root = data, replayed.log.header.root
        self.sides = [
            Side(model, scope, None if (model, same_as(model, scope)) in names else Enumeration(replayed, data, model=model, scope=scope))
            for model, scope in names
        ]
        self._by_state: dict[str, list[Due]] = defaultdict(list)

    @property
    def planned(self) -> int:
        """How many states are known of."""
        return sum(len(side.dues) for side in self.sides)

    def look(self, rank: int, goes_on: Callable[[], bool]) -> list[Due]:
        """Find the states of a rank, as long as ``goes_on``.

        Of the most telling ones each kind takes turns, so that a first answer comes early. Then those come first that everything done until
        some moment leaves: where there are only such ones they are few, and all of them are looked for.
        """
        new: list[Due] = []
        for side in self.sides:
            last = RANKS if rank and side.is_plain else rank
            while goes_on() and (found := side.next_of(last)) is not None:
                task = msgspec.structs.replace(found.task(self._data, root=self._root), again=True)
                due = Due(side, found, task)
                side.dues.append(due)
                self._by_state[due.task.state].append(due)
                new.append(due)
        if rank:
            return sorted(new, key=lambda due: due.found.crash.cause.kind != "prefix")
        kinds: dict[Hashable, list[Due]] = defaultdict(list)
        for due in new:
            kinds[due.side.name, due.found.crash.cause.kind].append(due)
        return list(in_turns({kind: spread(dues) for kind, dues in kinds.items()}))

    def take(self, tried: Tried) -> Iterator[Due]:
        """Judge every state that is this tree: what was promised differs. Yields them."""
        for due in self._by_state[tried.state]:
            if due.judgement is None:
                due.judgement = judge(believed(tried, self._root), self.expected, at=due.found.crash.at, pieces=due.task.pieces)
                yield due

    def unjudged_of(self, rank: int) -> int:
        """How many states of a rank that were found are not judged."""
        return sum(due.judgement is None for side in self.sides for due in side.dues if due.found.rank == rank)

    def has_found(self, rank: int) -> bool:
        """Whether all states of a rank were found: where time was over before, there may be more."""
        return all(side.looked_to >= rank for side in self.sides)

    def surfaces(self, operations: Sequence[Strip], *, run_directory: str, after: str = "") -> tuple[Surface, ...]:
        """What is known of each surface.

        Args:
            operations: Of the recording.
            run_directory: As a person types it.
            after: The state from which the recorded recovery started; empty: the job itself was recorded.
        """
        found = (_surface(side, self._twin(side), operations, run_directory) for side in self.sides)
        return tuple(msgspec.structs.replace(each, after=after, operations=operations if after else ()) for each in found)

    def _twin(self, side: Side) -> str:
        """An earlier scope of the same model with the very same states."""
        if side.enumeration is None:
            return same_as(side.model, side.scope)
        for other in self.sides[: self.sides.index(side)]:
            if other.model == side.model and other.enumeration is not None and side.enumeration.leaves_the_same_as(other.enumeration):
                return other.scope
        return ""


def _surface(side: Side, twin: str, operations: Sequence[Strip], run_directory: str) -> Surface:
    assumed = rests_on(side.model, side.scope)
    if twin or side.enumeration is None:
        return Surface(model=side.model, scope=side.scope, kill_points=0, same_as=twin, assumed=assumed)
    states = tuple(_result(due) for due in side.dues)
    coverage = side.enumeration.coverage
    return Surface(
        model=side.model,
        scope=side.scope,
        kill_points=coverage.kill_points,
        states=states,
        vulnerabilities=find_vulnerabilities(states, operations, run_directory=run_directory),
        cut=sum(state.outcome is None for state in states),
        is_complete=coverage.is_complete,
        assumed=assumed,
    )


def _result(due: Due) -> StateResult:
    said = due.judgement
    return StateResult(
        state=due.task.state,
        moments=tuple(due.found.moments),
        outcome=due.outcome,
        broken=said.broken if said is not None else (),
        restored_step=said.recovery.restored_step if said is not None else -1,
        promised_step=max((save.step for save in due.found.saves), default=-1),
    )
