"""Results of gates, as tests need them."""

from harness.gate.document import GateConfig
from harness.gate.figures import FIGURE_NAMES, Figure
from harness.gate.result import Accepted, AcceptedScenario, Measured, MeasuredRun, MeasuredScenario
from harness.gate.standards import Standards, standards_of
from harness.scenario import convert
from harness.verdict import Outcome

NAME = "a-job-recovers"
GOOD = {"lost_steps": 3.0, "recovery_s": 2.0, "goodput": 0.5, "grace_margin_s": 8.0}


def config(**tables: object) -> GateConfig:
    return convert({"gate": {"all": True}, **tables}, GateConfig, document="gate.toml")


def standards(**tables: object) -> Standards:
    return standards_of(config(**tables), NAME)


def run(verdict: Outcome = Outcome.VALID, reasons: tuple[str, ...] = (), seed: int = 0, **figures: float | Figure | None) -> MeasuredRun:
    values = {**GOOD, **figures}
    made = {name: found if isinstance(found := values[name], Figure) else Figure(value=found) for name in FIGURE_NAMES}
    return MeasuredRun(seed=seed, verdict=verdict, figures=made, reasons=reasons, run="runs/x")


def scenario(*runs: MeasuredRun, name: str = NAME, due: int | None = None, undone: str = "") -> MeasuredScenario:
    made = tuple(run.seed for run in runs)
    seeds = made if due is None else (*made, *(0,) * due)[:due]
    return MeasuredScenario(name=name, digest="d", seeds=seeds, runs=runs, undone=undone)


def measured(*scenarios: MeasuredScenario, **fields: object) -> Measured:
    return Measured(target="local", made_at="2026-01-02T03:04:05", scenarios=scenarios, **fields)  # type: ignore[arg-type]


def accepted(
    name: str = NAME, digest: str = "d", target: str = "local", seeds: tuple[int, ...] = (0,), **figures: float | None
) -> Accepted:
    found = AcceptedScenario(digest=digest, seeds=seeds, figures={**GOOD, **figures})
    return Accepted(target=target, made_at="2026-01-01T00:00:00", scenarios={name: found})
