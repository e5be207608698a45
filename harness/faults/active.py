"""A fault that acts: undone on paper first, injected, seen in evidence, healed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.capabilities import Processes, Target
from harness.errors import HealError, InjectionError
from harness.history import AttemptExited, Cause, Event, Located, SignalSent
from harness.scenario import Layout
from harness.undo import NothingToUndo, Undo


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
        """Seconds after ``inject`` when it is to be healed; None: at the end of the run."""
        ...

    def heal(self) -> str:
        """End the fault and say how that was seen; doing it twice is harmless.

        Raises:
            HealError: When it still acts.
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
    """

    injection: str
    fault: str
    target: Target
    victim: Processes
    layout: Layout
    kept_dir: Path

    def failed(self, reason: object) -> InjectionError:
        """The error that says why the fault could not act."""
        return InjectionError(injection=self.injection, fault=self.fault, reason=str(reason))

    def unhealed(self, reason: object) -> HealError:
        """The error that says why the fault still acts."""
        return HealError(injection=self.injection, reason=str(reason))

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


def named(pids: Sequence[int]) -> str:
    """Process ids as a reader looks for them."""
    return f"process {pids[0]}" if len(pids) == 1 else f"processes {', '.join(map(str, pids))}"
