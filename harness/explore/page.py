"""The page of an exploration, filled from its document."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence

from harness.explore.cards import cards_of
from harness.explore.journal import EVENT
from harness.explore.models import rows
from harness.explore.result import STATE_CHARACTERS, Exploration, Recorded, StateResult, Strip, Surface
from harness.report.exploration import Effort, ExplorationPage, Recording, page_of_exploration
from harness.report.strip import Operation, Shade
from harness.report.surfaces import Assumption, Doubt, SurfacePart
from harness.report.wording import count, duration
from harness.verdict import Outcome

DOUBTS_MAX = 5
"""Different reasons of unknown states that are told of one surface."""

_KNOWN_ROWS = {row.name: row for row in vars(rows).values() if isinstance(row, rows.Row)}

_SHADES: dict[Outcome | None, Shade] = {
    Outcome.INVALID: "invalid",
    Outcome.UNKNOWN: "unknown",
    Outcome.VALID: "valid",
    None: "unjudged",
}


def render_page(exploration: Exploration) -> bytes:
    """The page as HTML."""
    return page_of_exploration(page_of(exploration))


def page_of(exploration: Exploration) -> ExplorationPage:
    """What the page shows."""
    return ExplorationPage(
        workload=exploration.workload,
        command=exploration.command,
        outcome=exploration.outcome,
        reasons=exploration.reasons,
        recording=Recording(
            told=_recorded_and_bare(exploration.recorded),
            why_not=exploration.recorded.why_not,
            blind=exploration.recorded.blind,
            notes=exploration.recorded.notes,
        ),
        surfaces=[_part(surface, surface.operations or exploration.operations) for surface in exploration.surfaces],
        cards=cards_of(exploration.surfaces),
        effort=Effort(
            seconds=exploration.seconds,
            judged_seconds=exploration.judged_seconds,
            judge=exploration.judge,
            budget=exploration.budget,
        ),
    )


def recorded_of(recorded: Recorded) -> str:
    """What was recorded, in words: ``1 run, 3 saves, 91 operations in 4.1 s``."""
    operations = count(recorded.operations, "operation") if recorded.is_exact else "no operations"
    return f"1 run, {count(recorded.saves, 'save')}, {operations} in {duration(recorded.seconds)}"


def _recorded_and_bare(recorded: Recorded) -> str:
    """The same with what the recorder cost."""
    bare = f", {duration(recorded.bare_seconds)} without the recorder" if recorded.bare_seconds else ""
    return recorded_of(recorded) + bare


def _part(surface: Surface, log: Sequence[Strip]) -> SurfacePart:
    return SurfacePart(
        model=surface.model,
        scope=surface.scope,
        after=surface.after[:STATE_CHARACTERS],
        kill_points=surface.kill_points,
        states=dict(Counter(_SHADES[state.outcome] for state in surface.states)),
        same_as=surface.same_as,
        operations=_operations(surface.states, log),
        doubts=_doubts(surface.states),
        assumed=_assumed(surface),
    )


def _operations(states: Sequence[StateResult], log: Sequence[Strip]) -> list[Operation]:
    """Each operation with the states that end at it; what is after a word of the job belongs to the operation before it."""
    changes = [strip for strip in log if strip.kind != EVENT]
    if not changes:
        return []
    indices = [strip.index for strip in changes]
    ending: dict[int, dict[int, Shade]] = defaultdict(dict)
    for which, state in enumerate(states):
        for moment in state.moments:
            ending[bisect_right(indices, moment.at)][which] = _SHADES[state.outcome]
    found = [
        Operation(
            number=number,
            name=f"{strip.kind} {strip.path_class}".strip(),
            marker=f"{strip.marker} {strip.marker_nth}" if strip.marker_nth else strip.marker,
            states=Counter(ending[number].values()),
        )
        for number, strip in enumerate(changes, 1)
    ]
    before = Operation(number=0, name="before the first operation", marker=found[0].marker, states=Counter(ending[0].values()))
    return [before, *found] if ending[0] else found


def _doubts(states: Sequence[StateResult]) -> list[Doubt]:
    """Why states are unknown, the most frequent reason first."""
    reasons = Counter(
        reason
        for state in states
        if state.outcome is Outcome.UNKNOWN
        for reason in {broken.says for broken in state.broken if broken.outcome is Outcome.UNKNOWN} or {"no reason was given"}
    )
    told = [Doubt(says, number) for says, number in reasons.most_common(DOUBTS_MAX)]
    rest = reasons.total() - sum(doubt.states for doubt in told)
    return [*told, Doubt(f"{len(reasons) - len(told)} other reasons", rest)] if rest else told


def _assumed(surface: Surface) -> list[Assumption]:
    """What is assumed, with the states that rest on it at every moment that leads to them."""
    states = surface.states
    rest = Counter(row for state in states if all(moment.assumed for moment in state.moments) for row in {*_rows(state)})
    rest.update(dict.fromkeys(set(surface.assumed) - rest.keys(), len(states)))
    return [_assumption(row, number) for row, number in sorted(rest.items(), key=lambda each: (-each[1], each[0]))]


def _assumption(name: str, states: int) -> Assumption:
    row = _KNOWN_ROWS.get(name)
    return Assumption(row=name, says=row.says if row else "", source=row.source if row else "", states=states)


def _rows(state: StateResult) -> list[str]:
    return [row for moment in state.moments for row in moment.assumed]
