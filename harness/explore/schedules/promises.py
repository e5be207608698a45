"""What any right job owes under a drawn schedule, where nothing else was promised."""

from harness.explore.schedules.dropping import DEATHS
from harness.scenario import Expectation, Scenario, Schedule, Workload
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    IntactCheckpoints,
    ResumesFromNewestDurable,
    SameResult,
    WithinRetries,
)

DEADLINE_S = 300.0
"""As ``[chaos] deadline_s`` of a ``harness.toml``."""


def scenario_of(job: Scenario | Workload, schedule: Schedule) -> Scenario:
    """The scenario of a schedule on a job: a scenario keeps its promises under other faults, a workload owes what any right job owes.

    Raises:
        RefusedValueError: When the schedule is none of that job.
    """
    if isinstance(job, Scenario):
        fields = {name: getattr(job, name) for name in job.__struct_fields__} | {"injections": schedule.injections}
        return Scenario(**fields)
    return Scenario(
        name=f"{job.name}-survives-what-is-drawn",
        why="a job must recover from whatever its platform may do to it, whenever that is",
        workload=job,
        injections=schedule.injections,
        expects=promises_of(job, schedule),
        deadline_s=DEADLINE_S,
    )


def promises_of(workload: Workload, schedule: Schedule) -> tuple[Expectation, ...]:
    """As much as can be seen of the job: it completes, with one attempt for each death, and has lost nothing that it was to keep."""
    deaths = _deaths(schedule)
    expects: list[Expectation] = [Completes(), WithinRetries(attempts_max=1 + deaths)]
    if workload.outside.result:
        expects.append(SameResult())
    if deaths and (workload.speaks_protocol or workload.outside.inspect):
        expects.append(BitExactResume())
    if deaths and workload.save_every and (workload.speaks_protocol or workload.outside.logs.resumed):
        expects.append(ResumesFromNewestDurable(lost_steps_max=workload.save_every))
    if workload.speaks_protocol and workload.layout != "files":  # of such files a restore alone tells, and not every death leaves one
        expects.append(IntactCheckpoints())
    return tuple(expects)


def _deaths(schedule: Schedule) -> int:
    """The most attempts that end in one task; several faults may end one attempt."""
    ended = {
        (injection.victim.task, attempt)
        for injection in schedule.injections
        if isinstance(injection.fault, DEATHS)
        for attempt in injection.attempts
    }
    return max((sum(task == other for other, _ in ended) for task, _ in ended), default=0)
