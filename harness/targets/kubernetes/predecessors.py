"""What runs that died, or could not undo their faults, have left on the cluster, taken away before another run begins.

Their pods hold chips, their queues are taken for the cluster's own, and the nodes that their faults broke take no pods: the new run would
be judged by all that. Checkpoints that cannot go back to their place, because that is gone or the disk is full, hurt nobody: they stay, and
`harness clean` says so. Whoever has the turn knows that every other run with a record is over: a run has the turn for as long as it lasts.
Nodes are looked at whether or not there is a record.
"""

from harness.clock import Clock
from harness.errors import BrokenHarnessError, HarnessError
from harness.kind import KindCluster, NodeContainers, NodeState
from harness.targets.kubernetes.api import NODES, Api, name_of
from harness.targets.kubernetes.control_plane import full_name
from harness.targets.kubernetes.ending import Ending
from harness.targets.kubernetes.grounds import Grounds
from harness.targets.kubernetes.nodes import wrong_with
from harness.targets.kubernetes.pools import empty_at_rest
from harness.targets.kubernetes.run_record import read_record, recorded_runs
from harness.targets.kubernetes.undoing import Restorer
from harness.undo import ClusterAction, MendNode, RestoreImage, Uncordon


def take_away_predecessors(grounds: Grounds) -> list[str]:
    """Take it all away, and make the nodes whole; returns the runs. What they owe stays in their journals: doing it twice is harmless.

    Raises:
        BrokenHarnessError: When something could not be taken away; it is tried again by the next run.
    """
    cluster = grounds.cluster
    others = [run_id for run_id in recorded_runs(cluster.name) if run_id != grounds.launch.run_id]
    hurt: list[str] = []
    try:
        records = [record for run_id in others if (record := read_record(cluster.name, run_id)) is not None]
        here = [record for record in records if record.is_of(cluster.uid) and not record.is_storage_only]
        hurt = _hurt_nodes(grounds)
        if here or hurt:
            make_nodes_whole(cluster, grounds.api, grounds.machines, grounds.clock)
        for record in here:
            ending = Ending(grounds.api, cluster, record, grounds.clock)
            ending.end_pods()
            ending.remove_all(are_nodes_whole=True, may_keep_storage=True)
    except (HarnessError, OSError) as error:
        left = [f"runs that died ({', '.join(others)}) have left things on it that cannot be taken away"] if others else []
        left += [f"it has nodes that cannot be mended ({', '.join(hurt)})"] if hurt else []
        why = "; ".join([*left, str(error)])
        raise BrokenHarnessError(
            f"the cluster {cluster.name} is not fit for a run: {why}; run `harness clean`, or `harness down kind`"
        ) from error
    return [record.run_id for record in here]


def _hurt_nodes(grounds: Grounds) -> list[str]:
    """Nodes of pools that are not as they are while no run uses them, in words: a fault that nobody undid, or somebody's own doing."""
    nodes = {name_of(node): node for node in grounds.api.list(NODES)}
    machines = [machine for machine in grounds.machines.list() if machine.pool]
    hurt = [f"node {machine.name} {wrong}" for machine in machines if (wrong := wrong_with(nodes.get(machine.name, {"metadata": {}})))]
    unknown = [machine.name for machine in machines if machine.state is NodeState.RUNNING and machine.name not in nodes]
    return [*hurt, *(f"the API server does not know node {name}" for name in unknown)]


def make_nodes_whole(cluster: KindCluster, api: Api, machines: NodeContainers, clock: Clock) -> None:
    """First, for their faults may have broken what the rest needs. Machines that are off are started, where their pools rest with them.

    Raises:
        UndoError: When one could not be made whole; the others were all the same.
    """
    names = [node.name for node in machines.list() if node.pool]
    actions: list[ClusterAction] = [MendNode(node=name) for name in names]
    actions += [Uncordon(node=name) for name in names]
    actions += [RestoreImage(node=name, image=full_name(cluster.job_image)) for name in names]
    Restorer(api, machines, clock, empty_pools=empty_at_rest(cluster.topology)).restore(actions)
