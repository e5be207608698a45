"""Whom a fault hits on a project, by exact names, and how many at most: told before anything is done."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from harness.scenario import Injection, Scenario, injection_name, kind_of
from harness.scenario.cluster_faults import (
    BreakNode,
    CordonNode,
    DrainNode,
    ForgetImage,
    InterruptNode,
    LoseNode,
    LosePool,
    NodeFault,
    PodFault,
    QueueFault,
    RestartComponent,
    RevokeCapacity,
)
from harness.scenario.faults import CancelExecution, DamageFault
from harness.targets.gcp.guard import RUN_PREFIX
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import PlannedFault

UNKNOWN_SIZE = 10_000
"""Of a pool that could not be read: over every limit."""


class _Hits(NamedTuple):
    names: tuple[str, ...]
    at_most: int
    unit: Literal["tasks", "nodes"] = "tasks"
    undo: str = ""


def planned_faults(scenario: Scenario, place: Place, pool_sizes: Mapping[str, int]) -> tuple[PlannedFault, ...]:
    """Every injection of a scenario.

    Args:
        scenario: Whose.
        place: Where.
        pool_sizes: Nodes that a pool of the cluster has or may have, the larger of both, by its name.
    """
    return tuple(_planned(scenario, index, place, pool_sizes) for index in range(len(scenario.injections)))


def _planned(scenario: Scenario, index: int, place: Place, pool_sizes: Mapping[str, int]) -> PlannedFault:
    injection = scenario.injections[index]
    hits = _hits(scenario, injection, place, pool_sizes)
    return PlannedFault(
        injection=injection_name(scenario.injections, index),
        fault=kind_of(injection.fault),
        hits=hits.names,
        unit=hits.unit,
        blast_radius=hits.at_most,
        times=len(injection.attempts),
        undo=hits.undo,
    )


def _hits(scenario: Scenario, injection: Injection, place: Place, pool_sizes: Mapping[str, int]) -> _Hits:
    fault, tasks = injection.fault, scenario.platform.tasks
    if isinstance(fault, CancelExecution):
        return _Hits((f"all {tasks} tasks of the run's execution of {place.job_name}",), tasks)
    if isinstance(fault, DamageFault):
        where = f"objects of task {injection.victim.task} below gs://{place.bucket}/{RUN_PREFIX}RUN/checkpoints/"
        return _Hits((where,), 1, undo="the original is kept beside the run")
    if isinstance(fault, PodFault | NodeFault | QueueFault | RestartComponent | ForgetImage):
        return _cluster_hits(scenario, injection, place, pool_sizes)
    return _Hits((f"task {injection.victim.task} of the run's execution of {place.job_name}",), 1)


def _cluster_hits(scenario: Scenario, injection: Injection, place: Place, pool_sizes: Mapping[str, int]) -> _Hits:
    fault, hosts, cluster = injection.fault, scenario.workload.ranks, place.cluster_name or "the cluster (none is named)"
    task = f"task {injection.victim.task} on {cluster}"
    match fault:
        case CordonNode() | DrainNode() | BreakNode() | LoseNode():
            return _Hits((f"the node of {task}",), 1, "nodes", "it is uncordoned, or a new one comes")
        case InterruptNode() | RevokeCapacity():
            return _Hits((f"the {hosts} nodes of {task}",), hosts, "nodes", "new ones come")
        case LosePool():
            return _pool_hits(fault, cluster, pool_sizes)
        case ForgetImage():
            size = pool_sizes.get(fault.pool, UNKNOWN_SIZE)
            return _Hits((f"the nodes of pool {fault.pool} of {cluster}",), size, "nodes", "the image is known again")
        case RestartComponent():
            return _Hits(
                (f"{fault.component} of {cluster}",), max(pool_sizes.values(), default=UNKNOWN_SIZE), "nodes", "it comes back by itself"
            )
        case _:
            tasks = scenario.platform.tasks
            return _Hits(
                (f"what the queue gives {tasks} tasks on {cluster}",), tasks, "tasks", "quota, capacity and workloads are put back"
            )


def _pool_hits(fault: LosePool, cluster: str, pool_sizes: Mapping[str, int]) -> _Hits:
    undo = "the pool gets its size and its autoscaling back"
    if fault.pool:
        return _Hits((f"{cluster}/nodePools/{fault.pool}",), pool_sizes.get(fault.pool, UNKNOWN_SIZE), "nodes", undo)
    largest = max(pool_sizes.values(), default=UNKNOWN_SIZE)
    return _Hits((f"the node pool of the victim, one of {', '.join(sorted(pool_sizes)) or 'none that is known'}",), largest, "nodes", undo)
