"""The four figures of a gate: what was measured of a run, what could not be, and what there was nothing to measure of."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from harness.report.wording import duration, share

FigureName = Literal["lost_steps", "recovery_s", "goodput", "grace_margin_s"]

FIGURE_NAMES: tuple[FigureName, ...] = get_args(FigureName)
"""In the order in which they are shown."""

ROUNDING = 1e-6
"""Figures are differences of floating-point times, and are accepted to so many digits; what differs by less does not differ."""

ABSENT = "-"
"""Shown where there was nothing to measure."""

MISSING = "?"
"""Shown where it should have been measured, and was not."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a figure is: its words, whether more of it is better, what is as good as nothing to measure, and between what it can lie."""

    label: str
    more_is_better: bool
    when_absent: float | None = None
    least: float = 0.0
    most: float = math.inf

    def worse(self, one: float, other: float) -> float:
        """By how much the first is worse than the second; negative: it is better."""
        return other - one if self.more_is_better else one - other

    def worst(self, values: Iterable[float]) -> float | None:
        """The worst of some values; None where there are none."""
        return min(values, default=None) if self.more_is_better else max(values, default=None)


KINDS: Mapping[FigureName, Kind] = {
    "lost_steps": Kind("lost steps", more_is_better=False, when_absent=0.0),
    "recovery_s": Kind("recovery", more_is_better=False, when_absent=0.0),
    "goodput": Kind("goodput", more_is_better=True, most=1.0),
    "grace_margin_s": Kind("margin to grace", more_is_better=True, least=-math.inf),
}


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A figure of a run, or the worst of several.

    Attributes:
        value: What was measured; None: nothing.
        missing: Why it was not measured, or not of all runs, where it should have been. Empty with no value: there was nothing to measure,
            as no margin without SIGTERM.
    """

    value: float | None = None
    missing: str = ""

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):  # written, it would be read as nothing to measure
            raise ValueError(f"a figure is a finite number, and not {self.value}")

    @property
    def is_absent(self) -> bool:
        """Whether there was nothing to measure."""
        return self.value is None and not self.missing


def measured(name: FigureName, value: float, *, missing: str = "") -> Figure:
    """A value that was measured; one that the figure cannot have was not, whatever clocks said. ``missing``: what else was not."""
    kind = KINDS[name]
    if math.isfinite(value) and kind.least - ROUNDING <= value <= kind.most + ROUNDING:
        return Figure(value=value, missing=missing)
    return Figure(missing="; ".join([f"{kind.label} of {value:g} cannot be", *([missing] if missing else [])]))


def worst_of(name: FigureName, figures: Iterable[Figure]) -> Figure:
    """The worst of several runs; missing in one is missing, and so is what cannot be."""
    found = tuple(figure if figure.value is None else measured(name, figure.value, missing=figure.missing) for figure in figures)
    values = [figure.value for figure in found if figure.value is not None]
    return Figure(value=KINDS[name].worst(values), missing=next((figure.missing for figure in found if figure.missing), ""))


def told(name: FigureName, value: float) -> str:
    """A value in words."""
    if name == "lost_steps":
        return f"{value:,.10g}"
    return share(value, 1.0) if name == "goodput" else duration(value)


def told_figure(name: FigureName, figure: Figure) -> str:
    """A figure in words."""
    if figure.value is None:
        return MISSING if figure.missing else ABSENT
    return told(name, figure.value) + (MISSING if figure.missing else "")


def told_difference(name: FigureName, difference: float) -> str:
    """How much two values differ, in words; of goodput in points of a percent."""
    return f"{abs(difference) * 100:.1f} points" if name == "goodput" else told(name, abs(difference))


def told_change(name: FigureName, change: float) -> str:
    """A difference in words, with its sign."""
    sign = "+" if change > 0 else "−" if change < 0 else "±"
    return sign + told_difference(name, change)
