"""All ranks of a life go on from one step."""

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.successions import name_of_life
from harness.history import RestoreBegun, Restored, Started
from harness.lineage import Incarnation
from harness.scenario.expectations import RanksAgree
from harness.verdict import Finding, counted

CHECKER = "ranks-agree"


def check(_expectation: RanksAgree, evidence: Evidence) -> Finding:
    """Compare the steps of the ranks in each life; a life that died before all of them had spoken proves nothing, but may refute."""
    ruling = Ruling()
    ranks = evidence.scenario.workload.ranks
    agreed = 0
    for task in evidence.lineage.tasks:
        for life in evidence.lineage.incarnations_of(task):
            steps = _steps_by_rank(life)
            if not steps:
                continue
            said = f"{name_of_life(life)}: " + ", ".join(f"rank {rank} from step {step}" for rank, step in sorted(steps.items()))
            if len(set(steps.values())) > 1:
                ruling.broken.append(f"{said}: they must go on from one step")
                continue
            ruling.facts.append(said)
            silent = sorted(set(range(ranks)) - steps.keys())
            if silent and life.steps:
                ruling.doubts.append(f"{name_of_life(life)} trained, and rank {silent[0]} never said from which step")
            agreed += life.number > 0 and not silent
    ruling.doubt_lost(evidence.lost_words())
    ruling.measures = {"lives_agreed": float(agreed)}
    if ranks < 2:
        return ruling.conclude(CHECKER, "", nothing=f"the workload has {ranks} rank, which can only agree with itself")
    nothing = "" if agreed else f"no life after the first in which all {ranks} ranks said from which step they went on"
    return ruling.conclude(
        CHECKER, f"all {ranks} ranks went on from one step in {counted(agreed, 'life', 'lives')} after the first", nothing=nothing
    )


def _steps_by_rank(life: Incarnation) -> dict[int, int]:
    """From which step each rank went on: what it said when it was ready to train, else what it had loaded, else what it had chosen."""
    steps: dict[int, int] = {}
    steps.update({event.rank: event.step for event in life.of_type(RestoreBegun)})
    steps.update({event.rank: event.step for event in life.of_type(Restored)})
    steps.update({event.rank: event.restored_step for event in life.of_type(Started)})
    return steps
