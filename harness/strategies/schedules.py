"""``kill_schedules`` and ``schedules``: values of ``Schedule`` that are valid and whose faults all act, by construction."""

from collections.abc import Collection, Sequence

from hypothesis import strategies as st

from harness.explore.aims.cells import CELLS, able, cost, ways_to_hit
from harness.explore.aims.choice import FAULTS_MAX, NOTHING_MORE, Choice, Known, choice_of
from harness.explore.aims.reach import Position
from harness.scenario import Fault, Injection, Scenario, Schedule, Workload, kind_of
from harness.scenario.cells import Cell
from harness.scenario.faults import EndGrace, ExpireTimeout, Kill, Maintenance, OverlapAttempts, Pause, Terminate
from harness.scenario.model import INJECTIONS_MAX
from harness.scenario.rules import require
from harness.strategies.drawing import Attempt, draw_death, draw_pause
from harness.strategies.steering import SteeredPlaces

FAULTS: tuple[Fault, ...] = (Kill(), Terminate(), EndGrace(), Pause(duration_s=0.5))
"""What ``schedules`` draws where nothing else is asked for."""

DRAWN = (Kill, Terminate, EndGrace, Pause, Maintenance, ExpireTimeout, OverlapAttempts)


def kill_schedules(job: Scenario | Workload, *, max_faults: int = FAULTS_MAX, known: Known = NOTHING_MORE) -> st.SearchStrategy[Schedule]:
    """Up to ``max_faults`` SIGKILLs, one an attempt, at any moments; see ``schedules``."""
    return schedules(job, faults=(Kill(),), max_faults=max_faults, known=known)


def schedules(
    job: Scenario | Workload,
    *,
    faults: Sequence[Fault] = FAULTS,
    max_faults: int = FAULTS_MAX,
    known: Known = NOTHING_MORE,
    cells: Collection[Cell] | None = None,
) -> st.SearchStrategy[Schedule]:
    """Schedules of one to ``max_faults`` faults for a job; they shrink towards one SIGKILL at the earliest marker of the first attempt.

    Args:
        job: The job; of a scenario its workload and its platform count.
        faults: What may happen, with its parameters: kill, terminate, end-grace, pause, maintenance, expire-timeout, overlap-attempts.
            A kill, a second SIGTERM or the end of the grace may follow a terminate in the handler; the end of the grace also in the save
            that comes then.
        max_faults: At most so many; one that follows a notice is one more.
        known: What is known of the job's moments beside its workload: the more, the more narrow ones are hit.
        cells: What was not hit yet (``Coverage.left``): each schedule hits a cell, most of them one of these. Which are given changes only
            how often each cell comes: an example that Hypothesis has kept stays the schedule that it was. None: it hits whatever.

    Raises:
        RefusedValueError: When nothing can be drawn, or none of the cells can be hit by that.
    """
    choice = choice_of(job, faults, known)
    _refuse_undrawable(choice, max_faults)
    if cells is None:
        return _schedules(choice, max_faults)
    aimed = able(choice, CELLS, faults_max=max_faults)
    can_hit = bool(aimed) and (not cells or any(cost(choice, cell) for cell in cells))
    require(can_hit, "cells", [str(cell) for cell in cells], "one that these faults can hit; without `cells` they hit whatever they do")
    places = SteeredPlaces(len(aimed), [place for place, cell in enumerate(aimed) if cell in cells])
    return _schedules(choice, max_faults, places.map(lambda place: aimed[place]))


def _refuse_undrawable(choice: Choice, max_faults: int) -> None:
    require(max_faults >= 1, "max_faults", max_faults, "at least one fault: a schedule without any proves nothing")
    require(max_faults <= INJECTIONS_MAX, "max_faults", max_faults, f"at most {INJECTIONS_MAX}: a scenario holds no more")
    unknown = [kind_of(fault) for fault in choice.faults if not isinstance(fault, DRAWN)]
    known = ", ".join(str(kind.__struct_config__.tag) for kind in DRAWN)
    require(not unknown, "faults", unknown, f"some of {known}: for others the moment that fits is yours to say")
    moved = [fault.profile for fault in choice.faults if isinstance(fault, Maintenance) and not fault.ends_attempt]
    require(not moved, "faults", moved, "maintenance that ends an attempt: after one that only moves the job nothing is recovered")
    heard = [at.after for at in (*choice.known.operations, *choice.known.last_save) if at.after and not choice.workload.speaks_protocol]
    require(not heard, "known", heard, "operations counted from the start: who holds them hears the words of the protocol, not a log")
    first = Attempt(choice, Position())
    can_end = bool(first.endings(max_faults))
    wanted = "one that acts alone: end-grace follows a terminate, and a notice needs steps or saves, at which the job is up"
    if choice.attempts_max and not first.can_be_hit:
        wanted = "nothing, for the job says nothing at which it could be hit: say for how long it lasts, Known(seconds_max=...)"
    if not choice.attempts_max:
        wanted = "a pause: the platform grants no retry, so whatever ends an attempt ends the task"
    can_pause = bool(choice.pauses) and first.can_be_hit
    require(can_end or can_pause, "faults", [kind_of(fault) for fault in choice.faults], wanted)


@st.composite
def _schedules(draw: st.DrawFn, choice: Choice, max_faults: int, cells: st.SearchStrategy[Cell] | None = None) -> Schedule:
    found: list[Injection] = []
    positions = [Position() for _ in range(choice.platform.tasks)]
    tasks = st.integers(0, len(positions) - 1)
    pauses = False
    if cells is not None:
        hit, positions[0] = draw(st.sampled_from(list(ways_to_hit(choice, draw(cells), task=0))))
        found += hit
        left = draw(st.integers(0, max_faults - len(found)))
    else:
        left = draw(st.integers(1, max_faults))
        pauses = bool(choice.pauses) and (not Attempt(choice, positions[0]).endings(left) or draw(st.booleans()))
    left -= int(pauses)
    while left > 0:
        task = draw(tasks)
        death, positions[task] = draw_death(draw, choice, positions[task], task=task, cost_max=left)
        if not death:
            break
        found += death
        left -= len(death)
    task = draw(tasks) if pauses else 0
    if pauses and Attempt(choice, positions[task]).can_be_hit:
        found.append(draw_pause(draw, choice, positions[task], task=task))
    return Schedule(injections=tuple(found))
