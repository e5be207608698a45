"""A scenario: faults and expectations declared on one workload."""

import re
from typing import Literal

import msgspec

from harness.scenario.cluster import Cluster
from harness.scenario.expectations import Expectation
from harness.scenario.faults import (
    CancelExecution,
    DamageFault,
    EndGrace,
    ExpireTimeout,
    Fault,
    Kill,
    KillRayProcess,
    Maintenance,
    OverlapAttempts,
    Terminate,
    kind_of,
)
from harness.scenario.platform import Platform
from harness.scenario.rules import positive, require
from harness.scenario.triggers import AtOperation, AtSubmission, OnCondition, OnEffect, Trigger
from harness.scenario.workload import Workload

SENTENCE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
"""Names of scenarios are kebab-case sentences: they are read as test ids."""

INJECTION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names of injections are parts of paths, where what they damage is kept."""

INJECTIONS_MAX = 16
"""Of a scenario."""


class Victim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is hit: an attempt of a task as a whole, or one of its ranks.

    Attributes:
        task: Index of the task.
        rank: ``all`` is the whole attempt with all its processes; ``coordinator`` is rank 0; a number is that rank's process alone.
    """

    task: int = 0
    rank: int | Literal["all", "coordinator"] = "all"

    def __post_init__(self) -> None:
        require(self.task >= 0, "task", self.task, "tasks are counted from 0")
        if isinstance(self.rank, int):
            require(self.rank >= 0, "rank", self.rank, "ranks are counted from 0")

    @property
    def rank_number(self) -> int:
        """The rank, or -1 for the whole attempt."""
        if isinstance(self.rank, int):
            return self.rank
        return 0 if self.rank == "coordinator" else -1


class Injection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault at one moment, once in each of ``attempts``: so a job can be killed again while it recovers.

    Attributes:
        fault: What happens.
        at: When, within an attempt.
        victim: To whom.
        attempts: In which attempts (from 0). ``OnEffect`` hits once, the attempt in which the effect was seen; in another task, this one.
        name: For ``OnEffect`` of another injection, and in reports; unique. Without one it is the fault's kind and its place.
    """

    fault: Fault
    at: Trigger
    victim: Victim = Victim()
    attempts: tuple[int, ...] = (0,)
    name: str = ""

    def __post_init__(self) -> None:
        require(
            not self.name or bool(INJECTION_NAME.fullmatch(self.name)),
            "name",
            self.name,
            "letters, digits, '.', '_' and '-', at most 100 of them, the first a letter or a digit",
        )
        require(bool(self.attempts), "attempts", self.attempts, "at least one attempt")
        require(all(attempt >= 0 for attempt in self.attempts), "attempts", self.attempts, "attempts are counted from 0")
        require(len(set(self.attempts)) == len(self.attempts), "attempts", self.attempts, "each attempt once")
        if self.acts_once:
            require(len(self.attempts) == 1, "attempts", self.attempts, "one attempt: this trigger acts once")
        if isinstance(self.fault, KillRayProcess) and self.fault.component == "worker":
            require(self.victim.rank != "all", "victim.rank", self.victim.rank, "a train worker is one rank: name it")
        if isinstance(self.fault, OverlapAttempts | CancelExecution):
            require(self.victim.rank == "all", "victim.rank", self.victim.rank, "this fault hits whole attempts: all")
        if isinstance(self.fault, DamageFault):
            require(
                isinstance(self.at, OnEffect),
                "at",
                type(self.at).__name__,
                "storage at rest is damaged on the effect of another injection (on-effect)",
            )

    @property
    def acts_once(self) -> bool:
        """Whether its trigger goes by something outside of attempts: it acts once, in whatever attempt that comes."""
        return isinstance(self.at, OnEffect | AtSubmission | OnCondition)


def _ends_attempt(injection: Injection) -> bool:
    """Whether the effect of an injection is seen only when an attempt has ended with all its processes, or storage was at rest already."""
    if isinstance(injection.fault, Maintenance):
        return injection.victim.rank == "all" and injection.fault.ends_attempt
    return injection.victim.rank == "all" and isinstance(injection.fault, Kill | ExpireTimeout | CancelExecution | DamageFault)


def _gives_notice(injection: Injection) -> bool:
    """Whether an injection is SIGTERM with a grace after it."""
    fault = injection.fault
    return isinstance(fault, Terminate | ExpireTimeout | CancelExecution) or (isinstance(fault, Maintenance) and fault.ends_attempt)


def _noticed(earlier: tuple[Injection, ...], end: Injection) -> bool:
    """Whether the victim whose grace is to end has got notice before, in each of the attempts; one that goes by effects may in any."""
    notices = [each for each in earlier if _gives_notice(each) and _hits_alike(each, end)]
    attempts = {attempt for each in notices for attempt in each.attempts}
    is_anywhere = end.acts_once or any(each.acts_once for each in notices)
    return bool(notices) and (is_anywhere or attempts.issuperset(end.attempts))


def _hits_alike(notice: Injection, end: Injection) -> bool:
    """The grace of a timeout or a cancel is that of the whole attempt, and a cancel is for all tasks."""
    if isinstance(notice.fault, CancelExecution):
        return end.victim.rank_number < 0
    rank = -1 if isinstance(notice.fault, ExpireTimeout) else notice.victim.rank_number
    return (notice.victim.task, rank) == (end.victim.task, end.victim.rank_number)


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ordered faults of one run, as data: ``schedule.json``."""

    injections: tuple[Injection, ...] = ()

    def __post_init__(self) -> None:
        names = [injection_name(self.injections, index) for index in range(len(self.injections))]
        require(len(set(names)) == len(names), "injections", names, "names of injections are unique")
        for index, injection in enumerate(self.injections):
            require(
                not isinstance(injection.fault, EndGrace) or _noticed(self.injections[:index], injection),
                f"injections[{index}].fault.type",
                kind_of(injection.fault),
                "a grace must have begun: an earlier injection gives notice (terminate, maintenance) to the same victim in its attempts",
            )
            if isinstance(injection.at, OnEffect):
                require(
                    injection.at.of in names[:index],
                    f"injections[{index}].at.of",
                    injection.at.of,
                    f"an earlier injection: {names[:index]}",
                )
                by = self.injections[names.index(injection.at.of)]
                require(
                    not isinstance(injection.fault, DamageFault) or _ends_attempt(by),
                    f"injections[{index}].at.of",
                    injection.at.of,
                    "an injection seen when a whole attempt has ended, like kill or maintenance: before that storage is not at rest",
                )


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Faults and expectations declared on one workload.

    Attributes:
        name: A kebab-case sentence that states the promise.
        why: The sentence of a guide, the public report or the finding behind it.
        workload: The job.
        platform: What the platform grants it.
        cluster: How it is submitted where the target is a cluster; others pass over it.
        injections: The faults; empty for an uninterrupted run.
        expects: The promises; at least one.
        within_budget: Whether the faults lie inside what the platform can retry: then recovery is owed, else a clean, bounded failure.
        deadline_s: Seconds from the start of the execution after which the run is ended and the promise of completion broken.
        tags: For selection: ``slow``, ``cloud-run-guide``, ``case-12``, ``ray``.
    """

    name: str
    why: str
    workload: Workload
    expects: tuple[Expectation, ...]
    platform: Platform = Platform()
    cluster: Cluster = Cluster()
    injections: tuple[Injection, ...] = ()
    within_budget: bool = True
    deadline_s: float = 60.0
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            bool(SENTENCE.fullmatch(self.name)) and len(self.name) <= 120,
            "name",
            self.name,
            "a kebab-case sentence of at most 120 characters",
        )
        require(bool(self.why.strip()), "why", self.why, "a sentence: what this proves, and where the promise is written")
        require(bool(self.expects), "expects", self.expects, "at least one expectation: a run that checks nothing proves nothing")
        wanted = f"at most {INJECTIONS_MAX}: beyond that no reader follows a run"
        require(len(self.injections) <= INJECTIONS_MAX, "injections", len(self.injections), wanted)
        positive("deadline_s", self.deadline_s)
        kinds = [type(expectation) for expectation in self.expects]
        require(len(set(kinds)) == len(kinds), "expects", sorted(kind.__name__ for kind in kinds), "each kind of expectation once")
        Schedule(injections=self.injections)
        for index, injection in enumerate(self.injections):
            _require_fit(injection, f"injections[{index}]", self.workload, self.platform)

    @property
    def schedule(self) -> Schedule:
        """The faults alone."""
        return Schedule(injections=self.injections)


def _require_fit(injection: Injection, place: str, workload: Workload, platform: Platform) -> None:
    """Refuse what this job, on this platform, has not got."""
    task, rank, top = injection.victim.task, injection.victim.rank_number, max(injection.attempts)
    require(task < platform.tasks, f"{place}.victim.task", task, "a task of the platform")
    require(rank < workload.ranks, f"{place}.victim.rank", rank, "a rank of the workload")
    require(top <= platform.max_retries, f"{place}.attempts", top, f"there are at most {platform.max_retries + 1} attempts")
    if isinstance(injection.at, AtOperation):
        wanted = "nothing: who holds operations hears the words of the protocol, not a log; count from the attempt's start"
        require(workload.speaks_protocol or not injection.at.after, f"{place}.at.after", injection.at.after, wanted)


def injection_name(injections: tuple[Injection, ...], index: int) -> str:
    """The name an injection goes by in the history: its own, or its place and kind, like ``2-kill``."""
    injection = injections[index]
    return injection.name or f"{index + 1}-{kind_of(injection.fault)}"
