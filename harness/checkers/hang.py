"""Nobody waits for ever: no live attempt is silent for too long, and where one is, the rank that the others wait for is named."""

from operator import attrgetter

from harness.checkers.evidence import Evidence, Ruling
from harness.history import AttemptExited, Event, HangCalled, JobEvent, RunClosed
from harness.scenario.expectations import NoHang
from harness.verdict import Finding
from harness.watchdog import Watchdog

CHECKER = "no-hang"


def check(expectation: NoHang, evidence: Evidence) -> Finding:
    """Take the watchdog's word, and let one watch the history again: it may have been written without."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("events"))
    called = [event for event in evidence.events if isinstance(event, HangCalled)]
    spoken = any(isinstance(event, JobEvent) for event in evidence.events)
    again, quiet_s_max = _watch_again(evidence, expectation.quiet_s)
    for hang in [*called, *([again] if again and not called else [])]:
        ranks = ", ".join(map(str, hang.ranks))
        ruling.broken.append(
            f"attempt {hang.attempt} of task {hang.task} hung: nothing for {hang.quiet_s:.1f} s at {hang.t_s:.2f} s; rank {ranks}: {hang.detail}"
        )
    ruling.measures = {"quiet_s_max": round(quiet_s_max, 3)}
    nothing = "" if spoken else "the job said nothing that could be watched: give it log patterns, or let it write events"
    return ruling.conclude(
        CHECKER, f"no live attempt was silent for more than {quiet_s_max:.1f} s of {expectation.quiet_s:g} s", nothing=nothing
    )


def _watch_again(evidence: Evidence, quiet_s: float) -> tuple[HangCalled | None, float]:
    """Replay the history to a watchdog: the first silence that was too long, and the longest one."""
    watchdog = Watchdog(quiet_s=quiet_s, ranks=evidence.scenario.workload.ranks)
    longest = 0.0
    for event in sorted(evidence.events, key=attrgetter("t_s")):
        if isinstance(event, _ENDING_SILENCE):
            silence_s = watchdog.quiet_s(event.t_s)
            longest = max(longest, silence_s)
            hang = watchdog.overdue(event.t_s) if silence_s >= quiet_s else None
            if hang is not None and not _is_late_word(event, hang):
                return hang, longest
        watchdog.feed([event])
    return None, longest


_ENDING_SILENCE = (JobEvent, AttemptExited, RunClosed)


def _is_late_word(event: Event, hang: HangCalled) -> bool:
    """Whether the silence was ended by another attempt's word: then it is looked at again at its own."""
    return isinstance(event, JobEvent) and (event.task, event.attempt) != (hang.task, hang.attempt)
