"""An operator sees the promised lines, in the promised order; the platform's and the job's alike."""

import re
from collections.abc import Sequence

from harness.checkers.evidence import Evidence, Ruling
from harness.history import LogLine
from harness.scenario.expectations import LogOrder
from harness.verdict import Finding

CHECKER = "log-order"

EXCERPT_LINES = 8
"""Lines shown after the last one that matched: enough to see what stood there instead."""


def check(expectation: LogOrder, evidence: Evidence) -> Finding:
    """Find the patterns one after the other in the lines of each task, by time; it is enough that one task shows them."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("logs"))
    tasks = evidence.lineage.tasks
    lines = {task: _lines(evidence, task) for task in tasks}
    if not any(lines.values()):
        return ruling.conclude(CHECKER, "", nothing="the run recorded no log line")
    best: list[LogLine] = []
    best_task = tasks[0]
    for task in tasks:
        found = _match(expectation.patterns, lines[task])
        if len(found) > len(best) or not best:
            best, best_task = found, task
    ruling.facts += [_shown(line) for line in best]
    if len(best) < len(expectation.patterns):
        missing = expectation.patterns[len(best)]
        after = f"after {best[-1].text!r}" if best else "at all"
        rest = [line for line in lines[best_task] if not best or line.t_s >= best[-1].t_s]
        ruling.broken.append(f"line {len(best) + 1} of {len(expectation.patterns)}, {missing!r}, does not appear {after}")
        ruling.facts += [f"instead: {_shown(line)}" for line in rest[:EXCERPT_LINES]]
        if ruling.doubts:  # the line may be among those that were not recorded
            ruling.doubts += ruling.broken
            ruling.broken = []
    return ruling.conclude(CHECKER, f"all {len(expectation.patterns)} lines appear in order")


def _lines(evidence: Evidence, task: int) -> list[LogLine]:
    found = [line for attempt in evidence.lineage.attempts_of(task) for line in attempt.logs]
    return sorted(found, key=lambda line: line.t_s)


def _match(patterns: Sequence[str], lines: Sequence[LogLine]) -> list[LogLine]:
    """The lines that match the longest beginning of the patterns, each as early as possible."""
    found: list[LogLine] = []
    for line in lines:
        if len(found) < len(patterns) and re.search(patterns[len(found)], line.text):
            found.append(line)
    return found


def _shown(line: LogLine) -> str:
    return f"{line.t_s:.2f} s, attempt {line.attempt}, {line.stream}: {line.text}"
