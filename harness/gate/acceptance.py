"""A result is accepted when all of it is proved: then later ones are compared with it."""

from collections.abc import Mapping

from harness.errors import HarnessError
from harness.gate.figures import FIGURE_NAMES, FigureName
from harness.gate.judging import Judged, judge, worst_figure
from harness.gate.result import Accepted, AcceptedScenario, Measured, MeasuredScenario
from harness.gate.standards import Standards

DIGITS = 6
"""After the point, in the accepted result: people read its changes."""


class NotAcceptableError(HarnessError):
    """A result with verdicts that are not valid, or figures that do not keep the thresholds: it is no measure for later ones."""

    def __init__(self, *, judged: Judged) -> None:
        self.ruling = judged.ruling
        bad = [scenario for scenario in judged.scenarios if scenario.ruling != "pass"]
        first = bad[0] if bad else None
        why = f"{first.name}: {first.reasons[0]}" if first is not None and first.reasons else "nothing was run"
        super().__init__(f"not accepted: {len(bad)} of {len(judged.scenarios)} scenarios do not pass by themselves, as {why}")


def accept(measured: Measured, standards: Mapping[str, Standards]) -> Accepted:
    """What is accepted of a result. That it is worse than the one before is no hindrance: accepting it says that it may be.

    Raises:
        NotAcceptableError: When it does not pass even when it is compared with nothing.
    """
    judged = judge(measured, standards, None)
    if judged.ruling != "pass" or not judged.scenarios:
        raise NotAcceptableError(judged=judged)
    return Accepted(
        target=measured.target,
        made_at=measured.made_at,
        commit=measured.commit,
        versions=measured.versions,
        surroundings=measured.surroundings,
        scenarios={scenario.name: _accepted(scenario) for scenario in measured.scenarios},
    )


def _accepted(scenario: MeasuredScenario) -> AcceptedScenario:
    figures: dict[FigureName, float | None] = {}
    for name in FIGURE_NAMES:
        worst = worst_figure(scenario, name)
        if not worst.missing:
            figures[name] = None if worst.value is None else round(worst.value, DIGITS)
    return AcceptedScenario(digest=scenario.digest, seeds=tuple(run.seed for run in scenario.runs), figures=figures)
