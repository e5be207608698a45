"""A fault that acts: undone on paper first, injected, seen in evidence, healed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from harness.capabilities import ManagedCluster, NodeHost, Processes, QueueHost, Target
from harness.errors import HealError, InjectionError
from harness.history import AttemptExited, Cause, Event, Located, SignalSent
from harness.scenario import Layout
from harness.undo import ClusterAction, NothingToUndo, RestoreCluster, Undo


class ActiveFault(Protocol):
    """One injection in one attempt."""

    def undo(self) -> Undo:
        """What is owed once it has acted; the caller makes it durable before ``inject``.

        Raises:
            InjectionError: When the victim is not there, so there is nothing to inject into.
        """
        ...

    def inject(self) -> str:
        """Act, and say what was done.

        Raises:
            InjectionError: When it could not act.
        """
        ...

    def observe(self, events: Sequence[Event], /) -> str:
        """Evidence of the effect, or "" while it has not been seen; asked again and again with what is new since ``inject``.

        Raises:
            InjectionError: When it has turned out that there will be no effect.
        """
        ...

    @property
    def heal_after_s(self) -> float | None:
        """Seconds after ``inject`` when it is to be healed; None: at the end of the run, or not known yet."""
        ...

    def heal(self) -> str:
        """End the fault and say how that was seen; doing it twice is harmless.

        Where that takes a while it begins, and returns "" until it has been seen: it is asked again, and at the end of the run the undo
        is performed instead, which waits.

        Raises:
            HealError: When it still acts.
        """
        ...


@runtime_checkable
class StagedFault(ActiveFault, Protocol):
    """A fault that goes on after ``inject``: it acts in several stages, or needs to know what happens for its end."""

    def advance(self, events: Sequence[Event], /) -> None:
        """Take in what is new since ``inject``, tick by tick until it is healed, and act when the moment of the next stage has come.

        Raises:
            InjectionError: When the next stage could not act.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that a fault knows when it acts.

    Attributes:
        injection: Its name in the history.
        fault: Its kind.
        target: On which it acts.
        victim: Whom it hits.
        layout: How the job lays out its checkpoints.
        kept_dir: For originals of what it damages.
        now_s: Seconds since the run was opened.
    """

    injection: str
    fault: str
    target: Target
    victim: Processes
    layout: Layout
    kept_dir: Path
    now_s: Callable[[], float]

    def failed(self, reason: object) -> InjectionError:
        """The error that says why the fault could not act."""
        return InjectionError(injection=self.injection, fault=self.fault, reason=str(reason))

    def unhealed(self, reason: object) -> HealError:
        """The error that says why the fault still acts."""
        return HealError(injection=self.injection, reason=str(reason))

    @contextmanager
    def injecting(self) -> Iterator[None]:
        """What the target cannot do within is a fault that could not act."""
        try:
            yield
        except LookupError as error:
            raise self.failed(error) from error

    @contextmanager
    def healing(self) -> Iterator[None]:
        """What the target cannot do within is a fault that acts still."""
        try:
            yield
        except LookupError as error:
            raise self.unhealed(error) from error

    def concerns(self, event: Located) -> bool:
        """Whether an event is of the attempt that is hit."""
        return (event.task, event.attempt) == (self.victim.task, self.victim.attempt)

    def is_signal(self, event: Event, *, cause: Cause, signal: str) -> bool:
        """Whether an event says that the victim was sent this signal for this cause."""
        if not isinstance(event, SignalSent) or not self.concerns(event):
            return False
        return (event.rank, event.cause, event.signal) == (self.victim.rank, cause, signal)

    def exit_for(self, event: Event, causes: Sequence[Cause]) -> str:
        """How the attempt ended, in words, when the event says that it did for one of these causes; else ""."""
        if not isinstance(event, AttemptExited) or not self.concerns(event) or event.cause not in causes:
            return ""
        how = f"exit code {event.exit_code}" if event.signal is None else f"signal {event.signal}"
        return f"attempt {event.attempt} of task {event.task} ended with {how} (cause: {event.cause})"


class OneWay:
    """A fault that is over once it has acted, and leaves nothing that outlives the run's own processes and directory."""

    heal_after_s: float | None = None
    lasting = "nothing to heal: what was ended stays ended, the platform decides what comes next"

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        return NothingToUndo(why=self.lasting)

    def heal(self) -> str:
        """See ``ActiveFault``."""
        return self.lasting


def cluster_undo(target: NodeHost | QueueHost, actions: Sequence[ClusterAction]) -> Undo:
    """What takes back what is done to a cluster.

    Raises:
        LookupError: When no execution runs.
    """
    if isinstance(target, ManagedCluster):
        return target.undo_of(actions)
    return RestoreCluster(cluster=target.cluster_name, uid=target.cluster_uid(), actions=tuple(actions))


def named(pids: Sequence[int]) -> str:
    """Process ids as a reader looks for them."""
    return f"process {pids[0]}" if len(pids) == 1 else f"processes {', '.join(map(str, pids))}"


ASKED_EVERY_S = 0.5
"""How often the state of a cluster is asked for that comes by no event: its controllers need about as long to take in a change."""


@dataclass(slots=True)
class Pace:
    """Says yes at once, and then no more often than every ``ASKED_EVERY_S``."""

    now_s: Callable[[], float]
    _next_s: float = field(default=0.0, init=False)

    def is_due(self) -> bool:
        """Whether it is time to ask."""
        now_s = self.now_s()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + ASKED_EVERY_S
        return True
