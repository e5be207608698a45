"""Attempts end with the codes of the contract: never 0 where the work is not done, 0 where it is, and the agreed code after SIGTERM."""

from collections.abc import Iterator
from dataclasses import dataclass
from signal import SIGKILL

from harness.checkers.durability import stored_at_end, were_writes_refused
from harness.checkers.evidence import Evidence, Ruling
from harness.history import AttemptExited, Done, PodSeen
from harness.lineage import Attempt
from harness.scenario.expectations import ExitCodes
from harness.verdict import Finding, counted

CHECKER = "exit-codes"

SIGNAL_BASE = 128
"""A container that dies of signal n ends with 128 + n, as the platform shows it. Source: POSIX shell and OCI runtimes alike."""


SAYING_NOTHING = ("", "Error", "Completed")
"""Reasons of a container that its code tells already."""


@dataclass(frozen=True, slots=True)
class _End:
    """How one attempt ended.

    Attributes:
        attempt: Which.
        exit: As the platform saw it.
        code: As it shows it.
        is_done: Whether the job had said that it was done, or, where it says nothing, its last step was durable; None when nothing tells.
        reason: What Kubernetes says of it beside the code, like ``OOMKilled``.
    """

    attempt: Attempt
    exit: AttemptExited
    code: int
    is_done: bool | None
    reason: str = ""

    def __str__(self) -> str:
        how = f"signal {self.exit.signal}" if self.exit.exit_code is None else f"exit code {self.exit.exit_code}"
        task = f"task {self.attempt.task} " if self.attempt.task else ""
        said = f"{self.exit.cause}, {self.reason}" if self.reason else self.exit.cause
        work = {True: "done", False: "not done", None: "not known to be done"}[self.is_done]
        return f"{task}attempt {self.attempt.number} ended with {how} at {self.exit.t_s:.2f} s ({said}), its work {work}"


def check(expectation: ExitCodes, evidence: Evidence) -> Finding:
    """Judge each attempt that ended by itself, after SIGTERM or without one; one that was killed has no code of its own."""
    ruling = Ruling()
    judged = 0
    for end in _ends(evidence):
        ruling.facts.append(str(end))
        if end.exit.signal == SIGKILL or end.exit.cause in ("grace", "stop"):
            continue
        judged += 1
        _judge(end, expectation, evidence, ruling)
    ruling.doubt_lost(evidence.lost_words())
    ruling.measures = {"exits_judged": float(judged)}
    nothing = "" if judged else f"none of {counted(len(ruling.facts), 'attempt')} ended by itself, so there was no code to judge"
    return ruling.conclude(
        CHECKER, f"{counted(judged, 'attempt')} ended with the codes of the contract: {'; '.join(ruling.facts)}", nothing=nothing
    )


def _ends(evidence: Evidence) -> Iterator[_End]:
    for attempt in evidence.lineage.attempts:
        if attempt.exit is not None:
            code = attempt.exit.exit_code if attempt.exit.exit_code is not None else SIGNAL_BASE + (attempt.exit.signal or 0)
            yield _End(attempt, attempt.exit, code, _is_done(attempt, evidence), _reason(attempt, evidence))


def _reason(attempt: Attempt, evidence: Evidence) -> str:
    """Of the pod whose code it is."""
    code = attempt.exit.exit_code if attempt.exit is not None else None
    pods = [pod for pod in evidence.of_type(PodSeen) if (pod.task, pod.attempt, pod.role) == (attempt.task, attempt.number, "host")]
    ended = [pod for pod in pods if pod.exit_code is not None and (code is None or pod.exit_code == code)]
    return next((pod.reason for pod in reversed(ended) if pod.reason not in SAYING_NOTHING), "")


def _is_done(attempt: Attempt, evidence: Evidence) -> bool | None:
    """The reported notion of the last step where the job reports one, else the durable one."""
    workload = evidence.scenario.workload
    if any(life.of_type(Done) for life in attempt.incarnations):
        return True
    if evidence.is_job_heard and (workload.speaks_protocol or workload.outside.logs.done) and not evidence.lost_words():
        return False
    newest = stored_at_end(attempt, evidence)
    if newest is None or not workload.steps:
        return None
    is_final_saved = workload.save_every > 0 and workload.steps % workload.save_every == 0
    return True if newest >= workload.steps else False if is_final_saved else None


def _judge(end: _End, expectation: ExitCodes, evidence: Evidence, ruling: Ruling) -> None:
    if end.code == 0:
        if end.is_done is False:
            ruling.broken.append(f"{end}: the platform takes 0 for success and does not try again")
        elif end.is_done is None:
            ruling.doubts.append(str(end))
        return
    sent = next((signal for signal in end.attempt.signals if signal.signal == "SIGTERM" and signal.rank == -1), None)
    if sent is not None and end.code not in expectation.after_sigterm:
        if were_writes_refused(end.attempt.task, end.attempt.started_s, end.exit.t_s, evidence):
            ruling.facts.append(f"{end}: storage had failed it, so no code is owed")
        else:
            owed = " or ".join(map(str, expectation.after_sigterm))
            ruling.broken.append(f"{end}; SIGTERM had been sent at {sent.t_s:.2f} s, and {owed} was owed")
    elif sent is None and end.is_done and end.exit.cause == "job":
        ruling.broken.append(f"{end}: 0 was owed")
