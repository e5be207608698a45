"""The contract on a project: under whose plan it runs there. ``python -m tests.contract.project`` makes the plan, and changes nothing."""

import sys
from pathlib import Path

from harness.cli.project_plan import TARGET, AskedOfProject, plan_or_apply, project_asked_for
from harness.clock import SystemClock
from harness.scenario import Platform, Scenario, Workload
from harness.scenario.expectations import Completes

CONTRACT = Scenario(
    name="the-contract-of-a-target",
    why="what every target owes, with small jobs of every kind, each under its own name and gone afterwards",
    workload=Workload(name="contract-job", command=("true",)),
    platform=Platform(tasks=5, max_retries=3),
    expects=(Completes(),),
    deadline_s=60.0,
)
"""Each run of the suite begins as one of it; the plan's limits are for all of them together."""

PLAN = Path("plan.json")


def main() -> int:
    """Make the plan of the place that the environment names."""
    then = f"pytest tests/contract -k gcp --target {TARGET} --apply {PLAN}"
    asked = AskedOfProject(options={}, limits={}, config=None, plans=True, apply=None, plan_file=PLAN, then=then)
    project = project_asked_for(TARGET, asked)
    assert project is not None
    return plan_or_apply(project, [CONTRACT], seed=0, clock=SystemClock(), as_json=False) or 0


if __name__ == "__main__":
    sys.exit(main())
