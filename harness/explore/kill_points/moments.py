"""The kill points of a recording, each once on each surface, with the phase of the job's life that it lies in."""

from collections.abc import Mapping

from harness.errors import UsageError
from harness.explore.frontier import Due, Frontier
from harness.explore.journal import ACKNOWLEDGED, EVENT, SAVE_ENDS
from harness.explore.kill_points.choice import Moment
from harness.explore.moments import timeline
from harness.explore.ranks import RANKS
from harness.explore.replay import Replay
from harness.explore.states import KillPoint, Model, Scope
from harness.scenario.cells import JobPhase
from harness.scenario.life import Life

STATES_MAX = 20_000
"""More are no tests that anybody waits for."""

Place = tuple[Model, Scope, KillPoint]


def look_at_all(frontier: Frontier) -> None:
    """Find every state.

    Raises:
        UsageError: When there are too many.
    """
    frontier.look(RANKS, lambda: frontier.planned < STATES_MAX)
    if frontier.planned >= STATES_MAX:
        advice = "name fewer of --storage and --scope, or explore a smaller run of it"
        raise UsageError(f"its crashes leave {STATES_MAX:,} states or more, too many to be tests; {advice}")


def moments_of(frontier: Frontier, replayed: Replay) -> tuple[Moment, ...]:
    """All kill points, in the order of the recording."""
    phases = phases_of(replayed)
    found: dict[Place, tuple[int, int]] = {}
    for number, side in enumerate(frontier.sides):
        for due in side.dues:
            for moment in due.found.moments:
                place = (side.model, side.scope, moment.point)
                found[place] = min(found.get(place, (number, moment.at)), (number, moment.at))
    in_order = sorted(found, key=lambda place: (found[place], place))
    return tuple(
        Moment(model=model, scope=scope, point=point, phase=phases[found[model, scope, point][1]]) for model, scope, point in in_order
    )


def dues_by_place(frontier: Frontier) -> dict[Place, list[Due]]:
    """The states that each kill point leaves."""
    found: dict[Place, list[Due]] = {}
    for side in frontier.sides:
        for due in side.dues:
            for place in dict.fromkeys((side.model, side.scope, moment.point) for moment in due.found.moments):
                found.setdefault(place, []).append(due)
    return found


def phases_of(replayed: Replay) -> Mapping[int, JobPhase]:
    """The phase that each moment of a recording, which is of a first attempt, lies in, by the index of the entry; 0: before the first.

    A job that only prints that it has saved tells nothing of its beginning, and that a save is over by this word.
    """
    times = timeline(replayed)
    strips = {strip.index: strip for strip in times.strip}
    is_told = bool({strip.path_class for strip in times.strip if strip.kind == EVENT} - {ACKNOWLEDGED})
    life = Life(tells_beginning=is_told)
    found: dict[int, JobPhase] = {0: "init"}
    for index in sorted({*strips, *times.instants} - {0}):
        strip = strips.get(index)
        if strip is not None and strip.kind == EVENT:
            life.hear(strip.path_class if is_told else SAVE_ENDS)
        elif strip is not None:
            life.act(strip.kind)
        found[index] = life.phase or "init"
    return found
