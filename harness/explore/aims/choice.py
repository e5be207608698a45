"""What may be drawn for a job, and the ways in which an attempt of it can end."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.explore.aims.reach import Reach
from harness.scenario import Fault, Platform, Scenario, Workload
from harness.scenario.faults import EndGrace, ExpireTimeout, Kill, Maintenance, OverlapAttempts, Pause, Terminate
from harness.scenario.rules import positive, require
from harness.scenario.triggers import EVENT_NAME, EVENT_WANTED, AtOperation

ATTEMPTS_MAX = 3
"""Attempts that are hit: the first, one that recovers, and one that recovers after a recovery that was broken off."""

FAULTS_MAX = 3
"""Of a schedule, where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ends: a fault, and what follows when the job notices it; ``then`` None: it is left alone with it."""

    fault: Fault
    then: Fault | None = None

    @property
    def gives_notice(self) -> bool:
        """Whether the job is asked to leave; it must be up then, and not be done with its last step."""
        return not isinstance(self.fault, Kill | OverlapAttempts | Pause)

    @property
    def is_whole(self) -> bool:
        """Whether it is for whole attempts only."""
        return isinstance(self.fault, Maintenance | ExpireTimeout | OverlapAttempts)

    @property
    def cost(self) -> int:
        """How many faults it is."""
        return 1 if self.then is None else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a job's moments beside what its workload says.

    Attributes:
        markers: Of its own (``gc.begin``), each said at least once in each of its saves, by the rank that writes.
        operations: Kill points in its storage, from a recording of the job (``harness.explore.schedules.operations_of``); they are hit in
            first attempts.
        last_save: Those of the save that a SIGTERM asks for, counted from ``sigterm`` and done in each such save of a first attempt
            (``operations_since``, from a recording that was told to go as early as may be): a grace ends at them, without waiting.
        seconds_max: Seconds that an attempt lasts for sure, whatever it resumes from: then some faults come after seconds, and none after
            more. 0: none does, for a fault that comes too late proves nothing.
    """

    markers: tuple[str, ...] = ()
    operations: tuple[AtOperation, ...] = ()
    last_save: tuple[AtOperation, ...] = ()
    seconds_max: float = 0.0

    def __post_init__(self) -> None:
        positive("seconds_max", self.seconds_max, zero_allowed=True)
        for marker in self.markers:
            require(bool(EVENT_NAME.fullmatch(marker)), "markers", marker, EVENT_WANTED)
        for at in self.last_save:
            require(at.after == "sigterm", "last_save", f"{at.operation} {at.path} after {at.after!r}", "operations counted from sigterm")


NOTHING_MORE = Known()
"""Beside what the workload says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What may be drawn for a job.

    Attributes:
        workload: The job.
        platform: What it is granted.
        faults: What may happen.
        known: What is known of its moments.
    """

    workload: Workload
    platform: Platform
    faults: tuple[Fault, ...]
    known: Known

    @property
    def reach(self) -> Reach:
        """What the job is sure to reach."""
        return Reach(self.workload, self.known.markers)

    @property
    def attempts_max(self) -> int:
        """A death more than there are retries is the end of the task, and recovery is owed no more."""
        return min(ATTEMPTS_MAX, self.platform.max_retries)

    @property
    def pauses(self) -> tuple[Pause, ...]:
        """Faults that end nothing."""
        return tuple(fault for fault in self.faults if isinstance(fault, Pause))

    def endings(self) -> list[Ending]:
        """Every way in which an attempt can be ended, the simplest first."""
        if not self.attempts_max:
            return []
        alone = [Ending(fault) for fault in self.faults if not isinstance(fault, Pause | EndGrace)]
        first = [fault for fault in self.faults if isinstance(fault, Terminate)] if self.reach.says_sigterm else []
        second = [fault for fault in self.faults if isinstance(fault, Kill | Terminate | EndGrace)]
        both = [Ending(fault, then) for fault in first for then in second]
        return sorted([*alone, *both], key=lambda ending: (ending.cost, ending.gives_notice))


def choice_of(job: Scenario | Workload, faults: Iterable[Fault], known: Known = NOTHING_MORE) -> Choice:
    """What may be drawn for a job; of a scenario its workload and its platform count."""
    workload, platform = (job.workload, job.platform) if isinstance(job, Scenario) else (job, Platform())
    return Choice(workload=workload, platform=platform, faults=tuple(faults), known=known)
