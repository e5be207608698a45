"""What a session of tests comes to for one job, as the document of an exploration: its page, its vulnerabilities, its replays."""

import shutil
from dataclasses import dataclass

import msgspec

from harness.clock import Clock
from harness.explore.conclusion import conclude
from harness.explore.documents import write_documents
from harness.explore.exploring import forget
from harness.explore.kill_points.bench import Bench
from harness.explore.kill_points.choice import Moment, kinds_left
from harness.explore.kill_points.plans import Plan, directory_of
from harness.explore.result import Exploration, Recorded, Vulnerability, name_of
from harness.explore.trials_file import TrialsFile
from harness.verdict import Outcome, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoned:
    """What is told at the end of a session.

    Attributes:
        exploration: All of it.
        vulnerabilities: With the name of their surface, the worst first.
    """

    exploration: Exploration
    vulnerabilities: tuple[tuple[str, Vulnerability], ...] = ()

    @property
    def told(self) -> str:
        """What was judged, or why nothing was, in words."""
        exploration = self.exploration
        if exploration.outcome is Outcome.UNKNOWN:
            return "; ".join(exploration.reasons)
        states = [state for surface in exploration.surfaces for state in surface.states if state.outcome is not None]
        wrong = sum(state.outcome is Outcome.INVALID for state in states)
        return f"{counted(len(states), 'crash state')} judged, {wrong:,} wrong"


def reckon(plan: Plan, *, clock: Clock, name: str, budget: str) -> Reckoned:
    """Write what was judged of a job, by all processes of the session, into its run directory.

    Args:
        plan: Of the job; it has a run directory.
        clock: The machine's.
        name: Of the run directory, as a person types it.
        budget: What was granted, in words.

    Raises:
        HarnessError: When it cannot be read or written.
    """
    directory, recorded = directory_of(plan), plan.recorded or Recorded(seconds=0.0, operations=0, saves=0)
    if recorded.blind:
        exploration = _document(plan, recorded, budget)
    else:
        with Bench(plan, clock, name=name) as bench, TrialsFile(directory.tried_path) as trials:
            seconds = 0.0
            for trial in bench.remember():
                trials.keep(trial)
                seconds += sum(each.seconds for each in (trial.tried.first, trial.tried.second) if each is not None)
            whole = _document(plan, recorded, budget, bench)
            exploration = msgspec.structs.replace(whole, seconds=recorded.seconds + seconds, judged_seconds=seconds)
    write_documents(exploration, directory)
    shutil.rmtree(directory.trials, ignore_errors=True)
    found = [(name_of(surface), each) for surface in exploration.surfaces for each in surface.vulnerabilities]
    return Reckoned(exploration=exploration, vulnerabilities=tuple(found))


def forget_states(plan: Plan) -> None:
    """Remove what only a replay needs."""
    forget(directory_of(plan))


def _document(plan: Plan, recorded: Recorded, budget: str, bench: Bench | None = None) -> Exploration:
    surfaces = bench.surfaces() if bench is not None else ()
    outcome, reasons = conclude(recorded, surfaces)
    left = kinds_left(plan.moments, _judged(plan, bench)) if bench is not None else 0
    if outcome is Outcome.VALID and left:
        outcome, reasons = (
            Outcome.UNKNOWN,
            (f"of {counted(left, 'kind')} of kill points none was judged: those tests were left out, or broke",),
        )
    return Exploration(
        workload=plan.job,
        command=plan.recipe.command if plan.recipe is not None else (),
        outcome=outcome,
        reasons=reasons,
        recorded=recorded,
        surfaces=surfaces,
        operations=bench.strip if bench is not None else (),
        seconds=recorded.seconds,
        judge="the command, run again from each state, as tests",
        budget=budget,
    )


def _judged(plan: Plan, bench: Bench) -> list[Moment]:
    """The kill points of which every state was judged."""
    return [moment for moment in plan.moments if all(due.judgement is not None for due in bench.dues_at(moment))]
