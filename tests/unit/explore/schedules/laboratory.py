"""A job in memory of which it is known under which schedules it fails, and how."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.explore.schedules.cases import Case, Signature, Trial
from harness.scenario import Injection, Platform, Scenario, Workload
from harness.scenario.expectations import Completes
from harness.scenario.faults import Pause
from harness.scenario.triggers import AtMarker
from harness.verdict import Outcome

JOB = Workload(name="job", command=("job",), steps=40, save_every=5, environment={"STEPS": "40", "WIDTH": "40"})
TORN: Signature = ("intact-checkpoints step_*/data",)

Bug = Callable[[Case], Signature]
"""How the job fails in a case; empty: it does not."""


def case_of(*injections: Injection, workload: Workload = JOB, **platform: int) -> Case:
    return Case(
        scenario=Scenario(
            name="a-job-is-killed",
            why="a test",
            workload=workload,
            platform=Platform(max_retries=5, **platform),
            injections=injections,
            expects=(Completes(),),
        )
    )


@dataclass
class Laboratory:
    """Runs cases, and remembers which.

    Attributes:
        bug: What is wrong with the job.
        markers: What it had said last when an injection acted, by the injection's name.
    """

    bug: Bug
    markers: dict[str, AtMarker] = field(default_factory=dict)
    ran: list[Case] = field(default_factory=list)

    def run(self, case: Case) -> Trial:
        self.ran.append(case)
        signature = self.bug(case)
        outcome = Outcome.INVALID if signature else Outcome.VALID
        return Trial(outcome=outcome, signature=signature, run=f"runs/{len(self.ran)}", markers=self.markers)


def is_at(injection: Injection, event: str) -> bool:
    """Whether it dies, or is told to go, there."""
    return not isinstance(injection.fault, Pause) and isinstance(injection.at, AtMarker) and injection.at.event == event


def dies_in_a_save(case: Case) -> Signature:
    """The simple bug: a death at the beginning of any save."""
    return TORN if any(is_at(one, "save.begin") for one in case.injections) else ()


def dies_in_a_save_and_in_the_restore_after_it(case: Case) -> Signature:
    """The narrow one: it takes two deaths, the second in the attempt right after the first."""
    for first in case.injections:
        for second in case.injections:
            follows = set(second.attempts) & {attempt + 1 for attempt in first.attempts}
            if is_at(first, "save.begin") and is_at(second, "restore.begin") and follows:
                return TORN
    return ()
