"""What the job does with its notice: signal, seen, saved, durable, gone, and how much of the grace was left.

A row of the budget for each SIGTERM: notice to seen, seen to save, save to durable, durable to exit, margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from signal import SIGKILL, SIGTERM

from harness.checkers.durability import acknowledged_by, stored_at_end, were_writes_refused
from harness.checkers.evidence import Evidence, Ruling
from harness.history import ExecutionStarted, FaultRequested, SaveBegun, SaveEnded
from harness.lineage import Attempt
from harness.scenario.expectations import GraceConduct
from harness.scenario.faults import EndGrace
from harness.verdict import Finding

CHECKER = "grace-conduct"

END_GRACE = str(EndGrace.__struct_config__.tag)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conduct:
    """The time-line of one notice; each moment is None where it was not seen.

    Attributes:
        attempt: Who got it. A second notice does not prolong the grace: the first one counts.
        signal_s, grace_s: When, and what was granted.
        seen_s: When the first of its ranks noticed.
        begun: The saves that it began since, each step once.
        ended: The acknowledgement of the last of them; of one that was under way where none was begun.
        exit_s: When it was gone.
        is_shortened: Whether a fault made its grace be over before its time.
    """

    attempt: Attempt
    signal_s: float
    grace_s: float
    seen_s: float | None
    begun: Sequence[SaveBegun]
    ended: SaveEnded | None
    exit_s: float | None
    is_shortened: bool

    @property
    def who(self) -> str:
        """The attempt in words."""
        return f"attempt {self.attempt.number} of task {self.attempt.task}"

    @property
    def last_step(self) -> int:
        """What its last life had executed when it left."""
        return self.attempt.incarnations[-1].last_step()

    @property
    def margin_s(self) -> float | None:
        """What was left of the grace at the exit."""
        return None if self.exit_s is None else self.grace_s - (self.exit_s - self.signal_s)

    @property
    def is_cut(self) -> bool:
        """Whether something else than the end of the grace killed it: nobody knows what it would have done."""
        end = self.attempt.exit
        is_early = end is not None and (end.cause != "grace" or self.is_shortened)
        return end is not None and end.signal == SIGKILL and is_early and (self.margin_s or 0.0) > 0

    def __str__(self) -> str:
        saved_s = self.begun[-1].t_s if self.begun else None
        durable_s = self.ended.t_s if self.ended else None
        moments = [("seen", self.seen_s), ("save", saved_s), ("durable", durable_s), ("exit", self.exit_s)]
        told = ", ".join(f"{name} +{max(0.0, moment - self.signal_s):.2f} s" for name, moment in moments if moment is not None)
        margin = "" if self.margin_s is None else f"; margin {self.margin_s:.2f} s of {self.grace_s:g} s"
        return f"{self.who}: SIGTERM at {self.signal_s:.2f} s, {told or 'nothing after it'}{margin}"


def check(expectation: GraceConduct, evidence: Evidence) -> Finding:
    """Judge every notice that the platform gave."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost_words())
    conducts = [conduct for attempt in evidence.lineage.attempts if (conduct := _conduct(attempt, evidence)) is not None]
    judged = [conduct for conduct in conducts if not conduct.is_cut]
    ruling.facts += [f"{conduct}{' (it was killed by something else)' if conduct.is_cut else ''}" for conduct in conducts]
    for conduct in judged:
        _judge_exit(conduct, expectation, evidence=evidence, ruling=ruling)
        _doubt_unnoticed(conduct, evidence, ruling)
        if expectation.saves:
            _judge_save(conduct, evidence, ruling)
    ruling.measures = _measures(judged)
    nothing = "the platform sent no SIGTERM with a grace to an attempt as a whole"
    if conducts:
        nothing = "" if judged else f"no grace was left to the job: {conducts[0]}, and it was killed by something else"
    return ruling.conclude(CHECKER, "; ".join(str(conduct) for conduct in judged), nothing=nothing)


def _conduct(attempt: Attempt, evidence: Evidence) -> _Conduct | None:
    notice = attempt.notice()
    if notice is None:
        return None
    life = attempt.incarnations[-1]
    seen_s = life.sigterm_seen.t_s if life.sigterm_seen is not None else None
    since_s = notice.t_s if seen_s is None else min(notice.t_s, seen_s)  # the job may be quicker than the note that it was signalled
    begun = {save.step: save for save in life.saves_begun if save.t_s >= since_s}
    last = max(begun.values(), key=lambda save: save.t_s, default=None)
    ended = [save for save in life.saves_ended if save.t_s >= since_s and (last is None or save.step == last.step)]
    granted = notice.grace_s
    if granted is None:
        granted = next((event.grace_s for event in evidence.of_type(ExecutionStarted)), evidence.scenario.platform.grace_s)
    return _Conduct(
        attempt=attempt,
        signal_s=notice.t_s,
        grace_s=granted,
        seen_s=seen_s,
        begun=sorted(begun.values(), key=lambda save: save.t_s),
        ended=ended[-1] if ended else None,
        exit_s=attempt.exit.t_s if attempt.exit else None,
        is_shortened=any(_ends_grace(event, attempt) for event in evidence.of_type(FaultRequested)),
    )


def _ends_grace(event: FaultRequested, attempt: Attempt) -> bool:
    return event.fault == END_GRACE and (event.task, event.attempt) == (attempt.task, attempt.number)


def _judge_exit(conduct: _Conduct, expectation: GraceConduct, *, evidence: Evidence, ruling: Ruling) -> None:
    """It notices, and leaves by itself with time to spare; where nobody looked for a while, its end may have been seen late."""
    end = conduct.attempt.exit
    if end is None or conduct.margin_s is None:
        ruling.doubts.append(f"the end of {conduct.who} was not seen")
    elif end.cause == "grace" or end.signal == SIGKILL:
        heard = "never said that it noticed" if conduct.seen_s is None else f"noticed after {conduct.seen_s - conduct.signal_s:.2f} s"
        ruling.broken.append(f"{conduct.who} did not leave within its grace of {conduct.grace_s:g} s and was killed; it {heard}")
    elif end.signal == SIGTERM and conduct.seen_s is None:
        ended = f"{conduct.who} did not notice its notice: SIGTERM itself ended it, {end.t_s - conduct.signal_s:.2f} s later"
        (ruling.doubts if evidence.lost_words() else ruling.broken).append(ended)
    elif conduct.margin_s < expectation.margin_s_min:
        promised = f"{expectation.margin_s_min:g} s are promised"
        is_late_to_see = any(conduct.signal_s <= lost.t_s <= (conduct.exit_s or lost.t_s) for lost in evidence.lost("moments"))
        left = f"{conduct.who} left with {conduct.margin_s:.2f} s of its grace, {promised}: {conduct}"
        (ruling.doubts if is_late_to_see else ruling.broken).append(left)


def _doubt_unnoticed(conduct: _Conduct, evidence: Evidence, ruling: Ruling) -> None:
    """A job that can say that it noticed, did not, and was not just done anyway: it may have left for another reason."""
    workload = evidence.scenario.workload
    says = workload.speaks_protocol or bool(workload.outside.logs.sigterm)
    if says and conduct.seen_s is None and conduct.attempt.incarnations[-1].done is None:
        ruling.doubts.append(f"{conduct.who} never said that it noticed SIGTERM")


def _judge_save(conduct: _Conduct, evidence: Evidence, ruling: Ruling) -> None:
    """What it had done is durable when it leaves, and it began nothing new."""
    steps = [save.step for save in conduct.begun if conduct.seen_s is not None and save.t_s > conduct.seen_s]
    if len(steps) > 1:
        ruling.broken.append(f"{conduct.who} went on training after SIGTERM: it began saves of steps {steps} where one final save was owed")
    if conduct.exit_s is None:
        return
    workload = evidence.scenario.workload
    stored = stored_at_end(conduct.attempt, evidence)
    durable = stored if stored is not None else acknowledged_by(conduct.attempt.task, conduct.exit_s, evidence)
    if not (workload.speaks_protocol or workload.outside.logs.step):
        ruling.doubts.append(f"{conduct.who} does not tell its steps, so nobody knows what it owed at SIGTERM")
    elif durable is None:
        ruling.doubts.append(f"neither storage nor the job tells which step was durable when {conduct.who} left")
    elif durable < conduct.last_step and were_writes_refused(conduct.attempt.task, conduct.signal_s, conduct.exit_s, evidence):
        ruling.facts.append(f"{conduct.who} left with step {durable} durable of {conduct.last_step}: storage had refused its writes")
    elif durable < conduct.last_step:
        left = f"{conduct.who} left with step {durable} durable although it had done step {conduct.last_step}"
        ruling.broken.append(f"{left}: the final save is missing")


def _measures(conducts: Sequence[_Conduct]) -> dict[str, float]:
    """The tightest notice decides."""
    margins = {conduct.margin_s: conduct for conduct in conducts if conduct.margin_s is not None}
    if not margins:
        return {}
    margin_s = min(margins)
    worst = margins[margin_s]
    begun_s = worst.begun[-1].t_s if worst.begun else None
    ended_s = worst.ended.t_s if worst.ended is not None else None
    rows = (
        ("signal_to_seen_s", worst.signal_s, worst.seen_s),
        ("seen_to_save_s", worst.seen_s, begun_s),
        ("save_s", begun_s, ended_s),
        ("save_to_exit_s", ended_s, worst.exit_s),
    )
    spans = {name: max(0.0, end - begin) for name, begin, end in rows if begin is not None and end is not None}
    return {"margin_s": margin_s, **spans}
