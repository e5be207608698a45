"""What a run leaves on the cluster when the harness itself is killed, and its end: for ``harness clean``."""

from pathlib import Path

from harness.clock import Clock
from harness.errors import StoreError, TargetUnavailableError
from harness.kind import KindCluster, NodeContainers, find_cluster, lasting_problem, reason_and_advice
from harness.kind.cluster import CLUSTER_NAME, is_unreadable, state_path
from harness.kind.lock import Turn
from harness.targets.kubernetes.run_record import RunRecord, read_record, recorded_runs, remove_record
from harness.targets.kubernetes.run_storage import give_back


def left_behind(run_id: str) -> list[str]:
    """The run's namespace, queue objects, node pools and storage, one line each. Its own record says it: the cluster is not asked."""
    try:
        record = read_record(CLUSTER_NAME, run_id)
    except StoreError as error:
        return [f"what it wrote down of the cluster: {error}"]
    if record is None:
        return []
    storage = [f"directory {record.directory}", *([f"checkpoints of {record.checkpoint_dir}"] if record.checkpoint_dir else [])]
    cluster = None if record.is_storage_only else cluster_of(record)
    if cluster is None:
        return storage  # the rest is gone with the cluster
    lines = [f"namespace {record.namespace} of cluster {cluster.name}", *storage]
    return lines + [f"{one.plural} {one.name} of cluster {cluster.name}" for one in record.replaced]


def recorded_directories() -> dict[str, Path | None]:
    """Runs that have written down what they have on the cluster, living ones too, each with its run directory where the record says it."""
    return {run_id: _directory_of(run_id) for run_id in recorded_runs(CLUSTER_NAME)}


def remove_left_behind(run_id: str, clock: Clock) -> list[str]:
    """Take it all away, and let nodes and queues be as they were; one line for each thing done. Doing it twice is harmless.

    Raises:
        BrokenHarnessError: When something could not be done, or not be read; what was left is then left still.
    """
    record = read_record(CLUSTER_NAME, run_id)
    if record is None:
        return []
    cluster = None if record.is_storage_only else cluster_of(record, must_be_known=True)
    if cluster is None:
        return _remove_storage(record)
    from harness.targets.kubernetes.api import Api
    from harness.targets.kubernetes.ending import Ending
    from harness.targets.kubernetes.predecessors import make_nodes_whole

    with Turn(cluster.name).held(clock):
        _refuse_silent(cluster, clock)
        api = Api(cluster.kubeconfig, cluster.context)
        is_lost = record.has_lost_journal()
        if is_lost:
            make_nodes_whole(cluster, api, NodeContainers(cluster, clock), clock)
        ending = Ending(api, cluster, record, clock)
        ending.end_pods()
        ending.remove_all(are_nodes_whole=is_lost, may_keep_storage=True)
    done = [*ending.done, f"put back the queues and node pools of cluster {cluster.name}"]
    left = read_record(CLUSTER_NAME, run_id)
    try:
        return done + (_remove_storage(left) if left is not None and left.is_storage_only else [])
    except StoreError as error:
        error.add_note(f"all else was done: {', '.join(done)}")
        raise


def cluster_of(record: RunRecord, *, must_be_known: bool = False) -> KindCluster | None:
    """The cluster that a run was on; None when it is gone, even if another has its name.

    Raises:
        StoreError: When its state is there and cannot be read, and it must be known.
    """
    cluster = find_cluster()
    if cluster is None and must_be_known and is_unreadable():
        reason = "the state of the cluster is there, and no state that we know"
        raise StoreError(path=state_path(), attempted="read", reason=reason, advice="run `harness down kind`, then `harness clean`")
    return cluster if cluster is not None and record.is_of(cluster.uid) else None


def _directory_of(run_id: str) -> Path | None:
    try:
        record = read_record(CLUSTER_NAME, run_id)
    except StoreError:
        return None  # whoever wants it away is told so
    return Path(record.journal).parent if record is not None and record.journal else None


def _refuse_silent(cluster: KindCluster, clock: Clock) -> None:
    """See that the cluster can be worked on, rather than that each step waits for it.

    Raises:
        TargetUnavailableError: When it cannot.
    """
    problem = lasting_problem(cluster, clock)
    if problem:
        reason, advice = reason_and_advice(problem)
        raise TargetUnavailableError(
            target="kind", reason=f"what the run left there stays, with its storage: {reason}", advice=f"{advice}, then `harness clean`"
        )


def _remove_storage(record: RunRecord) -> list[str]:
    done = give_back(record.directory, record.checkpoint_dir)
    remove_record(CLUSTER_NAME, record.run_id)
    return done
