"""What runs that died have left on the cluster, taken away before another run begins.

Their pods hold chips, their queues are taken for the cluster's own, and the nodes that their faults broke take no pods: the new run would
be judged by all that. Whoever has the turn knows that every other run with a record is over: a run has the turn for as long as it lasts.
"""

from harness.errors import BrokenHarnessError, HarnessError
from harness.kind import NodeState
from harness.targets.kubernetes.control_plane import full_name
from harness.targets.kubernetes.ending import Ending
from harness.targets.kubernetes.grounds import Grounds
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
    try:
        records = [record for run_id in others if (record := read_record(cluster.name, run_id)) is not None]
        here = [record for record in records if record.is_of(cluster.uid)]
        if here:
            _make_nodes_whole(grounds)
        for record in here:
            ending = Ending(grounds.api, cluster, record, grounds.clock)
            ending.end_pods()
            ending.remove_all()
    except (HarnessError, OSError) as error:
        raise BrokenHarnessError(
            f"runs that died ({', '.join(others)}) have left things on the cluster {cluster.name} that cannot be taken away: {error}; "
            "run `harness clean`, or `harness down kind`"
        ) from error
    return [record.run_id for record in here]


def _make_nodes_whole(grounds: Grounds) -> None:
    """First, for their faults may have broken what the rest needs."""
    cluster = grounds.cluster
    nodes = [node for node in grounds.machines.list() if node.pool]
    running = [node.name for node in nodes if node.state is NodeState.RUNNING]
    actions: list[ClusterAction] = [MendNode(node=name) for name in running]
    actions += [Uncordon(node=name) for name in running]
    actions += [RestoreImage(node=node.name, image=full_name(cluster.job_image)) for node in nodes]
    Restorer(grounds.api, grounds.machines, grounds.clock).restore(actions)
