"""The result of an exploration, as a document: ``exploration.json``, from which the terminal, ``--json`` and the page are made."""

from typing import Literal

import msgspec

from harness.explore.judgement import Broken
from harness.explore.states import Cause, KillPoint, Model, Scope
from harness.verdict import Outcome

STATE_CHARACTERS = 12
"""Of the name of a state where it is shown: enough to be the only one in a run."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """The recording.

    Attributes:
        seconds: How long the job took under the recorder.
        operations: How many operations changed the checkpoint directory.
        saves: Acknowledged saves.
        is_exact: Whether operations were seen; False: markers only, and ``why_not`` says why.
        blind: What could not be seen, a sentence each; not empty: nothing that follows is the whole truth, so the result is unknown.
        notes: What a reader should know of it and that proves nothing, a sentence each.
        differs: Why no difference from the uninterrupted run proves anything: it does not repeat itself.
        bare_seconds: How long it took without the recorder; 0: not comparable, since that was in a process that had imported the job.
    """

    seconds: float
    operations: int
    saves: int
    is_exact: bool = True
    why_not: str = ""
    blind: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    differs: str = ""
    bare_seconds: float = 0.0


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One moment at which a crash leaves a state (``states.CrashState`` without its tree).

    Attributes:
        at: Index of the last entry of the log that was executed; 0: none.
        point: The same as an address that survives into another run.
        cause: What makes the state differ from a prefix.
        assumed: Rows of the model behind it that nobody has confirmed on the real thing.
    """

    at: int
    point: KillPoint
    cause: Cause = Cause()
    assumed: tuple[str, ...] = ()


class StateResult(msgspec.Struct, frozen=True, kw_only=True):
    """One distinct state of one model and scope.

    Attributes:
        state: Its name (``recipe.StateTask.state``).
        moments: All that lead to it, at least one; the first is the representative.
        outcome: None: not judged, the budget was spent.
    """

    state: str
    moments: tuple[Moment, ...]
    outcome: Outcome | None = None
    broken: tuple[Broken, ...] = ()
    restored_step: int = -1
    promised_step: int = -1

    def __post_init__(self) -> None:
        if not self.moments:
            raise ValueError(f"state {self.state[:STATE_CHARACTERS]} has no moment that leads to it")

    @property
    def points(self) -> tuple[KillPoint, ...]:
        """Every kill point that leads to it; the first is the representative."""
        return tuple(moment.point for moment in self.moments)

    @property
    def at(self) -> int:
        """Index of the last entry that was executed at the representative."""
        return self.moments[0].at

    @property
    def cause(self) -> Cause:
        """Of the representative."""
        return self.moments[0].cause


Rule = Literal["durable-before", "closed-before", "atomic", "complete", "survives"]
"""What must hold: the first must be durable, or its file closed, before the second; first to second, or the first alone, must be one
step; the first must be complete before it can be seen; or no operations tell it, recovery itself is wrong."""


class Vulnerability(msgspec.Struct, frozen=True, kw_only=True):
    """What must be changed in the job: two operations and what must hold between them.

    Attributes:
        rule: What must hold between them.
        says: The sentence a reader acts on, with the file classes.
        first: Kind and class of the first operation, like ``write step_*/data``.
        second: Of the second; empty where the first alone is the matter, or the second is not known for sure.
        marker: The marker it happens after.
        promises: Names of the promises that break, the worst first.
        leads_to: How many states break which promise, in words; a tree counts as often as something else was promised of it.
        states: Names of the states that show it, the smallest first.
        example: What the smallest state does, in one sentence.
        assumed: Rows of the storage model that it rests on and that nobody confirmed.
        replay: A command line.
    """

    rule: Rule
    says: str
    first: str = ""
    second: str = ""
    marker: str = ""
    promises: tuple[str, ...] = ()
    leads_to: str = ""
    states: tuple[str, ...] = ()
    example: str = ""
    assumed: tuple[str, ...] = ()
    replay: str = ""


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """One storage model in one scope.

    Attributes:
        kill_points: How many moments were enumerated.
        states: Distinct ones, in the order in which they were judged.
        same_as: Another scope of the same model that leaves the same states, so that they stand there.
        cut: How many states the budget left unjudged.
        after: State from which a recovery was recorded: these are crashes of that recovery; empty: of the job itself.
        operations: What that recovery did; of the job itself they stand in the exploration.
        is_complete: Whether there are no others; False: time was over before all were looked for.
        assumed: Rows of the model that nobody has confirmed, and that all of this rests on, whatever its states say of themselves.
    """

    model: Model
    scope: Scope
    kill_points: int
    states: tuple[StateResult, ...] = ()
    vulnerabilities: tuple[Vulnerability, ...] = ()
    same_as: str = ""
    cut: int = 0
    after: str = ""
    operations: tuple["Strip", ...] = ()
    is_complete: bool = True
    assumed: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """How many states were judged so."""
        return sum(state.outcome is outcome for state in self.states)


def name_of(surface: Surface) -> str:
    """A surface as it is shown."""
    return f"{surface.model} × {surface.scope}" + (f", in the recovery from {surface.after[:STATE_CHARACTERS]}" if surface.after else "")


class Strip(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One operation for the page: where it stands, what it is, on what; or one word of the job.

    Attributes:
        index: Of the entry in the log.
        kind: Of the operation (``create``, ``write``, ...); ``event``: something that the job said.
        path_class: Of the operation's path, as in ``states.KillPoint``; of an event its name, like ``save.end``.
        marker: What the job said last before it; ``start`` before the first.
        marker_nth: Its how manieth occurrence that was.
    """

    index: int
    kind: str
    path_class: str
    marker: str
    marker_nth: int = 0


class Exploration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known at the end; ``recoveries_cut``: how many recoveries the budget left out, crashes in which were not tried."""

    schema: int = 1
    workload: str
    command: tuple[str, ...]
    outcome: Outcome
    reasons: tuple[str, ...]
    recorded: Recorded
    surfaces: tuple[Surface, ...] = ()
    operations: tuple[Strip, ...] = ()
    seconds: float = 0.0
    judged_seconds: float = 0.0
    judge: str = ""
    budget: str = ""
    recoveries_cut: int = 0
