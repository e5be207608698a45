"""``gate.toml``: what a release must pass, within which thresholds and budget, and by how much it may be worse than the last one."""

import math
from pathlib import Path
from typing import Literal

import msgspec

from harness.scenario import convert, read_toml
from harness.scenario.rules import positive, require

GATE_NAME = "gate.toml"

SEEDS_MAX = 100
"""Runs of one scenario: more is a campaign, and no gate."""

STEPS_MAX = 1 << 53
"""Up to which a figure, a floating-point number, tells whole steps."""

TARGET_PLACE = "{target}"
"""Stands in ``accepted`` for the target's name: figures of one target say nothing of another."""

Off = Literal["none"]
"""Not asked for, though ``[thresholds]`` or ``[regression]`` does so for all."""


class GateTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[gate]``: what is run. One of ``scenarios``, ``tags`` and ``all`` says which scenarios.

    Attributes:
        config: A ``harness.toml``, relative to this file: its scenarios, and its ``[gcp]``. Empty: the scenarios of ``catalogue``.
        catalogue: ``module:attribute`` of a mapping of names to scenarios, imported from the directory of this file, or from ``--root``.
        scenarios: By name.
        tags: Those with one of the tags.
        all: All that belong to the target.
        slow: With ``tags`` or ``all``: those that are tagged ``slow`` too.
        seeds: Each scenario is run with each of them.
        repeats: Each scenario is run so many times with each seed. The worst of all its runs counts.
        accepted: The accepted result, relative to this file; ``{target}`` stands for the target.
    """

    config: str = ""
    catalogue: str = ""
    scenarios: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    all: bool = False
    slow: bool = False
    seeds: tuple[int, ...] = (0,)
    repeats: int = 1
    accepted: str = "accepted.json"

    def __post_init__(self) -> None:
        for name in ("config", "catalogue", "accepted"):
            value = getattr(self, name)
            require("\0" not in value, name, value, "the name of a file")
        require(not any("\0" in name for name in self.scenarios), "scenarios", list(self.scenarios), "names of scenarios or files")
        require(
            not (self.config and self.catalogue),
            "catalogue",
            self.catalogue,
            "nothing, where there is a config: scenarios come from one place",
        )
        asked = [name for name, given in (("scenarios", self.scenarios), ("tags", self.tags), ("all", self.all)) if given]
        require(
            len(asked) == 1,
            "scenarios",
            list(self.scenarios),
            f"one of scenarios, tags and all says what is run; given: {', '.join(asked) or 'none'}",
        )
        require(bool(self.seeds) and len(set(self.seeds)) == len(self.seeds), "seeds", list(self.seeds), "different numbers, at least one")
        require(
            self.repeats >= 1 and self.repeats * len(self.seeds) <= SEEDS_MAX,
            "repeats",
            self.repeats,
            f"a number >= 1, with at most {SEEDS_MAX} runs of a scenario",
        )
        require(bool(self.accepted.strip()), "accepted", self.accepted, "the name of a file")


class BudgetTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[budget]``: what the gate may take; what is not done when it is used up is unknown.

    Attributes:
        duration_s: Seconds from the first run; then what runs is ended. Not given: as long as it takes.
        gpu_hours: On the target ``gcp``: from the beginning of each run to its end, times the GPUs that it may hold. Not given: no limit.
    """

    duration_s: float | None = None
    gpu_hours: float | None = None

    def __post_init__(self) -> None:
        if self.duration_s is not None:
            positive("duration_s", self.duration_s)
        if self.gpu_hours is not None:
            positive("gpu_hours", self.gpu_hours, zero_allowed=True)


class ThresholdsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[thresholds]``: what no run may be worse than. Not given: it is not asked for; ``"none"``: not of this scenario.

    Attributes:
        lost_steps_max: Steps executed and not retained, over all resumes of a run.
        recovery_s_max: Seconds from a fault to the first step that is new, of the longest recovery.
        goodput_min: Share of the wall time that was spent on steps that were retained, of the worst task: 0 to 1.
        grace_margin_s_min: Seconds that were left of the shortest grace.
    """

    lost_steps_max: int | Off | None = None
    recovery_s_max: float | Off | None = None
    goodput_min: float | Off | None = None
    grace_margin_s_min: float | Off | None = None

    def __post_init__(self) -> None:
        steps, seconds, share, margin = self.lost_steps_max, self.recovery_s_max, self.goodput_min, self.grace_margin_s_min
        require(not isinstance(steps, int) or 0 <= steps <= STEPS_MAX, "lost_steps_max", steps, f"a number of steps from 0 to {STEPS_MAX}")
        if isinstance(seconds, float):
            positive("recovery_s_max", seconds, zero_allowed=True)
        require(not isinstance(share, float) or 0 <= share <= 1, "goodput_min", share, "a share of the time, from 0 to 1")
        require(not isinstance(margin, float) or math.isfinite(margin), "grace_margin_s_min", margin, "a finite number of seconds")


class Tolerance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By how much a figure may be worse than the accepted one: the larger of both.

    Attributes:
        absolute: In the figure's own unit: steps, seconds, a share of 0 to 1.
        relative: Times the accepted figure.
    """

    absolute: float = 0.0
    relative: float = 0.0

    def __post_init__(self) -> None:
        positive("absolute", self.absolute, zero_allowed=True)
        positive("relative", self.relative, zero_allowed=True)

    def allowed(self, accepted: float) -> float:
        """In the figure's own unit."""
        return max(self.absolute, self.relative * abs(accepted))


class RegressionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[regression]``: by how much a figure may be worse than the accepted one; ``"none"``: not compared. Verdicts have no tolerance.

    Attributes:
        lost_steps: Not given: one step; where kills follow a log, they come a step earlier or later.
        recovery_s: Not given: half as long again, or 2 s.
        goodput: Not given: a fifth of it.
        grace_margin_s: Not given: 1 s.
    """

    lost_steps: Tolerance | Off | None = None
    recovery_s: Tolerance | Off | None = None
    goodput: Tolerance | Off | None = None
    grace_margin_s: Tolerance | Off | None = None


class ScenarioTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[scenarios."name"]``: what is otherwise for one scenario. A figure that is asked for here must be measured.

    Attributes:
        thresholds: As ``[thresholds]``; what is not given stays as it says there.
        regression: As ``[regression]``; likewise.
    """

    thresholds: ThresholdsTable = ThresholdsTable()
    regression: RegressionTable = RegressionTable()


class GateConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole ``gate.toml``."""

    gate: GateTable
    budget: BudgetTable = BudgetTable()
    thresholds: ThresholdsTable = ThresholdsTable()
    regression: RegressionTable = RegressionTable()
    scenarios: dict[str, ScenarioTable] = {}

    def runs_of_each(self) -> tuple[int, ...]:
        """The seeds of the runs of each scenario, in order."""
        return tuple(seed for _ in range(self.gate.repeats) for seed in self.gate.seeds)


def read_gate(path: Path) -> GateConfig:
    """Read a ``gate.toml``.

    Raises:
        InvalidDocumentError: When it cannot be read or does not validate.
    """
    document = read_toml(path, advice="name the file of the gate with --config")
    scenarios = document.get("scenarios")
    for name, table in scenarios.items() if isinstance(scenarios, dict) else ():
        convert(table, ScenarioTable, document=f'{path}: scenarios."{name}"')  # as a part of the whole it would be refused without its name
    return convert(document, GateConfig, document=str(path))
