"""What was asked of a project and takes minutes, waited for beside the loop: each in a thread of its own, until it ends or is given up."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random
from typing import NamedTuple

from harness.clock import Clock
from harness.errors import HarnessError
from harness.targets.gcp.calling import Caller


class Work(NamedTuple):
    """Something that goes on; ``do`` blocks until it has ended, and raises when it failed. It calls with the caller that it is given."""

    what: str
    do: Callable[[Caller], None]


class GivenUpError(Exception):
    """Nobody wants it any more. No defect, and no failure."""


class StoppableClock:
    """A clock whose sleepers wake when work is given up: what has not been asked for yet is then never asked for."""

    def __init__(self, clock: Clock, stopped: threading.Event) -> None:
        self._clock, self._stopped = clock, stopped

    def monotonic_s(self) -> float:
        """See ``Clock``."""
        return self._clock.monotonic_s()

    def utc(self) -> datetime:
        """See ``Clock``."""
        return self._clock.utc()

    def sleep(self, seconds: float) -> None:
        """See ``Clock``.

        Raises:
            GivenUpError: When nobody wants what is waited for.
        """
        self.check()
        self._clock.sleep(seconds)
        self.check()

    def check(self) -> None:
        """See that it is still wanted.

        Raises:
            GivenUpError: When it is not.
        """
        if self._stopped.is_set():
            raise GivenUpError


@dataclass(slots=True)
class Doing:
    """A work that goes on.

    Attributes:
        what: In words.
        is_done: Whether it has ended, well or not.
        failure: Why it failed; empty while it has not.
        stopped: Set when nobody wants it any more.
    """

    what: str
    is_done: bool = False
    failure: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)

    def give_up(self) -> None:
        """Ask for nothing more of it. What was asked for goes on."""
        self.stopped.set()


class Works:
    """Of one run.

    Args:
        caller: Whose calls are made; each thread has one of its own.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._begun: list[Doing] = []
        self._failures: list[str] = []

    def begin(self, *works: Work) -> Doing:
        """Begin to do one after the other; what follows one that failed is not done."""
        doing = Doing("; ".join(work.what for work in works))
        self._begun.append(doing)
        clock = StoppableClock(self._caller.clock, doing.stopped)
        caller = replace(self._caller, clock=clock, chance=Random(len(self._begun)))  # noqa: S311  jitter, no cryptography
        # nobody waits for it at the end of the process: an operation that was asked for goes on without us
        threading.Thread(target=self._do, args=(works, doing, caller, clock), name=doing.what[:60], daemon=True).start()
        return doing

    def give_up(self) -> None:
        """Ask for nothing more of all that has begun."""
        for doing in self._begun:
            doing.give_up()

    def take_failures(self) -> list[str]:
        """What has failed since."""
        failures, self._failures = self._failures, []
        return failures

    def _do(self, works: tuple[Work, ...], doing: Doing, caller: Caller, clock: StoppableClock) -> None:
        try:
            for work in works:
                clock.check()
                work.do(caller)
        except GivenUpError:
            pass
        except HarnessError as error:
            doing.failure = f"{doing.what} has failed: {error}"
            self._failures.append(doing.failure)
        finally:
            doing.is_done = True
