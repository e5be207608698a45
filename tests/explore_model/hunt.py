"""Hypothesis hunts for a broken promise, within a bounded number of examples; and the matrix of what it finds."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from harness.explore.judgement import Judgement
from harness.verdict import Outcome
from tests.explore_model.job import Kind
from tests.explore_model.machine import DISTINCT, BrokenPromiseError, CrashMachine, Surface, machine

STEPS_MAX = 12
"""Rules in one example: enough for three lives of a job."""


class PromiseHunt(CrashMachine):
    """Fails only where the promise that is looked for is broken; whatever else breaks, it goes on.

    Attributes:
        promise: Its name.
        examples: How many were begun.
    """

    promise = ""
    examples = 0

    def _run(self, files: dict[str, bytes | None]) -> None:
        type(self).examples += self.generation == 0
        super()._run(files)

    def _hold(self, judgement: Judgement, found: str) -> None:
        if any(broken.promise == self.promise and broken.outcome is Outcome.INVALID for broken in judgement.broken):
            raise BrokenPromiseError(self.surface, found, judgement)


def run(crashes: type[CrashMachine], *, examples_max: int, **options: object) -> None:
    """Run a machine; what it finds is raised."""
    chosen = settings(
        max_examples=examples_max,
        stateful_step_count=STEPS_MAX,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        **options,
    )
    run_state_machine_as_test(crashes, settings=chosen)


def hunt(kind: Kind, surface: Surface, promise: str, *, examples_max: int) -> int:
    """How many examples it took until the promise was broken; 0: it was not. The same as long as the code is."""
    crashes = machine(kind, [surface], base=PromiseHunt)
    crashes.promise = promise
    try:
        run(crashes, examples_max=examples_max, derandomize=True, phases=[Phase.generate])
    except BrokenPromiseError:
        return crashes.examples - 1  # what fails is run once more
    return 0


def is_valid(kind: Kind, surface: Surface, *, examples_max: int) -> bool:
    """Whether no promise at all was broken; the same as long as the code is."""
    try:
        run(machine(kind, [surface]), examples_max=examples_max, derandomize=True, phases=[Phase.generate])
    except BrokenPromiseError:
        return False
    return True


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpointer.

    Attributes:
        name: Its name.
        promise: The one that it is known to break.
        examples: By surface, how many examples it took to find that; 0: it is right there, and was valid.
    """

    name: str
    promise: str
    examples: dict[str, int]


def draw(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of the matrix."""
    columns, rows = [str(surface) for surface in DISTINCT], sorted(rows, key=lambda row: row.name)
    width = max(len(row.name) for row in rows)
    for number, column in enumerate(columns):
        yield " " * width + "   │" * number + f"   {column}"
    for row in rows:
        cells = "".join(f" {row.examples[column] or '·':>3}" for column in columns)
        yield f"{row.name:<{width}}{cells}   {row.promise}"
    yield ""
    yield "a number: examples until Hypothesis found the promise broken   · valid there"
    found = Counter(row.promise for row in rows)
    yield f"{len(rows)} wrong checkpointers, by promise: " + ", ".join(f"{promise} {count}" for promise, count in sorted(found.items()))
