"""Every state that a crash can leave, each once, the most telling first.

What tells most is said in ``ranks``. A state that everything done until some moment leaves is told as that, whatever else leaves it too.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from harness.explore.data_file import DataFile
from harness.explore.judgement import SaveSeen
from harness.explore.models import MODELS, Candidate
from harness.explore.moments import Timeline, timeline
from harness.explore.pieces import pieces_of, state_name
from harness.explore.ranks import RANKS, Ranks
from harness.explore.recipe import StateTask
from harness.explore.replay import Replay
from harness.explore.result import Moment
from harness.explore.states import CrashState, KillPoint, Model, Scope
from harness.explore.trees import Branch, BranchTree, Order, digest_of, order_of

Key = tuple[bytes, int, Order]
"""What makes a state: its tree, how many saves were acknowledged until then, and the order of times."""

ORDERS_MAX = 8
"""Of the same tree: a job that writes the same bytes again and again leaves many."""


@dataclass(slots=True)
class Found:
    """One distinct state.

    Attributes:
        crash: How it comes about; the representative.
        saves: What was acknowledged until then: the same tree is another state when more was promised.
        moments: All that lead to it, the representative first; as long as the enumeration goes on, more may come.
        rank: 0: most telling, to ``RANKS - 1``: the rest; found in this order.
    """

    crash: CrashState
    saves: tuple[SaveSeen, ...]
    moments: list[Moment]
    rank: int = 0
    _task: StateTask | None = field(default=None, repr=False)

    def task(self, data: DataFile, *, root: str) -> StateTask:
        """The state as a document that travels."""
        if self._task is None:
            tree, pieces = self.crash.tree, pieces_of(self.crash.tree, data, root=root)
            indexes = {piece.path: index for index, piece in enumerate(pieces)}
            changed = tuple(indexes[path] for path in tree.by_change()) if isinstance(tree, BranchTree) else ()
            links = tuple(tuple(indexes[path] for path in paths) for paths in tree.links()) if isinstance(tree, BranchTree) else ()
            order = order_of(tree.top) if isinstance(tree, BranchTree) else ()
            self._task = StateTask(state=state_name(pieces, order), pieces=pieces, changed=changed, links=links)
        return self._task


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far an enumeration has come.

    Attributes:
        kill_points: Different moments that were looked at.
        candidates: Ways to die that were looked at.
        states: Distinct ones among them.
        is_complete: Whether there are no others.
    """

    kill_points: int
    candidates: int
    states: int
    is_complete: bool


class Enumeration:
    """The states of one model in one scope; iterate once. Lazy: what is not asked for is not made.

    Attributes:
        found: What was yielded so far.
    """

    def __init__(self, replay: Replay, data: DataFile, *, model: Model, scope: Scope, missing_max: int = 1) -> None:
        if scope not in MODELS[model].scopes:
            raise ValueError(f"{model} has no scope {scope!r}; it has {', '.join(MODELS[model].scopes)}")
        self.model, self.scope = model, scope
        self.found: list[Found] = []
        self._replay, self._data, self._missing_max = replay, data, missing_max
        self._timeline: Timeline = timeline(replay)
        self._known: dict[Key, Found] = {}
        self._orders: defaultdict[bytes, dict[Order, Order]] = defaultdict(dict)
        self._whole: dict[Key, Moment] = {}
        self._points: set[KillPoint] = set()
        self._candidates = 0
        self._is_complete = False

    @property
    def coverage(self) -> Coverage:
        """How far it has come."""
        return Coverage(len(self._points), self._candidates, len(self.found), self._is_complete)

    def leaves_the_same_as(self, other: "Enumeration") -> bool:
        """Whether another enumeration of the same recording found the very same states; False where either is not complete."""
        return self._is_complete and other._is_complete and self._known.keys() == other._known.keys()

    def __iter__(self) -> Iterator[Found]:
        """Yield each distinct state once."""
        whole = list(self._look_at_whole())
        for rank in range(RANKS):
            ranks = Ranks(self._timeline, self._replay, rank)
            for moment, key, top in whole:
                if ranks.wants(moment.cause, moment.at):
                    yield from self._find(moment, key, top, rank)
            for candidate in MODELS[self.model].partial(self._replay, self.scope, self._missing_max, ranks):
                top = candidate.system.tree()
                yield from self._find(self._moment(candidate), self._key(top, candidate.at), top, rank)
        self._is_complete = True

    def _look_at_whole(self) -> Iterator[tuple[Moment, Key, Branch]]:
        for candidate in MODELS[self.model].whole(self._replay, self.scope):
            moment, top = self._moment(candidate), candidate.system.tree()
            key = self._key(top, candidate.at)
            self._whole.setdefault(key, moment)
            yield moment, key, top

    def _find(self, moment: Moment, key: Key, top: Branch, rank: int) -> Iterator[Found]:
        """Count a moment; a state that is new is yielded."""
        self._candidates += 1
        self._points.add(moment.point)
        known = self._known.get(key)
        if known is not None:
            if moment != known.moments[0]:
                known.moments.append(moment)
            return
        first = self._whole.get(key, moment)
        crash = CrashState(
            model=self.model,
            scope=self.scope,
            at=first.at,
            cause=first.cause,
            point=first.point,
            tree=BranchTree(top),
            assumed=first.assumed,
        )
        found = Found(crash, self._timeline.instants[first.at].saves, [first] if moment == first else [first, moment], rank)
        self._known[key] = found
        self.found.append(found)
        yield found

    def _key(self, top: Branch, at: int) -> Key:
        digest, order = digest_of(top, self._data), order_of(top)
        orders = self._orders[digest]
        if order not in orders:  # beyond so many it counts as the one before
            orders[order] = order if len(orders) < ORDERS_MAX else next(reversed(orders.values()))
        return digest, len(self._timeline.instants[at].saves), orders[order]

    def _moment(self, candidate: Candidate) -> Moment:
        cause, point = candidate.cause, self._timeline.instants[candidate.at].point
        if cause.part and cause.operation == candidate.at:
            point = msgspec.structs.replace(point, part=cause.part)
        return Moment(at=candidate.at, point=point, cause=cause, assumed=candidate.assumed)


def same_as(model: Model, scope: Scope) -> str:
    """Another scope of a model that leaves the same states whatever the job does; empty: none."""
    return MODELS[model].same.get(scope, "")


def rests_on(model: Model, scope: Scope) -> tuple[str, ...]:
    """Names of the rows that nobody has confirmed, and that all that is said of a scope rests on."""
    row = MODELS[model].rests_on.get(scope)
    return () if row is None else (row.name,)
