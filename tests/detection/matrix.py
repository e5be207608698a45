"""The matrix of detections, job by checker, as text for a terminal."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from harness.checkers import ALWAYS, CHECKERS
from harness.verdict import Outcome, Verdict

COLUMNS = (*(str(kind.__struct_config__.tag) for kind in CHECKERS), *ALWAYS)

NODE_LOSS = "needs node loss"
"""In place of an outcome: the job is wrong, and the death of a process cannot show it."""

LEGEND = "✗ caught as intended   x accused too   · valid   ? unknown   n needs the loss of a node   ! not as it must be"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the checkers said of one job in one trial.

    Attributes:
        job: Its name.
        promise: The one that a wrong job breaks; empty for a right job.
        outcomes: Of the checkers that were asked.
        note: Why no death of a process can reveal the job; empty where one can.
    """

    job: str
    promise: str
    outcomes: Mapping[str, str]
    note: str = ""

    @classmethod
    def of(cls, job: str, verdict: Verdict, *, promise: str = "", note: str = "") -> "Row":
        """The row of a judged run."""
        outcomes = {finding.checker: str(finding.outcome) for finding in verdict.findings}
        if note and outcomes[promise] == Outcome.VALID:
            outcomes[promise] = NODE_LOSS
        return cls(job=job, promise=promise, outcomes=outcomes, note=note)

    @classmethod
    def read(cls, text: str) -> "Row":
        """What ``str`` wrote."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def draw(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of the matrix; all trials of a right job are one row, in which the worst counts."""
    trials: dict[tuple[bool, str], list[Row]] = defaultdict(list)
    for row in rows:
        trials[not row.promise, row.job].append(row)
    names = {place: _name(*place, trials[place]) for place in sorted(trials)}
    width = max(map(len, names.values()), default=0)
    for number, column in enumerate(COLUMNS):
        yield " " * width + " " + " │" * number + " " + column
    is_right_before = False
    for place, name in names.items():
        if place[0] and not is_right_before:
            yield ""
        is_right_before = place[0]
        yield f"{name:<{width}} " + "".join(f" {_symbol(column, trials[place])}" for column in COLUMNS).rstrip()
    yield ""
    yield LEGEND
    everything = [row for each in trials.values() for row in each]
    yield from (f"n {row.job}: {row.note}" for row in everything if row.note)
    yield _count(everything)


def _name(is_right: bool, job: str, rows: list[Row]) -> str:
    return f"{job} ({len(rows)} trial{'s' if len(rows) > 1 else ''})" if is_right else job


def _symbol(column: str, rows: list[Row]) -> str:
    """One cell; blank where no trial asked the checker."""
    promise, said = rows[0].promise, {row.outcomes[column] for row in rows if column in row.outcomes}
    if not said:
        return " "
    if NODE_LOSS in said:
        return "n"
    if column == promise:
        return "✗" if said == {Outcome.INVALID} else "!"
    if not promise or column in ALWAYS:
        return "·" if said == {Outcome.VALID} else "!"
    return "x" if Outcome.INVALID in said else "?" if Outcome.UNKNOWN in said else "·"


def _count(rows: list[Row]) -> str:
    wrong, right = [row for row in rows if row.promise], [row for row in rows if not row.promise]
    hidden = [row for row in wrong if row.outcomes[row.promise] == NODE_LOSS]
    caught = [row for row in wrong if row.outcomes[row.promise] == Outcome.INVALID]
    passed = [row for row in right if set(row.outcomes.values()) == {Outcome.VALID}]
    said = f"{len(caught)} of {len(wrong) - len(hidden)} wrong jobs caught by the checker of their table"
    more = f", {len(hidden)} needs the loss of a node" if hidden else ""
    return f"{said}{more}; {len(passed)} of {len(right)} trials of right jobs valid by every checker"
