"""How one cell of a job's life is hit: as many ends as there are attempts before its own, then one in its phase."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from harness.explore.aims.attempt import AttemptAims, newest_step
from harness.explore.aims.choice import FAULTS_MAX, Choice, Ending, Known, choice_of
from harness.explore.aims.reach import Position
from harness.scenario import Fault, Injection, Scenario, Trigger, Victim, Workload
from harness.scenario.cells import ATTEMPT_CLASSES, HIT_SCOPES, PHASES, VICTIMS, Cell, JobPhase, Whom
from harness.scenario.faults import EndGrace, ExpireTimeout, Kill, Maintenance, Terminate
from harness.scenario.life import Life, life_of
from harness.scenario.triggers import AtMarker, AtStep

RANKS: dict[Whom, int] = {"all": -1, "rank-0": 0, "other-rank": 1}

CELLS: tuple[Cell, ...] = tuple(
    Cell(phase, scope, victim, attempt) for attempt in ATTEMPT_CLASSES for phase in PHASES for scope in HIT_SCOPES for victim in VICTIMS
)
"""All that there are, the earliest phases first."""

NOTICES = (Terminate, Maintenance, ExpireTimeout)
ENDS = (Kill, *NOTICES)
"""What ends the attempts before that of a cell."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What hits an attempt in a phase: a fault alone, or a notice to all and a fault after it."""

    at: Trigger
    fault: Fault
    notice: AtStep | None = None


def reachable(
    job: Scenario | Workload, faults: Collection[Fault], *, words: Collection[str] = (), faults_max: int = FAULTS_MAX
) -> frozenset[Cell]:
    """The cells that such faults can hit for sure, of a job that keeps its promises, on what its platform grants.

    Args:
        job: The job; of a scenario its workload and its platform count.
        faults: What may happen.
        words: Markers of its own that it says: a commit and a garbage collection are told by these alone.
        faults_max: Of one schedule.
    """
    telling = tuple(sorted(word for word in words if _phase_of_own(word) in ("commit", "garbage-collection")))
    return frozenset(able(choice_of(job, faults, Known(markers=telling)), CELLS, faults_max=faults_max))


def able(choice: Choice, cells: Sequence[Cell], *, faults_max: int) -> tuple[Cell, ...]:
    """The cells, of those given, that can be hit by what may happen, in their order."""
    return tuple(cell for cell in cells if 0 < cost(choice, cell) <= faults_max)


def cost(choice: Choice, cell: Cell) -> int:
    """How many faults it takes to hit a cell; 0: it cannot be hit."""
    before, position = _approach(choice, cell)
    hit = next(_hits(choice, position, cell), None)
    if hit is None or position.attempt >= choice.attempts_max or len(before) != ATTEMPT_CLASSES.index(cell.attempt):
        return 0
    return len(before) + (1 if hit.notice is None else 2)


def ways_to_hit(choice: Choice, cell: Cell, *, task: int) -> Iterator[tuple[list[Injection], Position]]:
    """All faults that hit a cell, and where the attempt after that begins."""
    before, position = _approach(choice, cell)
    attempts, rank = (position.attempt,), RANKS[cell.victim]
    after = position.next_attempt(step_max=choice.workload.steps, has_saved=False)
    for hit in _hits(choice, position, cell):
        found = [Injection(fault=fault, at=at, victim=Victim(task=task), attempts=(number,)) for number, (fault, at) in enumerate(before)]
        if hit.notice is not None:
            found.append(Injection(fault=Terminate(), at=hit.notice, victim=Victim(task=task), attempts=attempts))
        victim = Victim(task=task, rank="all" if rank < 0 else rank)
        yield [*found, Injection(fault=hit.fault, at=hit.at, victim=victim, attempts=attempts)], after


def _approach(choice: Choice, cell: Cell) -> tuple[list[tuple[Fault, AtMarker]], Position]:
    """What ends the attempts before that of a cell: after a save, so that there is something to restore; and where it begins."""
    position, before = Position(), list[tuple[Fault, AtMarker]]()
    ends = sorted((fault for fault in choice.faults if _is_one_of(fault, ENDS)), key=lambda fault: not isinstance(fault, Kill))
    for _ in range(ATTEMPT_CLASSES.index(cell.attempt) if ends else 0):
        aims, ending = AttemptAims(choice, position), Ending(ends[0])
        events = aims.events(-1, is_up=ending.gives_notice)
        event = next((event for event in ("save.end", "step") if event in events), None)
        if event is None:
            break
        aim = aims.at_marker(AtMarker(event=event))
        position = position.next_attempt(step_max=newest_step(choice, ending, aim), has_saved=aim.has_saved)
        before.append((ends[0], AtMarker(event=event)))
    return before, position


def _hits(choice: Choice, position: Position, cell: Cell) -> Iterator[Hit]:
    rank = RANKS[cell.victim]
    if rank >= 0 and choice.workload.ranks_heard <= max(rank, 1):  # of one rank alone all is what there is
        return
    if cell.phase in ("handler", "emergency-save"):
        yield from _hits_when_told(choice, position, cell)
    elif cell.scope == "process":
        yield from _at_words(choice, position, cell, [fault for fault in choice.faults if isinstance(fault, Kill)])
    elif cell.scope == "notice":
        kinds = NOTICES if rank < 0 else (Terminate,)
        yield from _at_words(choice, position, cell, [fault for fault in choice.faults if _is_one_of(fault, kinds)])


def _at_words(choice: Choice, position: Position, cell: Cell, faults: Sequence[Fault]) -> Iterator[Hit]:
    """At each word after which the job is in the phase, and at each known operation; a notice only where the job is up."""
    aims, rank, is_up = AttemptAims(choice, position), RANKS[cell.victim], cell.scope == "notice"
    for event in aims.events(-1, is_up=is_up):
        if _phase_at(choice, position, event) == cell.phase:
            speaker = 0 if event in choice.reach.saving else max(0, rank)
            moments = [AtMarker(event=event, nth=nth, rank=speaker) for nth in range(1, aims.limit(event, is_up=is_up) + 1)]
            yield from (Hit(at, fault) for fault in faults for at in moments)
    for at in aims.operations(is_up=is_up) if rank < 0 else ():
        if _phase_at(choice, position, at.after, at.operation) == cell.phase:
            yield from (Hit(at, fault) for fault in faults)


def _hits_when_told(choice: Choice, position: Position, cell: Cell) -> Iterator[Hit]:
    """A rank alone is hit when the first one has noticed: that tells the phase. The grace that ends is that of all."""
    if not choice.reach.says_sigterm or not any(isinstance(fault, Terminate) for fault in choice.faults):
        return
    kinds = (Terminate,) if cell.scope == "notice" else (Kill, EndGrace) if cell.scope == "process" else ()
    then = [fault for fault in choice.faults if isinstance(fault, kinds) and (cell.victim == "all" or not isinstance(fault, EndGrace))]
    aims = AttemptAims(choice, position)
    first, last = aims.steps(is_up=True)
    every = choice.workload.save_every
    for step in range(first, last + 1):
        if every and step % every == 0:
            continue
        notice = AtStep(step=step)
        for at in aims.after_notice(notice, -1, is_end=cell.scope == "process"):
            is_in_handler = isinstance(at, AtMarker) and at.event == "sigterm"
            if is_in_handler is (cell.phase == "handler"):
                yield from (Hit(at, fault, notice) for fault in then)


def _is_one_of(fault: Fault, kinds: tuple[type[Fault], ...]) -> bool:
    return isinstance(fault, kinds) and not (isinstance(fault, Maintenance) and not fault.ends_attempt)


def _phase_at(choice: Choice, position: Position, event: str, operation: str = "") -> JobPhase | None:
    """The phase that a word tells: one that comes in each save is said in a save; without any the attempt has just begun."""
    life = life_of(choice.workload, position.attempt)
    if event:
        life.hear("save.begin" if event in choice.reach.saving else "start")
        life.hear(event)
    if operation:
        life.act(operation)
    return life.phase


def _phase_of_own(word: str) -> JobPhase | None:
    life = Life()
    life.hear("save.begin")
    life.hear(word)
    return life.phase
