"""A run directory that is named on the command line, and what must be known of it."""

from pathlib import Path

from harness.errors import UsageError
from harness.store import RunDirectory, open_run


def run_at(path: Path) -> RunDirectory:
    """The run at a path.

    Raises:
        UsageError: When it never began, or is no run: nothing is there to judge or to make again.
        UnknownNameError: When there is none.
    """
    run = RunDirectory(path)
    owner = run.owner()
    if run.incident_path.exists():
        raise incident_error(run)
    if owner is None or run.scenario_path.exists():
        return open_run(path)
    if run.recorded.exists() or run.exploration_path.exists():
        raise exploration_error(run)
    if run.is_running():
        raise UsageError(f"the run {path} is not judged yet: process {owner.process.pid} has it, and waits for its turn; look again later")
    raise UsageError(f"the run {path} was never judged: it ended before it began; run its scenario again")


def exploration_error(run: RunDirectory) -> UsageError:
    """What is said to somebody who takes an exploration for a run."""
    advice = f"its page is {run.report_path.name} in it, and `harness explore --replay {run.path} STATE` tries one of its states again"
    return UsageError(f"{run.path} is an exploration, not a run of a scenario; {advice}")


def incident_error(run: RunDirectory) -> UsageError:
    """What is said to somebody who takes an incident for a run."""
    advice = f"its page is {run.report_path.name} in it"
    if run.reproduction_path.exists():
        advice += f", and `harness run {run.reproduction_path}` runs its scenario"
    return UsageError(f"{run.path} is an incident that was made from a log, not a run of a scenario; {advice}")


def unjudged(run: RunDirectory) -> str:
    """What must be known of a judgement that is the first: it is of what there is until now."""
    if run.is_over():
        return ""
    return ", so far: it is still running" if run.is_running() else ", by what there is: it ended before it was judged"
