"""What is asked of each figure of a scenario, as ``gate.toml`` says it for all and for one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import UnknownNameError
from harness.gate.document import GateConfig, ScenarioTable, Tolerance
from harness.gate.figures import FIGURE_NAMES, FigureName

USUAL: Mapping[FigureName, Tolerance] = {
    "lost_steps": Tolerance(absolute=1),
    "recovery_s": Tolerance(absolute=2.0, relative=0.5),
    "goodput": Tolerance(relative=0.2),
    "grace_margin_s": Tolerance(absolute=1.0),
}
"""Where ``[regression]`` says nothing: times on a shared machine vary that much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """What is asked of one figure of a scenario.

    Attributes:
        threshold: What it may not be worse than; None: any.
        tolerance: By how much it may be worse than the accepted one; None: it is not compared.
        is_named: Whether it is asked for of this scenario by name: then there must be something to measure.
        is_wanted: Whether it is asked for at all: then not measured is unknown, with an accepted result or without.
    """

    threshold: float | None = None
    tolerance: Tolerance | None = None
    is_named: bool = False
    is_wanted: bool = False


Standards = Mapping[FigureName, Standard]

THRESHOLD_FIELDS: Mapping[FigureName, str] = {
    "lost_steps": "lost_steps_max",
    "recovery_s": "recovery_s_max",
    "goodput": "goodput_min",
    "grace_margin_s": "grace_margin_s_min",
}
"""What the threshold of a figure is called in ``[thresholds]``."""


def refuse_strangers(config: GateConfig, chosen: Sequence[str]) -> None:
    """Refuse what is said of a scenario that is not run: its threshold would hold nothing.

    Raises:
        UnknownNameError: When there is one.
    """
    for name in config.scenarios:
        if name not in chosen:
            raise UnknownNameError(kind="scenario of the gate", name=name, known=chosen)


def standards_of(config: GateConfig, scenario: str) -> Standards:
    """What is asked of each figure of a scenario."""
    own = config.scenarios.get(scenario, ScenarioTable())
    return {name: _standard(config, own, name) for name in FIGURE_NAMES}


def _standard(config: GateConfig, own: ScenarioTable, name: FigureName) -> Standard:
    own_threshold, own_tolerance = getattr(own.thresholds, THRESHOLD_FIELDS[name]), getattr(own.regression, name)
    threshold = own_threshold if own_threshold is not None else getattr(config.thresholds, THRESHOLD_FIELDS[name])
    tolerance = own_tolerance if own_tolerance is not None else getattr(config.regression, name)
    is_compared = isinstance(tolerance, Tolerance)
    return Standard(
        threshold=None if threshold in (None, "none") else float(threshold),
        tolerance=None if tolerance == "none" else tolerance or USUAL[name],
        is_named=own_threshold not in (None, "none") or isinstance(own_tolerance, Tolerance),
        is_wanted=threshold not in (None, "none") or is_compared,
    )
