"""Attempts stay within their number, and each death that used one up is explained.

Cloud Run charges every non-zero exit to the same budget, preemptions too (the guide spends one on purpose): what ended from outside is
counted apart from what the job broke by itself. On a cluster an eviction ends an attempt and is charged to nobody: what the object's own
backoffLimit was charged stands beside the number of attempts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.checkers.evidence import Evidence, Ruling
from harness.history import AttemptExited, FaultRequested, NodeSeen, PodSeen, SubmissionSeen, TaskFinished
from harness.ledger.hits import RUNS_ON
from harness.lineage import Attempt, read_charges
from harness.scenario import Injection, injection_name, kind_of
from harness.scenario.cluster_faults import (
    BreakNode,
    DeletePods,
    EvictPods,
)
from harness.scenario.expectations import WithinRetries
from harness.scenario.faults import DamageFault, FailWrites, Maintenance, Pause, SlowWrites
from harness.verdict import Finding, counted

CHECKER = "within-retries"

OUTSIDE_CAUSES = frozenset({"fault", "timeout", "cancel", "grace", "platform"})
"""Causes of an exit that the platform or an injection is behind."""

FAIL_WRITES = kind_of(FailWrites())

CPU_MAINTENANCE = Maintenance(profile="cloudrun-job-cpu-maintenance")


INJECTED = "injected"


@dataclass(frozen=True, slots=True)
class _Death:
    """An attempt that was followed by another, or failed for good; ``why`` is empty where only the job itself explains it."""

    attempt: Attempt
    why: str

    @property
    def rests_on_words(self) -> bool:
        """Whether it is held against a fault because the job has not said that it had got over it."""
        end = self.attempt.exit
        return self.why.startswith(INJECTED) and end is not None and end.cause == "job"

    def __str__(self) -> str:
        end = self.attempt.exit
        if end is None:
            how = "was given up"
        else:
            how = f"ended with signal {end.signal}" if end.exit_code is None else f"ended with exit code {end.exit_code}"
            how += f" at {end.t_s:.2f} s"
        return f"task {self.attempt.task} attempt {self.attempt.number} {how} ({self.why or 'of the job itself'})"


def check(expectation: WithinRetries, evidence: Evidence) -> Finding:
    """Count attempts and deaths of each task."""
    ruling = Ruling()
    attempts_max = own = outside = 0
    for task in evidence.lineage.tasks:
        attempts = evidence.lineage.attempts_of(task)
        attempts_max = max(attempts_max, len(attempts))
        if len(attempts) > expectation.attempts_max:
            ruling.broken.append(f"task {task} took {counted(len(attempts), 'attempt')}, {expectation.attempts_max} are promised")
        deaths = list(_deaths(attempts, evidence))
        ruling.facts += [str(death) for death in deaths]
        mine = [death for death in deaths if not death.why]
        own, outside = own + len(mine), outside + len(deaths) - len(mine)
        if len(mine) > expectation.own_failures_max:
            ruling.broken.append(
                f"{counted(len(mine), 'attempt')} died of the job itself, {expectation.own_failures_max} are allowed: {mine[0]}"
            )
        if any(death.rests_on_words for death in deaths):
            ruling.doubt_lost(evidence.lost_words())  # that it had got over the fault it would have said
        _judge_after_success(attempts, ruling)
        _doubt_unfinished(task, attempts, evidence, ruling)
    ruling.measures = {"attempts": float(attempts_max), "own_failures": float(own), "ended_from_outside": float(outside)}
    nothing = "" if evidence.lineage.attempts else "no attempt was seen"
    kept = f"attempts: {attempts_max}, of at most {expectation.attempts_max}; ended from outside: {outside}, by the job itself: {own}"
    return ruling.conclude(CHECKER, f"{kept}{_charged(evidence)}", nothing=nothing)


def _charged(evidence: Evidence) -> str:
    """What Kubernetes counts, which is something else than attempts; empty where nothing was submitted to a cluster."""
    seen = [event for event in evidence.of_type(SubmissionSeen) if event.t_s <= evidence.looked_s]
    if not seen:
        return ""
    tasks = {event.task for event in seen}
    failed = sum(charge.failed for task in tasks for charge in read_charges(event for event in seen if event.task == task))
    return f"; failures charged to the {seen[0].object_kind}'s backoffLimit: {failed}"


def _deaths(attempts: Sequence[Attempt], evidence: Evidence) -> Iterator[_Death]:
    """Ends that used up an attempt; what the harness ended at the end of the run is none."""
    injections = {injection_name(evidence.scenario.injections, index): each for index, each in enumerate(evidence.scenario.injections)}
    for attempt in attempts:
        if attempt.abandoned_s is not None:
            yield _Death(attempt, f"held for dead by the platform at {attempt.abandoned_s:.2f} s")
        elif attempt.exit is not None and attempt.exit.exit_code != 0 and attempt.exit.cause != "stop":
            yield _Death(attempt, _explanation(attempt, attempt.exit, injections, evidence))


def _explanation(attempt: Attempt, end: AttemptExited, injections: Mapping[str, Injection], evidence: Evidence) -> str:
    """Who is behind a death: an injection that was seen to act, or the platform; empty for the job itself."""
    observed = {(event.injection, event.attempt) for event in evidence.observed()}
    acted = [
        fault
        for fault in evidence.requested()
        if (fault.task, fault.attempt) == (attempt.task, attempt.number) and (fault.injection, fault.attempt) in observed
    ]
    deadly = [
        fault.injection
        for fault in acted
        if fault.t_s <= end.t_s
        and _can_end(injections.get(fault.injection))
        and not _has_survived(attempt, fault)
        and not _ran_on(injections.get(fault.injection), attempt, (fault.t_s, end.t_s), evidence)
    ]
    if deadly:
        return f"{INJECTED}: {', '.join(deadly)}"
    return f"cause: {end.cause}" if end.cause in OUTSIDE_CAUSES else ""


def _can_end(injection: Injection | None) -> bool:
    """Whether a fault takes processes away or leaves a job no way to work: standing still, slowness and damage at rest do neither."""
    if injection is None:
        return True
    if isinstance(injection.fault, DeletePods | EvictPods) and injection.fault.part == "submitter":
        return False  # whoever waits for the job's end has no part in its work
    if isinstance(injection.fault, Pause | SlowWrites | DamageFault) or injection.fault == CPU_MAINTENANCE:
        return False
    return kind_of(injection.fault) not in RUNS_ON


def _ran_on(injection: Injection | None, attempt: Attempt, between_s: tuple[float, float], evidence: Evidence) -> bool:
    """Whether a node that fell silent still had its containers: it takes none away before the control plane holds it for lost.

    That comes after some 50 s of silence, is told by the node's condition ``Ready``, and ends its pods.
    """
    if injection is None or not isinstance(injection.fault, BreakNode) or injection.fault.how == "power-off":
        return False
    begin_s, end_s = between_s
    pods = [pod for pod in evidence.of_type(PodSeen) if (pod.task, pod.attempt) == (attempt.task, attempt.number)]
    nodes = {pod.node for pod in pods if pod.node}
    silent = [node for node in evidence.of_type(NodeSeen) if node.name in nodes and node.state in ("Unknown", "False")]
    return not any(begin_s <= node.t_s <= end_s for node in silent)


def _has_survived(attempt: Attempt, fault: FaultRequested) -> bool:
    """Whether the attempt had got over the fault: it trained in a new life, or it saved although its writes had failed."""
    lives = attempt.incarnations
    if any(life.began_s > fault.t_s and life.restored_step is not None for life in lives):
        return True
    return fault.fault == FAIL_WRITES and any(save.t_s > fault.t_s for life in lives for save in life.saves_ended)


def _judge_after_success(attempts: Sequence[Attempt], ruling: Ruling) -> None:
    for earlier, later in pairwise(attempts):
        if earlier.exit is not None and earlier.exit.exit_code == 0 and earlier.abandoned_s is None:
            ruling.broken.append(f"attempt {later.number} of task {later.task} was started although attempt {earlier.number} had exited 0")


def _doubt_unfinished(task: int, attempts: Sequence[Attempt], evidence: Evidence, ruling: Ruling) -> None:
    """A task that was not seen to end may need more attempts than it has had so far."""
    if not any(event.task == task for event in evidence.of_type(TaskFinished)):
        ruling.doubts.append(f"task {task} was never seen to end: it had {counted(len(attempts), 'attempt')} so far")
    elif any(attempt.exit is None and attempt.abandoned_s is None for attempt in attempts):
        ruling.doubts.append(f"task {task} has an attempt whose end was not seen")
