"""What a scenario asks of the cluster and its queues, held against what they have: known before anything is waited for or made."""

from collections.abc import Collection, Iterator, Sequence

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError, UnknownNameError
from harness.kind import Topology
from harness.kind.topology import TPU_RESOURCE
from harness.scenario import Scenario
from harness.scenario.cluster_faults import ForgetImage, LosePool, LowerQuota, OccupyCapacity
from harness.scenario.expectations import AdmittedTo
from harness.targets.kubernetes.api import CLUSTER_QUEUES, PRIORITY_CLASSES, Object, name_of, resource_of
from harness.targets.kubernetes.pools import DWS_POOL, ON_DEMAND_POOL

Named = tuple[str, str, str]
"""Field, kind and name of something that a scenario names."""


def check_asked(launch: Launch, queues: Sequence[Object], topology: Topology) -> None:
    """See that the cluster and the queues have what the launch asks for.

    Raises:
        InvalidDocumentError: When they have not.
        UnknownNameError: When the cluster lacks a pool that the emulated parts provision.
    """
    _check_sizes(launch, topology)
    _check_priority(launch, queues)


def check_names(scenario: Scenario, queues: Sequence[Object], topology: Topology) -> None:
    """See that faults and promises name pools of the cluster and flavors of the run's queues.

    Raises:
        InvalidDocumentError: When they name others.
    """
    pools = {pool.name for pool in topology.pools}
    for field, kind, name in _named(scenario):
        known = pools if kind == "node pool" else _flavors_of(queues, with_chips=kind == "flavor with chips")
        if name not in known and (known or kind == "node pool"):
            advice = "name one of these" + (
                "" if kind == "node pool" else ", or add it to the ClusterQueue in the file of `cluster.queues`"
            )
            raise InvalidDocumentError(document=scenario.name, field=field, problem=_unknown(kind, name, known), advice=advice)


def _check_sizes(launch: Launch, topology: Topology) -> None:
    pools = {pool.name: pool for pool in topology.pools}
    for name in (ON_DEMAND_POOL, DWS_POOL):
        if name not in pools:
            raise UnknownNameError(kind="node pool of the cluster", name=name, known=list(pools))
    asked, has = launch.cluster, pools[ON_DEMAND_POOL].nodes
    if asked.on_demand_nodes > has:
        problem = f"it is {asked.on_demand_nodes}, and {ON_DEMAND_POOL} has {has} nodes"
        advice = f"write at most {has}, or -1 for all of them"
        raise InvalidDocumentError(document=launch.job, field="cluster.on_demand_nodes", problem=problem, advice=advice)
    most = max((found.tpu_chips for found in topology.pools), default=0)
    if not asked.manifest and asked.chips > most:
        problem = f"it is {asked.chips}, and no node of the cluster has more than {most}"
        advice = "`chips` are those of one host; write more hosts as `workload.ranks`"
        raise InvalidDocumentError(document=launch.job, field="cluster.chips", problem=problem, advice=advice)


def _check_priority(launch: Launch, queues: Sequence[Object]) -> None:
    """Kueue makes no workload of a job that names a class which is not there, and says so in its own log alone."""
    known = _names_of(queues, PRIORITY_CLASSES.plural)
    if not launch.cluster.manifest and launch.cluster.priority and launch.cluster.priority not in known:
        what = _unknown("WorkloadPriorityClass", launch.cluster.priority, known)
        advice = "name one of these, or write one of that name into the file that `cluster.queues` names"
        raise InvalidDocumentError(document=launch.job, field="cluster.priority", problem=what, advice=advice)


def _named(scenario: Scenario) -> Iterator[Named]:
    for index, injection in enumerate(scenario.injections):
        match injection.fault:
            case LosePool(pool=pool) | ForgetImage(pool=pool) if pool:
                yield f"injections[{index}].fault.pool", "node pool", pool
            case LowerQuota(flavor=flavor) | OccupyCapacity(flavor=flavor):
                yield f"injections[{index}].fault.flavor", "flavor with chips", flavor
    for index, expectation in enumerate(scenario.expects):
        for flavor in (flavor for flavors in expectation.flavors for flavor in flavors) if isinstance(expectation, AdmittedTo) else ():
            yield f"expects[{index}].flavors", "flavor", flavor


def _names_of(queues: Sequence[Object], plural: str) -> set[str]:
    return {name_of(one) for one in queues if (resource := resource_of(one)) is not None and resource.plural == plural}


def _flavors_of(queues: Sequence[Object], *, with_chips: bool) -> set[str]:
    """Of the queues that the run brings; none where it brings none, for then it is in another's."""
    return {
        str(flavor["name"])
        for one in queues
        if (resource := resource_of(one)) is not None and resource.plural == CLUSTER_QUEUES.plural
        for group in (one.get("spec") or {}).get("resourceGroups") or []
        for flavor in group.get("flavors") or []
        if not with_chips or any(quota["name"] == TPU_RESOURCE for quota in flavor.get("resources") or [])
    }


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    return f"{kind} {name} is not there; there is {', '.join(sorted(known)) or 'none'}"
