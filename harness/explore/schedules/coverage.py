"""Which cells of a job's life have been hit, by faults that were seen to land, and which are left."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from harness.explore.aims.cells import reachable
from harness.explore.aims.choice import FAULTS_MAX
from harness.history import BarrierReached, Event, FaultObserved, FaultRequested, JobEvent, Marked, OperationReached, SignalSent
from harness.scenario import Fault, Scenario, Workload
from harness.scenario.cells import ATTEMPT_CLASSES, PHASES, Cell, attempt_class, hit_scope, whom
from harness.scenario.life import Life, life_of

SPEAKER = 0
"""The rank whose words tell the phase of a job: the first one saves."""

SHOWN_MAX = 3
"""Of what is left."""

Where = tuple[int, int]
"""Task and attempt."""


def covered_by(events: Sequence[Event], job: Scenario | Workload) -> frozenset[Cell]:
    """The cells that a run of a job has hit: by each fault that ends something, was requested, and was seen to land.

    A phase that the job does not tell is no cell.
    """
    landed = {(event.injection, event.task, event.attempt) for event in events if isinstance(event, FaultObserved)}
    workload = job.workload if isinstance(job, Scenario) else job
    return frozenset(cell for name, cell in _requested(events, workload) if name in landed)


def words_in(events: Iterable[Event]) -> frozenset[str]:
    """The markers of its own that a job has said."""
    return frozenset(event.name for event in events if isinstance(event, Marked))


def _requested(events: Sequence[Event], workload: Workload) -> Iterator[tuple[tuple[str, int, int], Cell]]:
    """Each fault that acted, with where the job was then."""
    moved = {(event.task, event.attempt) for event in events if isinstance(event, SignalSent) and event.signal == "SIGTSTP"}
    lives: dict[Where, Life] = {}
    for event in events:
        if isinstance(event, FaultRequested | OperationReached | JobEvent):
            where = (event.task, event.attempt)
            life = lives.setdefault(where, life_of(workload, event.attempt))
            if not isinstance(event, FaultRequested):
                _live_on(life, event)
            elif life.phase is not None and (scope := hit_scope(event.fault)) is not None and not (scope == "notice" and where in moved):
                yield (event.injection, *where), Cell(life.phase, scope, whom(event.rank), attempt_class(event.attempt))


def _live_on(life: Life, event: OperationReached | JobEvent) -> None:
    if isinstance(event, OperationReached):
        life.act(event.operation)
    elif not isinstance(event, BarrierReached) and event.rank == SPEAKER:
        life.hear(event.name if isinstance(event, Marked) else str(event.__struct_config__.tag))


@dataclass
class Coverage:
    """What has been hit of one job, run by run.

    Attributes:
        covered: What was hit.
        reachable: What can be.
    """

    covered: set[Cell] = field(default_factory=set)
    reachable: set[Cell] = field(default_factory=set)

    def add(self, job: Scenario | Workload, faults: Collection[Fault], events: Sequence[Event], *, faults_max: int = FAULTS_MAX) -> None:
        """Take in a run; ``faults`` and ``faults_max`` are what may happen in one."""
        self.covered |= covered_by(events, job)
        self.reachable |= reachable(job, faults, words=words_in(events), faults_max=faults_max)

    def merge(self, other: "Coverage") -> None:
        """Take in what was hit elsewhere."""
        self.covered |= other.covered
        self.reachable |= other.reachable

    @property
    def left(self) -> list[Cell]:
        """What can be hit and was not, the earliest phases first."""
        return sorted(self.reachable - self.covered, key=lambda cell: (ATTEMPT_CLASSES.index(cell.attempt), PHASES.index(cell.phase), cell))

    def __str__(self) -> str:
        """One line."""
        total, left = len(self.reachable | self.covered), self.left
        shown = "; ".join(map(str, left[:SHOWN_MAX])) + ("; ..." if len(left) > SHOWN_MAX else "")
        return f"{len(self.covered)} of {total} cells hit" + (f"; left: {shown}" if left else "")
