"""What a run leaves on the cluster when the harness itself is killed, and its end: for ``harness clean``."""

from harness.clock import Clock
from harness.kind import KindCluster, find_cluster
from harness.targets.kubernetes.run_record import RunRecord, Turn, read_record


def left_behind(run_id: str) -> list[str]:
    """The run's namespace, queue objects, node pools and storage, one line each. Its own record says it: the cluster is not asked."""
    found = _found(run_id)
    if found is None:
        return []
    cluster, record = found
    lines = [f"namespace {record.namespace} of cluster {cluster.name}", f"directory {record.directory}"]
    lines += [f"{one.plural} {one.name} of cluster {cluster.name}" for one in record.replaced]
    return lines + ([f"checkpoints of {record.checkpoint_dir}"] if record.checkpoint_dir else [])


def remove_left_behind(run_id: str, clock: Clock) -> list[str]:
    """Take it all away, and let nodes and queues be as they were; one line for each thing done. Doing it twice is harmless.

    Raises:
        BrokenHarnessError: When something could not be done; what was left is then left still.
    """
    found = _found(run_id)
    if found is None:
        return []
    from harness.targets.kubernetes.api import Api
    from harness.targets.kubernetes.ending import Ending

    cluster, record = found
    with Turn(cluster.name).held(clock):
        ending = Ending(Api(cluster.kubeconfig, cluster.context), cluster, record, clock)
        ending.end_pods()
        ending.remove_all()
    return [*ending.done, f"put back the queues and node pools of cluster {cluster.name}"]


def _found(run_id: str) -> tuple[KindCluster, RunRecord] | None:
    """A run that has left something on the cluster that is up; what was on one that is gone is gone with it."""
    cluster = find_cluster()
    record = None if cluster is None else read_record(cluster.name, run_id)
    return None if cluster is None or record is None else (cluster, record)
