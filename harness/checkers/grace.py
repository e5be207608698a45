"""What the job does with its notice: signal, seen, saved, durable, gone, and how much of the grace was left.

A row of the budget for each SIGTERM (training-stack 3.3): notice to seen, seen to save, save to durable, durable to exit, margin.
"""

from dataclasses import dataclass

from harness.checkers.evidence import Evidence, Ruling
from harness.history import ExecutionStarted, SaveBegun, SaveEnded, SigtermSeen, StepDone
from harness.lineage import Attempt
from harness.scenario.expectations import GraceConduct
from harness.verdict import Finding

CHECKER = "grace-conduct"

NOTICES = frozenset({"fault", "timeout", "cancel", "platform"})
"""Causes of a SIGTERM that comes with the platform's grace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conduct:
    """The time-line of one notice; each moment is None where it was not seen."""

    attempt: Attempt
    signal_s: float
    grace_s: float
    last_step: int
    seen_s: float | None
    begun: SaveBegun | None
    ended: SaveEnded | None
    exit_s: float | None

    @property
    def margin_s(self) -> float | None:
        """What was left of the grace at the exit."""
        return None if self.exit_s is None else self.grace_s - (self.exit_s - self.signal_s)

    def __str__(self) -> str:
        moments = [
            ("seen", self.seen_s),
            ("save", self.begun.t_s if self.begun else None),
            ("durable", self.ended.t_s if self.ended else None),
            ("exit", self.exit_s),
        ]
        told = ", ".join(f"{name} +{moment - self.signal_s:.2f} s" for name, moment in moments if moment is not None)
        margin = "" if self.margin_s is None else f"; margin {self.margin_s:.2f} s of {self.grace_s:g} s"
        return f"task {self.attempt.task} attempt {self.attempt.number}: SIGTERM at {self.signal_s:.2f} s, {told or 'nothing after it'}{margin}"


def check(expectation: GraceConduct, evidence: Evidence) -> Finding:
    """Judge every notice that the platform gave."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("events"))
    conducts = [conduct for attempt in evidence.lineage.attempts if (conduct := _conduct(attempt, evidence)) is not None]
    for conduct in conducts:
        ruling.facts.append(str(conduct))
        _judge_exit(conduct, expectation, ruling)
        if expectation.saves:
            _judge_save(conduct, evidence, ruling)
    ruling.measures = _measures(conducts)
    nothing = "" if conducts else "the platform sent no SIGTERM with a grace to an attempt that could have heard it"
    return ruling.conclude(CHECKER, "; ".join(str(conduct) for conduct in conducts), nothing=nothing)


def _conduct(attempt: Attempt, evidence: Evidence) -> _Conduct | None:
    notice = next(
        (signal for signal in attempt.signals if signal.signal == "SIGTERM" and signal.cause in NOTICES and signal.rank < 0), None
    )
    if notice is None:
        return None
    events = [event for life in attempt.incarnations for event in life.events]
    after = [event for event in events if event.t_s >= notice.t_s]
    steps = [event.step for event in events if isinstance(event, StepDone) and event.rank == 0]
    saves = [event for event in after if isinstance(event, SaveBegun)]
    ended = [event for event in after if isinstance(event, SaveEnded)]
    granted = next((event.grace_s for event in evidence.events if isinstance(event, ExecutionStarted)), evidence.scenario.platform.grace_s)
    return _Conduct(
        attempt=attempt,
        signal_s=notice.t_s,
        grace_s=granted,
        last_step=max(steps, default=max((life.restored_step or 0 for life in attempt.incarnations), default=0)),
        seen_s=next((event.t_s for event in events if isinstance(event, SigtermSeen)), None),
        begun=saves[-1] if saves else None,
        ended=ended[-1] if ended else None,
        exit_s=attempt.exit.t_s if attempt.exit else None,
    )


def _judge_exit(conduct: _Conduct, expectation: GraceConduct, ruling: Ruling) -> None:
    """It leaves by itself, with time to spare."""
    name = f"attempt {conduct.attempt.number} of task {conduct.attempt.task}"
    if conduct.attempt.exit is None or conduct.margin_s is None:
        ruling.doubts.append(f"the end of {name} was not seen")
    elif conduct.attempt.exit.cause == "grace" or (conduct.attempt.exit.signal == 9 and conduct.margin_s <= 0):
        heard = "never said that it noticed" if conduct.seen_s is None else f"noticed after {conduct.seen_s - conduct.signal_s:.2f} s"
        ruling.broken.append(f"{name} did not leave within its grace of {conduct.grace_s:g} s and was killed; it {heard}")
    elif conduct.attempt.exit.signal == 9:
        ruling.facts.append(f"{name} was killed by something else within its grace")
    elif conduct.margin_s < expectation.margin_s_min:
        ruling.broken.append(
            f"{name} left with {conduct.margin_s:.2f} s of its grace, {expectation.margin_s_min:g} s are promised: {conduct}"
        )


def _judge_save(conduct: _Conduct, evidence: Evidence, ruling: Ruling) -> None:
    """What it had done when it was told is durable when it leaves, and it began nothing new."""
    name = f"attempt {conduct.attempt.number} of task {conduct.attempt.task}"
    if conduct.attempt.exit is not None and conduct.attempt.exit.signal == 9 and conduct.attempt.exit.cause != "grace":
        return  # another fault cut the save short: what it left is for other promises to judge
    workload = evidence.scenario.workload
    stored = evidence.lineage.newest_sound_step(conduct.attempt.task, conduct.exit_s if conduct.exit_s is not None else float("inf"))
    acknowledged = [save.step for life in conduct.attempt.incarnations for save in life.saves_ended]
    durable = max([*acknowledged, stored or 0])
    if not (workload.speaks_protocol or workload.outside.logs.step):
        ruling.doubts.append(f"{name} does not tell its steps, so nobody knows what it owed at SIGTERM")
    elif durable < conduct.last_step:
        ruling.broken.append(
            f"{name} left with step {durable} durable although it had done step {conduct.last_step}: the final save is missing"
        )
    begun = [
        event
        for life in conduct.attempt.incarnations
        for event in life.events
        if isinstance(event, SaveBegun) and conduct.seen_s is not None and event.t_s > conduct.seen_s
    ]
    if len({save.step for save in begun}) > 1:
        steps = [save.step for save in begun]
        ruling.broken.append(f"{name} went on training after SIGTERM: it began saves of steps {steps} where one final save was owed")


def _measures(conducts: list[_Conduct]) -> dict[str, float]:
    """The tightest notice decides."""
    timed = [conduct for conduct in conducts if conduct.margin_s is not None]
    if not timed:
        return {}
    worst = min(timed, key=lambda conduct: conduct.margin_s or 0.0)
    measures = {"margin_s": worst.margin_s or 0.0}
    if worst.seen_s is not None:
        measures["signal_to_seen_s"] = worst.seen_s - worst.signal_s
    if worst.seen_s is not None and worst.begun is not None:
        measures["seen_to_save_s"] = worst.begun.t_s - worst.seen_s
    if worst.begun is not None and worst.ended is not None:
        measures["save_s"] = worst.ended.t_s - worst.begun.t_s
    if worst.ended is not None and worst.exit_s is not None:
        measures["save_to_exit_s"] = worst.exit_s - worst.ended.t_s
    return measures
