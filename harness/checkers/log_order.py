"""An operator sees the promised lines, in the promised order; the platform's and the job's alike.

Lines that were not recorded cannot take back what others show: only a line that is missing is in doubt then.
"""

from collections.abc import Sequence

from harness.checkers import landed
from harness.checkers.evidence import Evidence, Ruling
from harness.history import LogLine
from harness.scenario.expectations import LogOrder
from harness.verdict import Finding, Outcome

CHECKER = "log-order"

EXCERPT_LINES = 8
"""Lines shown after the last one that matched: enough to see what stood there instead."""


def check(expectation: LogOrder, evidence: Evidence) -> Finding:
    """Find the patterns one after the other in the lines of each task that owes them, by time."""
    ruling = Ruling()
    tasks = _tasks(evidence)
    lines = {task: _lines(evidence, task) for task in tasks}
    if not any(lines.values()):
        return ruling.conclude(CHECKER, "", nothing=f"no log line of task {', '.join(map(str, tasks)) or 'any'} was recorded")
    for task in tasks:
        found = _match(expectation.patterns, lines[task])
        ruling.facts += [_shown(line) for line in found]
        if len(found) < len(expectation.patterns):
            _judge_missing(task, found, lines[task], expectation=expectation, ruling=ruling)
    if ruling.broken:
        _doubt(evidence, ruling)
    return ruling.conclude(
        CHECKER, f"all {len(expectation.patterns)} lines appear in order in the log of task {', '.join(map(str, tasks))}"
    )


def _tasks(evidence: Evidence) -> Sequence[int]:
    """The tasks that faults hit; without faults, all of them."""
    hit = {injection.victim.task for injection in evidence.scenario.injections}
    return [task for task in evidence.lineage.tasks if not hit or task in hit]


def _lines(evidence: Evidence, task: int) -> Sequence[LogLine]:
    """Its lines and those about the execution as a whole."""
    found = [line for line in evidence.of_type(LogLine) if line.task == task or line.stream == "audit"]
    return sorted(found, key=lambda line: line.t_s)


def _match(patterns: Sequence[str], lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """The lines that match the longest beginning of the patterns, each as early as possible."""
    found: list[LogLine] = []
    for line in lines:
        if len(found) < len(patterns) and line.search(patterns[len(found)]):
            found.append(line)
    return found


def _judge_missing(task: int, found: Sequence[LogLine], lines: Sequence[LogLine], *, expectation: LogOrder, ruling: Ruling) -> None:
    missing = expectation.patterns[len(found)]
    after = f"after {found[-1].text!r}" if found else "at all"
    ruling.broken.append(
        f"line {len(found) + 1} of {len(expectation.patterns)}, {missing!r}, does not appear in the log of task {task} {after}"
    )
    rest = [line for line in lines if not found or line.t_s >= found[-1].t_s]
    ruling.facts += [f"instead: {_shown(line)}" for line in rest[:EXCERPT_LINES]]


def _doubt(evidence: Evidence, ruling: Ruling) -> None:
    """A missing line proves nothing where lines are lost or masked, where the run was broken off, or where a fault did not land."""
    ruling.doubt_lost(evidence.lost("logs"))
    masked = next((line for line in evidence.of_type(LogLine) if line.is_masked), None)
    if masked is not None:
        ruling.doubts.append(f"a part of what was said is masked, and may be what is missing: {_shown(masked)}")
    if evidence.is_cut_short:
        ruling.doubts.append("the run was broken off, and what is missing might have come yet")
    if landed.check(evidence).outcome is not Outcome.VALID:
        ruling.doubts.append("not every fault has landed, and what is missing may be owed to one that has not")
    if ruling.doubts:
        ruling.doubt_broken()


def _shown(line: LogLine) -> str:
    return f"{line.t_s:.2f} s, attempt {line.attempt}, {line.stream}: {line.text}"
