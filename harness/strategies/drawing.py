"""How one schedule is drawn: attempt by attempt, each death at a moment that the attempt is sure to reach.

``draw`` is Hypothesis's; whatever it is asked for shrinks towards what stands first.
"""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from harness.explore.aims.attempt import Aim, AttemptAims, newest_step
from harness.explore.aims.choice import Choice, Ending
from harness.explore.aims.reach import Position
from harness.scenario import Injection, Victim
from harness.scenario.faults import EndGrace
from harness.scenario.triggers import AfterSeconds, AtMarker, AtStep

T = TypeVar("T")

MARKER_WEIGHT, OPERATION_WEIGHT, STEP_WEIGHT, SECONDS_WEIGHT = 12, 5, 2, 1
"""In twentieths: 60, 25, 10 and 5 of a hundred. An address by seconds moves with the load of the machine, so it is rare."""

LENGTH = 4
"""Draws that nobody looks at: what takes fewer draws is simpler to Hypothesis, and a kill at a marker shall be the simplest. A choice among
one is no draw to it."""


class Attempt:
    """One attempt, of which a moment is drawn."""

    def __init__(self, choice: Choice, position: Position) -> None:
        self.aims = AttemptAims(choice, position)
        self._choice, self._position = choice, position

    @property
    def can_be_hit(self) -> bool:
        """Whether there is any moment for it."""
        return bool(self._kinds(-1, is_up=False))

    def endings(self, cost_max: int) -> list[Ending]:
        """The ways to end the attempt for which there is a moment."""
        if self._position.attempt >= self._choice.attempts_max:
            return []
        able = [ending for ending in self._choice.endings() if self._kinds(-1, is_up=ending.gives_notice)]
        return [ending for ending in able if ending.cost <= cost_max]

    def ranks(self, endings: Sequence[Ending]) -> list[int]:
        """Whom one of these can hit: all of the attempt, or one of several ranks."""
        heard, for_ranks = self._choice.workload.ranks_heard, [ending for ending in endings if not ending.is_whole]
        is_up = all(ending.gives_notice for ending in for_ranks)
        alone = range(heard) if heard > 1 and for_ranks else ()
        return [-1, *(rank for rank in alone if self._kinds(rank, is_up=is_up))]

    def draw_aim(self, draw: st.DrawFn, rank: int, *, is_up: bool) -> Aim:
        """A moment to hit a rank, -1 for all: of a rank alone it is one of its own words, for it must have said who it is."""
        kind = draw(st.sampled_from(self._kinds(rank, is_up=is_up)))
        if kind == "marker":
            return self._draw_marker(draw, rank, is_up=is_up)
        _lengthen(draw)
        if kind == "operation":
            return self.aims.at_operation(draw(st.sampled_from(self.aims.operations(is_up=is_up))))
        if kind == "step":
            return self.aims.at_step(AtStep(step=draw(st.integers(*self.aims.steps(is_up=is_up))), rank=max(0, rank)))
        return Aim(AfterSeconds(seconds=draw(st.floats(0, self._choice.known.seconds_max))), self._choice.workload.steps)

    def _kinds(self, rank: int, *, is_up: bool) -> list[str]:
        """The kinds of triggers that there are, each as often as it weighs."""
        first, last = self.aims.steps(is_up=is_up)
        weights = {
            "marker": MARKER_WEIGHT if self.aims.events(rank, is_up=is_up) else 0,
            "operation": OPERATION_WEIGHT if rank < 0 and self.aims.operations(is_up=is_up) else 0,
            "step": STEP_WEIGHT if first <= last else 0,
            "seconds": SECONDS_WEIGHT if rank < 0 and not is_up and self._choice.known.seconds_max and self.aims.has_steps_left else 0,
        }
        return [kind for kind, weight in weights.items() for _ in range(weight)]

    def _draw_marker(self, draw: st.DrawFn, rank: int, *, is_up: bool) -> Aim:
        whens = self._choice.reach.whens
        event = _one_of(draw, self.aims.events(rank, is_up=is_up))
        before, index = divmod(draw(st.integers(0, self.aims.limit(event, is_up=is_up) * len(whens) - 1)), len(whens))
        return self.aims.at_marker(AtMarker(event=event, nth=before + 1, when=whens[index], rank=max(0, rank)))


def draw_death(draw: st.DrawFn, choice: Choice, position: Position, *, task: int, cost_max: int) -> tuple[list[Injection], Position]:
    """What ends an attempt, and where the next one begins; nothing where there is no such thing.

    The moment is drawn first: then a milder ending can be tried at the same one.
    """
    attempt = Attempt(choice, position)
    endings = attempt.endings(cost_max)
    if not endings:
        return [], position
    rank = draw(st.sampled_from(attempt.ranks(endings)))
    able = [ending for ending in endings if rank < 0 or not ending.is_whole]
    aim = attempt.draw_aim(draw, rank, is_up=all(ending.gives_notice for ending in able))
    ending = _one_of(draw, [ending for ending in able if aim.takes_notice or not ending.gives_notice])
    victim, attempts = _victim(task, rank), (position.attempt,)
    found = [Injection(fault=ending.fault, at=aim.at, victim=victim, attempts=attempts)]
    if ending.then is not None:
        then = draw(st.sampled_from(attempt.aims.after_notice(aim.at, rank, is_end=isinstance(ending.then, EndGrace))))
        found.append(Injection(fault=ending.then, at=then, victim=victim, attempts=attempts))
    return found, position.next_attempt(step_max=newest_step(choice, ending, aim), has_saved=aim.has_saved)


def draw_pause(draw: st.DrawFn, choice: Choice, position: Position, *, task: int) -> Injection:
    """A standstill in an attempt that nothing else ends."""
    attempt = Attempt(choice, position)
    _lengthen(draw)
    rank = draw(st.sampled_from(attempt.ranks([Ending(fault) for fault in choice.pauses[:1]])))
    at = attempt.draw_aim(draw, rank, is_up=False).at
    return Injection(fault=draw(st.sampled_from(choice.pauses)), at=at, victim=_victim(task, rank), attempts=(position.attempt,))


def _one_of(draw: st.DrawFn, choices: Sequence[T]) -> T:
    """One of them, by a draw that is one to Hypothesis even where there is no choice."""
    return draw(st.sampled_from(choices if len(choices) > 1 else [*choices, *choices]))


def _lengthen(draw: st.DrawFn) -> None:
    for _ in range(LENGTH):
        draw(st.booleans())


def _victim(task: int, rank: int) -> Victim:
    return Victim(task=task, rank="all" if rank < 0 else rank)
