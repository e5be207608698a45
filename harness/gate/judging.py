"""Passes, fails, or is unknown: each figure against its threshold and against the accepted one, each scenario, the gate."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from harness.gate.comparability import differences, listed, no_match, quoted, unmatched
from harness.gate.figures import FIGURE_NAMES, KINDS, ROUNDING, Figure, FigureName, told, told_difference, worst_of
from harness.gate.result import Accepted, AcceptedScenario, Measured, MeasuredScenario
from harness.gate.standards import THRESHOLD_FIELDS, Standard, Standards
from harness.verdict import Outcome, counted

Ruling = Literal["pass", "unknown", "fail"]

_RANK: Mapping[Ruling, int] = {"pass": 0, "unknown": 1, "fail": 2}

_RULINGS: Mapping[Outcome, Ruling] = {Outcome.VALID: "pass", Outcome.UNKNOWN: "unknown", Outcome.INVALID: "fail"}


@dataclass(frozen=True, slots=True)
class Before:
    """A figure as it was accepted; None: there was nothing to measure."""

    value: float | None

    def as_good_as(self, name: FigureName) -> float | None:
        """What a later one is compared with: where nothing died, no step was lost and no time; None: nothing."""
        return self.value if self.value is not None else KINDS[name].when_absent


class JudgedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a scenario: the worst of its runs, what it was held against, and what came of it.

    Attributes:
        figure: The worst of all runs.
        ruling: ``pass`` also where nothing was asked.
        threshold: What it may not be worse than.
        accepted: What was accepted; None: nothing that it may be compared with.
        change: From the accepted one.
        is_asked: Whether not measured is unknown.
        reasons: Why it does not pass, but for not having been measured.
    """

    figure: Figure
    ruling: Ruling
    is_asked: bool = False
    threshold: float | None = None
    accepted: float | None = None
    change: float | None = None
    reasons: tuple[str, ...] = ()


class JudgedScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario: ``verdict`` is the worst of its runs, ``reasons`` say why it does not pass, ``runs`` are their directories."""

    name: str
    ruling: Ruling
    verdict: Outcome
    figures: dict[FigureName, JudgedFigure]
    reasons: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of a gate.

    Attributes:
        ruling: The worst of its scenarios; unknown where there is a reason for it.
        scenarios: Those that are due.
        reasons: Why it does not pass as a whole: what was accepted and is not held against anything.
        notes: What must be known of it.
    """

    ruling: Ruling
    scenarios: tuple[JudgedScenario, ...]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def judge(measured: Measured, standards: Mapping[str, Standards], accepted: Accepted | None) -> Judged:
    """Judge everything that was measured.

    Args:
        measured: By a gate.
        standards: What is asked of each scenario, by name.
        accepted: What it is compared with; None: thresholds only.
    """
    comparable = accepted if accepted is not None and accepted.target == measured.target else None
    before = comparable.scenarios if comparable is not None else {}
    scenarios = tuple(judge_scenario(scenario, standards[scenario.name], before.get(scenario.name)) for scenario in measured.scenarios)
    stopped = (f"ended early: {quoted(measured.stopped)}",) if measured.stopped else ()
    reasons = tuple(unmatched(measured, accepted)) if accepted is not None else ()
    as_a_whole: Ruling = "unknown" if reasons else "pass"
    return Judged(
        ruling=worst([as_a_whole, *(scenario.ruling for scenario in scenarios)]),
        scenarios=scenarios,
        reasons=reasons,
        notes=(*stopped, *_notes(measured, accepted, scenarios)),
    )


def judge_scenario(measured: MeasuredScenario, standards: Standards, accepted: AcceptedScenario | None) -> JudgedScenario:
    """Judge a scenario: its verdicts have no tolerance; what was not run, or cannot be held against what was accepted, is unknown."""
    compared = accepted.figures if accepted is not None and accepted.digest == measured.digest else {}
    figures = {
        name: judge_figure(name, worst_figure(measured, name), standards[name], Before(compared[name]) if name in compared else None)
        for name in FIGURE_NAMES
    }
    verdicts = {run.verdict for run in measured.runs}
    unlike = tuple(no_match(measured, accepted)) if accepted is not None else ()
    is_matched: Ruling = "unknown" if unlike else "pass"
    is_whole = bool(measured.seeds) and not measured.unmade
    sound = Outcome.VALID if is_whole else Outcome.UNKNOWN
    verdict = next((each for each in (Outcome.INVALID, Outcome.UNKNOWN) if each in verdicts), sound)
    return JudgedScenario(
        name=measured.name,
        ruling=worst([_RULINGS[verdict], is_matched, *(figure.ruling for figure in figures.values())]),
        verdict=verdict,
        figures=figures,
        reasons=(*_run_reasons(measured), *_figure_reasons(measured, figures), *unlike),
        runs=tuple(run.run for run in measured.runs if run.run),
    )


def judge_figure(name: FigureName, figure: Figure, standard: Standard, before: Before | None) -> JudgedFigure:
    """Judge a figure by its threshold, by the accepted one, and by whether it was measured at all."""
    before = before if standard.tolerance is not None else None
    had = before.value if before is not None else None
    is_due = standard.is_named or had is not None
    is_asked = is_due or standard.is_wanted or (before is not None and before.as_good_as(name) is not None)
    reasons = [*_over_threshold(name, figure, standard), *_regression(name, figure, standard, before)]
    ruling: Ruling = "fail" if reasons else "unknown" if is_asked and figure.missing else "pass"
    if figure.is_absent and is_due:
        why = "it is asked for of this scenario" if had is None else f"{told(name, had)} was accepted"
        reasons, ruling = [f"{KINDS[name].label}: there was nothing to measure, and {why}"], "unknown"
    return JudgedFigure(
        figure=figure,
        ruling=ruling,
        is_asked=is_asked,
        threshold=standard.threshold,
        accepted=had,
        change=figure.value - had if figure.value is not None and had is not None else None,
        reasons=tuple(reasons),
    )


def worst_figure(measured: MeasuredScenario, name: FigureName) -> Figure:
    """The worst of a scenario's runs; what one of them does not tell is missing."""
    if not measured.runs:
        return Figure(missing="it was not run")
    return worst_of(name, [run.figures.get(name, Figure(missing="the result does not tell it")) for run in measured.runs])


def _over_threshold(name: FigureName, figure: Figure, standard: Standard) -> Iterator[str]:
    if figure.value is None or standard.threshold is None or KINDS[name].worse(figure.value, standard.threshold) <= ROUNDING:
        return
    limit = f"{THRESHOLD_FIELDS[name]} is {told(name, standard.threshold)}"
    yield f"{KINDS[name].label} {told(name, figure.value)}: {limit}"


def _regression(name: FigureName, figure: Figure, standard: Standard, before: Before | None) -> Iterator[str]:
    good = before.as_good_as(name) if before is not None else None
    if before is None or good is None or figure.value is None or standard.tolerance is None:
        return
    by, allowed = KINDS[name].worse(figure.value, good), standard.tolerance.allowed(good)
    if by > allowed + ROUNDING:
        accepted = f"the accepted {told(name, good)}" if before.value is not None else "when it was accepted, where nothing died"
        more = f"{told_difference(name, by)} worse than {accepted}; {told_difference(name, allowed)} is allowed"
        yield f"regression: {KINDS[name].label} {told(name, figure.value)} is {more}"


def _run_reasons(measured: MeasuredScenario) -> Iterator[str]:
    """Why its runs do not pass, each reason once, the worst first."""
    for outcome in (Outcome.INVALID, Outcome.UNKNOWN):
        runs = [run for run in measured.runs if run.verdict is outcome]
        yield from dict.fromkeys(f"{outcome}: {reason}" for run in runs for reason in run.reasons or ("the run says no reason",))
    if measured.unmade or not measured.seeds:
        yield f"{measured.unmade} of {counted(len(measured.seeds), 'run')} not made: {measured.undone or 'nothing says why'}"


def _figure_reasons(measured: MeasuredScenario, figures: Mapping[FigureName, JudgedFigure]) -> Iterator[str]:
    """Why its figures do not pass; what is missing for one reason is told once."""
    for judged in figures.values():
        yield from judged.reasons
    if not measured.runs:
        return  # that it was not run is told
    missing: dict[str, list[str]] = {}
    for name, judged in figures.items():
        if judged.is_asked and judged.figure.missing:
            missing.setdefault(judged.figure.missing, []).append(KINDS[name].label)
    yield from (f"not measured: {', '.join(labels)}: {why}" for why, labels in missing.items())


def _notes(measured: Measured, accepted: Accepted | None, scenarios: Sequence[JudgedScenario]) -> Iterator[str]:
    """What a reader must know: what was not compared, and why; what was not measured, and nobody asked for."""
    if accepted is None:
        yield "no result is accepted yet: only verdicts and thresholds were judged; `harness gate --accept` accepts one"
    elif accepted.target == measured.target:
        yield from differences(measured, accepted)
    for name in FIGURE_NAMES:
        silent = [each.name for each in scenarios if each.figures[name].figure.missing and not each.figures[name].is_asked and each.runs]
        if silent:
            yield f"{KINDS[name].label} was not measured and is not asked for: {listed(silent)}"


def worst(rulings: Iterable[Ruling]) -> Ruling:
    """The worst; nothing fails and nothing is unknown where nothing was asked."""
    return max(rulings, key=_RANK.__getitem__, default="pass")
