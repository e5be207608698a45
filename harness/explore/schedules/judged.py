"""A run of a schedule that was judged, with what is known of it beyond its own verdict."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from harness.explore.schedules.shrinking import Shrunk
from harness.history import History
from harness.runner import Run
from harness.scenario import Scenario
from harness.store import RunDirectory
from harness.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleRun:
    """A run of a schedule that is over.

    Attributes:
        run: The run.
        is_remembered: Whether it was made before.
        shrunk: The smallest case that fails in the same way; None where it did not fail, or that was not looked for.
        artefact: Its ``schedule.json``, or that of the case as it failed, where it could not be made smaller.
        reproduction: How often it failed again, in words.
        root: What the workload's directory is relative to; a replay from elsewhere must be told.
    """

    run: Run
    is_remembered: bool = False
    shrunk: Shrunk | None = None
    artefact: Path | None = None
    reproduction: str = ""
    root: Path = Path()

    def __repr__(self) -> str:
        """Short: an assertion that fails prints it."""
        return f"ScheduleRun({self.run.directory.name}: {self.verdict.outcome})"

    @property
    def verdict(self) -> Verdict:
        """The judgement."""
        return self.run.verdict

    @property
    def scenario(self) -> Scenario:
        """The job under the schedule."""
        return self.run.scenario

    @property
    def directory(self) -> RunDirectory:
        """Where it lies."""
        return self.run.directory

    @property
    def history(self) -> History:
        """What was seen."""
        return self.run.history

    def explain(self) -> str:
        """The verdict in words, and what is left of a schedule that failed."""
        lines = [self.run.explain()]
        if self.is_remembered:
            lines.append(f"  remembered, not run again: {self.run.directory.path}")
        if self.shrunk is not None:
            of = f"{len(self.shrunk.case.injections)} of {len(self.run.scenario.injections)} faults"
            cut = ", the budget was spent" if self.shrunk.is_cut else ""
            lines.append(f"  smallest: {of} ({self.shrunk.runs} runs{cut}); {self.reproduction}")
        elif self.reproduction:
            lines.append(f"  {self.reproduction}")
        if self.artefact is not None:
            lines.append(f"  replay: {replay_command(self.artefact, self.root)}")
        return "\n".join(lines)


def replay_command(artefact: Path, root: Path) -> str:
    """The line that runs a failure again, as it is typed here."""
    where = [] if root.resolve() == Path.cwd() else ["--root", str(root.resolve())]
    return shlex.join(["harness", "replay", *where, str(artefact)])
