"""How attempts end: by the last word of their agent, or where it had none by the platform's."""

import signal
from collections.abc import Callable, Iterator
from typing import Literal

from harness.capabilities import Launch
from harness.history import AttemptExited, AttemptStarted, Event
from harness.targets.gcp.attempt import EVENT_LIMITS, Attempt
from harness.targets.gcp.attempt_words import lost, named

Ours = Literal["", "cancel", "stop"]
"""What we have done to the whole execution."""


class AttemptExits:
    """Of one execution; ``ours`` tells what we have done to all of it by now, and ``is_cancelled`` whether it was cancelled."""

    def __init__(self, launch: Launch, *, ours: Callable[[], Ours], is_cancelled: Callable[[], bool]) -> None:
        self._launch, self._ours, self._is_cancelled = launch, ours, is_cancelled

    def tell_exit(self, attempt: Attempt, now_s: float) -> list[Event]:
        """The end of an attempt, by its agent's last word."""
        report = attempt.exit
        assert report is not None
        attempt.is_over = True
        events: list[Event] = []
        key = attempt.key
        if not attempt.pid:
            hello_at = attempt.hello.at if attempt.hello is not None else report.at
            events.append(AttemptStarted(t_s=attempt.times.place(hello_at, now_s), task=key.task, attempt=key.attempt, pid=0))
        events += self._not_recorded(attempt, now_s)
        if not report.swept:
            events.append(lost(self._launch, now_s, "events", 1, f"{named(key)}: processes withstood SIGKILL; what they do is not seen"))
        t_s = attempt.times.place(report.ended or report.at, now_s)
        return [*events, self._exited(attempt, t_s, exit_code=report.code, number=report.signal, leftovers=report.leftovers)]

    def _not_recorded(self, attempt: Attempt, now_s: float) -> Iterator[Event]:
        """What its job has said and is no event, or is too much."""
        limits = f"over the limits of {EVENT_LIMITS.events} events, {EVENT_LIMITS.bytes} bytes"
        for count, why in ((attempt.over_count, limits), (attempt.garbage_count, "lines of its job that are no events")):
            if count:
                yield lost(self._launch, now_s, "events", count, f"{named(attempt.key)}: {why}")

    def tell_silent_exit(self, attempt: Attempt, now_s: float, *, exit_code: int | None, number: int | None) -> list[Event]:
        """The end of an attempt whose agent has no last word, by the platform's; with neither code nor signal nobody knows how it ended."""
        attempt.is_over = True
        key, t_s = attempt.key, now_s - self._launch.epoch_s
        events: list[Event] = []
        if not attempt.pid:
            events.append(AttemptStarted(t_s=t_s, task=key.task, attempt=key.attempt, pid=0))
        events += self._not_recorded(attempt, now_s)
        what = "how it ended is not known" if exit_code is None and number is None else "what its job said last is not known"
        events.append(lost(self._launch, now_s, "events", 1, f"{named(key)}: its agent did not say a last word; {what}"))
        if exit_code is None and number is None:
            number = signal.SIGKILL  # whoever ends otherwise has the time to say so
        if number == signal.SIGKILL and attempt.had_notice:
            attempt.ended_by = "stop" if self._ours() == "stop" else "grace"
        elif number is not None and attempt.ended_by is None and self._is_cancelled():
            attempt.ended_by = "stop" if self._ours() == "stop" else "cancel"
        return [*events, self._exited(attempt, t_s, exit_code=None if number is not None else exit_code, number=number, leftovers=0)]

    def _exited(self, attempt: Attempt, t_s: float, *, exit_code: int | None, number: int | None, leftovers: int) -> AttemptExited:
        succeeded = exit_code == 0 and number is None
        return AttemptExited(
            t_s=t_s,
            task=attempt.key.task,
            attempt=attempt.key.attempt,
            exit_code=exit_code,
            signal=number,
            cause=attempt.cause(succeeded=succeeded, killed=number == signal.SIGKILL),
            leftovers=leftovers,
            retried=not succeeded and not self._is_cancelled() and attempt.key.attempt < self._launch.max_retries,
        )
