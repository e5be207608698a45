"""Leaving faults out of a schedule, so that what is left still makes sense.

An attempt exists because the one before it died: without that death what was to happen in it happens one attempt earlier. And a fault that
waits for another, or for the job to notice a notice, goes with it.
"""

from collections.abc import Collection, Sequence

import msgspec

from harness.scenario import Injection, Trigger, injection_name
from harness.scenario.faults import (
    EndGrace,
    ExpireTimeout,
    FailWrites,
    Kill,
    KillRayProcess,
    Maintenance,
    OverlapAttempts,
    Pause,
    SlowWrites,
    Terminate,
)
from harness.scenario.triggers import AtMarker, AtOperation, OnEffect

NOTICES = (Terminate, Maintenance, ExpireTimeout)

PASSING = (Pause, SlowWrites, FailWrites)
"""Faults after which the attempt goes on."""

DEATHS = (*NOTICES, EndGrace, Kill, KillRayProcess, OverlapAttempts)


def keep_only(injections: Sequence[Injection], kept: Collection[int]) -> tuple[Injection, ...]:
    """The injections at these places, without those that wait for one that is gone, each in the attempt that there is then."""
    closed = _without_orphans(injections, sorted(kept))
    left = [injections[index] for index in closed]
    named = [_named(injections, index, closed) for index in closed]
    return tuple(_moved_up(injection, _gone(injections, left, injection.victim.task)) for injection in named)


def waits_for_notice(injection: Injection) -> bool:
    """Whether it acts only on a job that was told to go."""
    return isinstance(injection.fault, EndGrace) or is_at_notice(injection.at)


def is_at_notice(at: Trigger) -> bool:
    """Whether a moment comes only once a job has noticed that it was told to go."""
    return (isinstance(at, AtMarker) and at.event == "sigterm") or (isinstance(at, AtOperation) and at.after == "sigterm")


def is_notice_for(notice: Injection, injection: Injection) -> bool:
    """Whether the one is the notice that the other waits for."""
    is_same_task = notice.victim.task == injection.victim.task
    return isinstance(notice.fault, NOTICES) and is_same_task and bool(set(notice.attempts) & set(injection.attempts))


def _without_orphans(injections: Sequence[Injection], kept: Sequence[int]) -> list[int]:
    closed: list[int] = []
    for index in kept:
        injection = injections[index]
        if isinstance(injection.at, OnEffect):
            names = [injection_name(tuple(injections), before) for before in closed]
            is_there = injection.at.of in names
        elif waits_for_notice(injection):
            is_there = any(is_notice_for(injections[before], injection) for before in closed)
        else:
            is_there = True
        closed += [index] if is_there else []
    return closed


def _named(injections: Sequence[Injection], index: int, closed: Sequence[int]) -> Injection:
    """One that another waits for keeps its name, although its place is another now."""
    name = injection_name(tuple(injections), index)
    others = (injections[other].at for other in closed)
    is_awaited = any(isinstance(at, OnEffect) and at.of == name for at in others)
    return msgspec.structs.replace(injections[index], name=name) if is_awaited else injections[index]


def _gone(before: Sequence[Injection], left: Sequence[Injection], task: int) -> list[int]:
    """The attempts of a task that nothing ends any more."""
    return sorted(_ended(before, task) - _ended(left, task))


def _ended(injections: Sequence[Injection], task: int) -> set[int]:
    return {attempt for one in injections if isinstance(one.fault, DEATHS) and one.victim.task == task for attempt in one.attempts}


def _moved_up(injection: Injection, gone: Sequence[int]) -> Injection:
    """In the attempt that its own becomes when those are gone; of two that become one it acts in that one."""
    moved = (attempt - sum(other < attempt for other in gone) for attempt in injection.attempts)
    return msgspec.structs.replace(injection, attempts=tuple(sorted(set(moved))))
