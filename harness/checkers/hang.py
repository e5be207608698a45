"""Nobody waits for ever: no live attempt is silent for too long, and where one is, the rank that the others wait for is named."""

from operator import attrgetter

from harness.checkers.evidence import Evidence, Ruling
from harness.history import AttemptExited, HangCalled, JobEvent, RunClosed
from harness.scenario.expectations import NoHang
from harness.verdict import Finding
from harness.watchdog import Watchdog

CHECKER = "no-hang"


def check(expectation: NoHang, evidence: Evidence) -> Finding:
    """Take the watchdog's word, and let one watch the history again: it may have been written without."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost_words())
    called = evidence.of_type(HangCalled)
    spoken = any(isinstance(event, JobEvent) for event in evidence.events)
    again, quiet_s_max = _watch_again(evidence, expectation.quiet_s)
    if again is not None and not called and spoken:
        _judge_again(again, evidence, ruling)
    (ruling.doubts if evidence.may_be_unheard else ruling.broken).extend(_told(hang) for hang in called)
    ruling.measures = {"quiet_s_max": round(quiet_s_max, 3)}
    nothing = "" if spoken else "the job said nothing that could be watched: give it log patterns, or let it write events"
    return ruling.conclude(
        CHECKER, f"no live attempt was silent for more than {quiet_s_max:.1f} s of {expectation.quiet_s:g} s", nothing=nothing
    )


def _judge_again(hang: HangCalled, evidence: Evidence, ruling: Ruling) -> None:
    """A silence that nobody called at its time; where words of the job are lost, it may have been none."""
    (ruling.doubts if evidence.lost_words() else ruling.broken).append(_told(hang))


def _told(hang: HangCalled) -> str:
    who = hang.detail or f"rank {', '.join(map(str, hang.ranks))}"
    return f"attempt {hang.attempt} of task {hang.task} hung: nothing for {hang.quiet_s:.1f} s at {hang.t_s:.2f} s; {who}"


def _watch_again(evidence: Evidence, quiet_s: float) -> tuple[HangCalled | None, float]:
    """Replay the history to a watchdog: the first silence that was too long, and the longest one."""
    watchdog = Watchdog(quiet_s=quiet_s, ranks=evidence.scenario.workload.ranks_heard)
    longest = 0.0
    heard_s = float("-inf")  # no live attempt was heard last before this: so nobody need be asked before a silence can be the longest
    for event in sorted(evidence.events, key=attrgetter("t_s")):
        if event.t_s - heard_s > longest and isinstance(event, _ENDING_SILENCE):
            silence_s = watchdog.quiet_s(event.t_s)
            longest, heard_s = max(longest, silence_s), event.t_s - silence_s
            hang = watchdog.overdue(event.t_s) if silence_s >= quiet_s else None
            if hang is not None:
                return hang, longest
        watchdog.take(event)
    return None, longest


_ENDING_SILENCE = (JobEvent, AttemptExited, RunClosed)
