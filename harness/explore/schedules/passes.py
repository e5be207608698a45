"""Ways to make a case smaller, one after another, the one that helps a reader most first.

Each pass offers cases that differ from the given one in one thing, the smallest first, with what was done in words. Whether they still fail
is not its business; that they are schedules of the job is seen to by whoever tries them.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from harness.explore.schedules.cases import Case, Trial
from harness.explore.schedules.dropping import NOTICES, is_at_notice, is_notice_for, waits_for_notice
from harness.scenario import Fault, Injection, Scenario, Trigger, Workload, injection_name, kind_of
from harness.scenario.cluster_faults import BreakNode, DeletePods, DrainNode, EvictPods, InterruptNode, LoseNode, LosePool
from harness.scenario.faults import EndGrace, ExpireTimeout, Kill, KillRayProcess, Maintenance, OverlapAttempts, Terminate
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, OnLog

Pass = Callable[[Case, Trial], Iterator[tuple[str, Case]]]
"""Offers smaller cases: what was done, and the case then."""

STEPS_MIN = 2


def milder_scopes(case: Case, _trial: Trial) -> Iterator[tuple[str, Case]]:
    """Pool → node → pod → process; and a kill instead of a notice, for then nothing hangs on what the job makes of it."""
    for index, injection in enumerate(case.injections):
        for fault in milder(injection.fault):
            others = case.injections[index + 1 :]
            if isinstance(injection.fault, NOTICES) and any(
                waits_for_notice(other) and is_notice_for(injection, other) for other in others
            ):
                continue  # a pair: see ``one_signal``
            done = f"{_name(case, index)}: {kind_of(fault)} instead of {kind_of(injection.fault)}"
            yield from _offer_changed(case, done, index, fault=fault)


def milder(fault: Fault) -> Sequence[Fault]:
    """Faults of less scope, the least first."""
    match fault:
        case LosePool():
            return (Kill(), DeletePods(), LoseNode(duration_s=fault.duration_s))
        case LoseNode() | BreakNode() | InterruptNode() | DrainNode():
            return (Kill(), DeletePods())
        case DeletePods() | EvictPods() | KillRayProcess() | OverlapAttempts() | Terminate():
            return (Kill(),)
        case Maintenance() | ExpireTimeout():
            return (Kill(), Terminate())
        case _:
            return ()


def one_signal(case: Case, _trial: Trial) -> Iterator[tuple[str, Case]]:
    """SIGTERM and what followed it become one SIGKILL: at the second moment where it comes without a notice, else at the first."""
    for index, notice in enumerate(case.injections):
        for other in range(index + 1, len(case.injections)):
            follower = case.injections[other]
            if not is_notice_for(notice, follower) or not isinstance(follower.fault, Kill | EndGrace | Terminate):
                continue
            moments = [notice.at] if waits_for_notice(follower) and is_at_notice(follower.at) else [follower.at, notice.at]
            for at in moments:
                kill = msgspec.structs.replace(notice, fault=Kill(), at=at)
                rest = [one for place, one in enumerate(case.injections) if place not in (index, other)]
                yield from _offer(
                    case, f"one kill instead of {_name(case, index)} and {_name(case, other)}", (*rest[:index], kill, *rest[index:])
                )


def one_victim(case: Case, _trial: Trial) -> Iterator[tuple[str, Case]]:
    """The first rank instead of all of them, or of another."""
    if case.scenario.workload.ranks < 2:
        return
    for index, injection in enumerate(case.injections):
        if injection.victim.rank_number != 0:
            victim = msgspec.structs.replace(injection.victim, rank=0)
            at = (
                msgspec.structs.replace(injection.at, rank=0) if isinstance(injection.at, AtStep | AtMarker | AtOperation) else injection.at
            )
            yield from _offer_changed(case, f"{_name(case, index)}: rank 0 alone", index, victim=victim, at=at)


def earlier_moments(case: Case, trial: Trial) -> Iterator[tuple[str, Case]]:
    """An address that holds in the next run instead of seconds, a line or an operation; then the first occurrence, or an earlier one."""
    for index, injection in enumerate(case.injections):
        for at in _simpler(injection.at, trial.markers.get(_name(case, index))):
            yield from _offer_changed(case, f"{_name(case, index)}: an earlier or plainer moment", index, at=at)


def fewer_attempts(case: Case, _trial: Trial) -> Iterator[tuple[str, Case]]:
    """A fault that acts in several attempts acts in the first of them alone."""
    for index, injection in enumerate(case.injections):
        if len(injection.attempts) > 1:
            first = injection.attempts[:1]
            yield from _offer_changed(case, f"{_name(case, index)}: in attempt {first[0]} alone", index, attempts=first)


def smaller_runs(case: Case, _trial: Trial) -> Iterator[tuple[str, Case]]:
    """Half the steps, and no more tasks than are hit."""
    scenario = case.scenario
    tasks = max((injection.victim.task for injection in case.injections), default=0) + 1
    if tasks < scenario.platform.tasks:
        platform = msgspec.structs.replace(scenario.platform, tasks=tasks, parallelism=0)
        yield (
            f"{tasks} of {scenario.platform.tasks} tasks",
            msgspec.structs.replace(case, scenario=msgspec.structs.replace(scenario, platform=platform)),
        )
    yield from _with_fewer_steps(case)


def is_of_job(smaller: Scenario, scenario: Scenario) -> bool:
    """Whether two scenarios are of one job on one platform, but for the size of the run."""
    tasks, parallelism = smaller.platform.tasks, smaller.platform.parallelism
    platform = msgspec.structs.replace(scenario.platform, tasks=tasks, parallelism=parallelism)
    workload = _with_steps(scenario.workload, smaller.workload.steps)
    same = (scenario.name, workload, platform, scenario.cluster)
    return same == (smaller.name, smaller.workload, smaller.platform, smaller.cluster)


PASSES: tuple[Pass, ...] = (one_signal, milder_scopes, one_victim, fewer_attempts, earlier_moments, smaller_runs)


def _simpler(at: Trigger, marker: AtMarker | None) -> Iterator[Trigger]:
    match at:
        case AfterSeconds() | OnLog():
            if marker is not None:
                yield marker
        case AtOperation():
            if at.after:
                yield AtMarker(event=at.after, nth=at.after_nth, rank=at.rank)
            yield from (msgspec.structs.replace(at, nth=nth) for nth in _earlier(at.nth))
        case AtMarker():
            yield from (msgspec.structs.replace(at, nth=nth) for nth in _earlier(at.nth))
            if at.when == "before":
                yield msgspec.structs.replace(at, when="after")
        case AtStep():
            yield from (msgspec.structs.replace(at, step=step) for step in _earlier(at.step))


def _earlier(number: int) -> Iterator[int]:
    """The first, the one half way, and the one before."""
    yield from dict.fromkeys(nth for nth in (1, number // 2, number - 1) if 1 <= nth < number)


def _with_fewer_steps(case: Case) -> Iterator[tuple[str, Case]]:
    """A job takes its steps from a variable or an argument that holds the number and nothing else; one that does not keeps them."""
    workload, steps = case.scenario.workload, case.scenario.workload.steps
    half = steps // 2
    last = max((injection.at.step for injection in case.injections if isinstance(injection.at, AtStep)), default=1)
    if half < max(STEPS_MIN, last) or not _names_of_steps(workload):
        return
    fewer = _with_steps(workload, half)
    yield f"{half} of {steps} steps", msgspec.structs.replace(case, scenario=msgspec.structs.replace(case.scenario, workload=fewer))


def _with_steps(workload: Workload, steps: int) -> Workload:
    environment = workload.environment | dict.fromkeys(_names_of_steps(workload), str(steps))
    return msgspec.structs.replace(workload, steps=steps, environment=environment)


def _names_of_steps(workload: Workload) -> list[str]:
    return [name for name, value in workload.environment.items() if value == str(workload.steps) and "STEP" in name.upper()]


def _offer(case: Case, done: str, injections: tuple[Injection, ...]) -> Iterator[tuple[str, Case]]:
    """The case with these faults, where they are a schedule of the job."""
    try:
        yield done, case.with_injections(injections)
    except ValueError:  # refused, as a notice without which a grace has not begun
        return


def _offer_changed(case: Case, done: str, index: int, **fields: object) -> Iterator[tuple[str, Case]]:
    """The case with one fault changed, where there is such a fault and such a schedule of the job."""
    try:
        changed = msgspec.structs.replace(case.injections[index], **fields)
    except ValueError:  # refused, as one that hits whole attempts and would hit a rank alone
        return
    yield from _offer(case, done, (*case.injections[:index], changed, *case.injections[index + 1 :]))


def _name(case: Case, index: int) -> str:
    return injection_name(case.injections, index)
