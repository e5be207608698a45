"""Whether runs may begin on a project at all: only those of a plan that a person has applied. The command line tells its workers which."""

import os
from collections.abc import Mapping
from pathlib import Path

from harness.clock import Clock
from harness.errors import UsageError
from harness.scenario import Scenario
from harness.targets.gcp.advice import planning
from harness.targets.gcp.applying import require_current
from harness.targets.gcp.connection import EMULATOR_VARIABLE
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Plan, digest_of, read_plan

PLAN_VARIABLE = "HARNESS_GCP_PLAN"
"""Set for the processes that make the runs of an applied plan; it names the file."""


class NotAppliedError(UsageError):
    """Something was to begin on a project without an applied plan."""

    def __init__(self, *, project: str) -> None:
        super().__init__(
            f"nothing begins on project {project} without a plan: make one with {planning()}, read it, then apply it with "
            f"--apply plan.json in the place of --plan"
        )


class NotPlannedError(UsageError):
    """A plan was applied, and something else was to begin."""

    def __init__(self, *, project: str, name: str, seed: int) -> None:
        what = f"scenario {name} with seed {seed}" if name else "a run of no scenario"
        super().__init__(
            f"{what} is not of the plan that was applied to project {project}, as it was planned; make a plan of it with {planning()}, "
            f"and read it"
        )


def require_applied(
    place: Place, clock: Clock, environment: Mapping[str, str] = os.environ, *, scenario: Scenario | None, seed: int = 0
) -> Plan | None:
    """See that a run is one of an applied plan: its place, scenario, seed; None on an emulator, where there is nothing to be careful with.

    Raises:
        NotAppliedError: When there is none.
        NotPlannedError: When there is one of other scenarios, or of another seed.
        PlanRefusedError: When it is of another place, or its time is over.
        HarnessError: When it cannot be read.
    """
    named = environment.get(PLAN_VARIABLE, "")
    if not named:
        if environment.get(EMULATOR_VARIABLE):
            return None
        raise NotAppliedError(project=place.project)
    plan = read_plan(Path(named))
    require_current(plan, place=place, clock=clock, late_s=plan.limits.duration_s)
    planned = {digest for each in plan.scenarios for digest in (each.digest, each.uninterrupted) if digest}
    if scenario is None or digest_of(scenario, seed) not in planned:
        raise NotPlannedError(project=place.project, name=scenario.name if scenario is not None else "", seed=seed)
    return plan
