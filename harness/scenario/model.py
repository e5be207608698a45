"""A scenario: faults and expectations declared on one workload."""

import re
from typing import Literal

import msgspec

from harness.scenario.cluster import Cluster
from harness.scenario.expectations import Expectation
from harness.scenario.faults import CancelExecution, DamageFault, ExpireTimeout, Fault, Kill, KillRayProcess, Maintenance, OverlapAttempts
from harness.scenario.platform import Platform
from harness.scenario.rules import positive, require
from harness.scenario.triggers import AtSubmission, OnCondition, OnEffect, Trigger
from harness.scenario.workload import Workload

SENTENCE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
"""Names of scenarios are kebab-case sentences: they are read as test ids."""

INJECTION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names of injections are parts of paths, where what they damage is kept."""


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
        return injection.victim.rank == "all" and injection.fault.profile == "cloudrun-job-gpu-maintenance"
    return injection.victim.rank == "all" and isinstance(injection.fault, Kill | ExpireTimeout | CancelExecution | DamageFault)


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ordered faults of one run, as data: ``schedule.json``."""

    injections: tuple[Injection, ...] = ()

    def __post_init__(self) -> None:
        names = [injection_name(self.injections, index) for index in range(len(self.injections))]
        require(len(set(names)) == len(names), "injections", names, "names of injections are unique")
        for index, injection in enumerate(self.injections):
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
        require(len(self.injections) <= 16, "injections", len(self.injections), "at most 16: beyond that no reader follows a run")
        positive("deadline_s", self.deadline_s)
        kinds = [type(expectation) for expectation in self.expects]
        require(len(set(kinds)) == len(kinds), "expects", sorted(kind.__name__ for kind in kinds), "each kind of expectation once")
        Schedule(injections=self.injections)
        for index, injection in enumerate(self.injections):
            require(
                injection.victim.task < self.platform.tasks,
                f"injections[{index}].victim.task",
                injection.victim.task,
                "a task of the platform",
            )
            require(
                injection.victim.rank_number < self.workload.ranks,
                f"injections[{index}].victim.rank",
                injection.victim.rank,
                "a rank of the workload",
            )
            top = max(injection.attempts)
            require(
                top <= self.platform.max_retries,
                f"injections[{index}].attempts",
                top,
                f"there are at most {self.platform.max_retries + 1} attempts",
            )

    @property
    def schedule(self) -> Schedule:
        """The faults alone."""
        return Schedule(injections=self.injections)


def injection_name(injections: tuple[Injection, ...], index: int) -> str:
    """The name an injection goes by in the history: its own, or its place and kind, like ``2-kill``."""
    injection = injections[index]
    return injection.name or f"{index + 1}-{injection.fault.__struct_config__.tag}"
