"""The end of a run on the cluster, whoever brings it about: what it has made is taken away, and the cluster is as it was before."""

import contextlib
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import structs

from harness.clock import Clock
from harness.errors import BrokenHarnessError, StoreError
from harness.kind import ALLOW_LABEL, RUN_ID_LABEL, KindCluster, NodeContainers
from harness.kind.nodes import is_control_plane_off
from harness.process_table import send_to
from harness.targets.kubernetes.api import (
    JOBS,
    NAMESPACES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    WORKLOADS,
    Api,
    ApiError,
    Object,
    Resource,
    is_run_namespace,
    name_of,
    uid_of,
)
from harness.targets.kubernetes.pod_processes import PodProcesses
from harness.targets.kubernetes.pools import NodePools
from harness.targets.kubernetes.queue_objects import put_back
from harness.targets.kubernetes.run_record import RunRecord, remove_record, write_record
from harness.targets.kubernetes.run_storage import give_back

GONE_S = 60.0
"""A namespace whose pods are removed without grace is gone in 5 to 10 s; finalizers of controllers that restart take longer."""

FORCED_S = 30.0
PROCESSES_S = 15.0
ANSWERS_S = 120.0
"""An API server that was killed is back in 5 to 20 s; Kueue has lost its lease then, and converts objects again 30 s later."""

NOT_YET = frozenset({0, 429, 500, 503})
"""Statuses of a server that is not there yet, or whose storage or webhooks are not."""

POLL_S = 0.2

HELD_BACK = (RAY_JOBS, RAY_CLUSTERS, WORKLOADS, JOBS, PODS)
"""Objects that controllers keep by finalizers; the owners first."""


class Ending:
    """Takes one run away, step by step; a step that fails keeps no other from being done, and the first failure is raised at the end.

    Args:
        api: Of the cluster.
        cluster: The cluster.
        record: What the run has made.
        clock: The time.
    """

    def __init__(self, api: Api, cluster: KindCluster, record: RunRecord, clock: Clock) -> None:
        self._api = api
        self._cluster = cluster
        self._record = record
        self._clock = clock
        self._failures: list[Exception] = []
        self.done: list[str] = []

    def end_pods(self) -> None:
        """Let nothing of the run live on, whatever becomes of its objects."""
        self._try(self._await_answers)
        self._try(self._delete)
        self._try(self._end_processes)

    def remove_all(self, *, pools: NodePools | None = None, are_nodes_whole: bool = False, may_keep_storage: bool = False) -> None:
        """Take away the rest, after ``end_pods``.

        Where a fault is not undone the record stays, for whoever comes next: no other run may meet what the fault did.

        Args:
            pools: Those of the run, when it is the one that ends.
            are_nodes_whole: Whether the caller has seen to it, whatever the run owes.
            may_keep_storage: Whether a storage that cannot be given back is no failure: it keeps no other run from beginning. The record
                then stays, and says that the storage is all that is left.

        Raises:
            BrokenHarnessError: The first thing that could not be done; the record then stays.
        """
        self._try(self._await_namespace)
        self._try(self._put_back_queues)
        self._try(lambda: self._restore_pools(pools))
        is_storage_kept = self._keep_storage() if may_keep_storage else self._try(self._give_back_storage)
        if self._failures:
            first, *others = self._failures
            for other in others:
                first.add_note(f"and while taking the run away: {other}")
            first.add_note(f"what the run has left, and its storage {self._record.directory}, are written down for `harness clean`")
            raise first
        does_owe = not are_nodes_whole and self._record.owes()
        if not does_owe and not is_storage_kept:
            remove_record(self._cluster.name, self._record.run_id)
            return
        # queues that are put back once may be somebody else's the next time
        write_record(self._cluster.name, structs.replace(self._record, replaced=(), is_storage_only=not does_owe))
        if does_owe:
            self.done.append("kept the record of the run: what its faults did to the cluster is not all undone")

    def _try(self, step: Callable[[], None]) -> bool:
        """Whether it failed."""
        try:
            step()
        except (BrokenHarnessError, OSError) as error:
            self._failures.append(error)
            return True
        return False

    def _keep_storage(self) -> bool:
        """Give it back, or say whether it is kept."""
        try:
            self._give_back_storage()
        except StoreError:
            return True
        return False

    def _await_answers(self) -> None:
        """Wait until Kueue's objects can be read: what a fault has killed just now comes back by itself.

        Raises:
            ApiError: The last answer, when it was none for too long.
        """
        deadline_s = self._clock.monotonic_s() + ANSWERS_S
        while True:
            try:
                self._api.list(WORKLOADS, self._record.namespace)
            except ApiError as error:
                if error.status not in NOT_YET or self._clock.monotonic_s() > deadline_s or is_control_plane_off(self._cluster):
                    raise
                self._clock.sleep(POLL_S)
            else:
                return

    def _delete(self) -> None:
        """Begin to delete the namespace, and its pods without grace."""
        name = self._record.namespace
        found = self._namespace()
        if found is None or not self._api.delete(NAMESPACES, name, uid=uid_of(found)):
            return
        for pod in self._api.list(PODS, name):
            self._api.delete(PODS, name_of(pod), name, grace_s=0)
        self.done.append(f"removed namespace {name}")

    def _namespace(self) -> Object | None:
        """The run's namespace; None when it is gone.

        Raises:
            BrokenHarnessError: When it does not say that we may act in it, and that it is this run's.
        """
        name, run_id = self._record.namespace, self._record.run_id
        found = self._api.get(NAMESPACES, name)
        if found is not None and not is_run_namespace(found, run_id):
            labels = f"{ALLOW_LABEL}: true and {RUN_ID_LABEL}: {run_id}"
            raise BrokenHarnessError(f"namespace {name} does not say {labels}; it is left as it is: delete it yourself if it may go")
        return found

    def _end_processes(self) -> None:
        """Kill what lives: a pod that is removed may live for a moment, or on a node that is cut off, and must not write any more."""
        processes = PodProcesses(self._record.run_id)
        deadline_s = self._clock.monotonic_s() + PROCESSES_S
        while left := processes.left():
            if self._clock.monotonic_s() > deadline_s:
                raise BrokenHarnessError(f"processes {[row.pid for row in left]} of the run's pods withstand SIGKILL for {PROCESSES_S:g} s")
            for row in left:
                send_to(row, signal.SIGKILL)
            self._clock.sleep(POLL_S)

    def _await_namespace(self) -> None:
        if self._namespace() is None or self._is_gone(GONE_S):
            return
        self.done += list(self._force())
        name = self._record.namespace
        if not self._is_gone(FORCED_S):
            raise BrokenHarnessError(
                f"namespace {name} is still terminating after its objects were forced; look at `kubectl get ns {name}`"
            )

    def _force(self) -> Iterator[str]:
        """Take from what is stuck the finalizers that hold it, and from pods the grace."""
        name = self._record.namespace
        for resource in HELD_BACK:
            for thing in self._api.list(resource, name):
                with contextlib.suppress(ApiError):  # it goes by itself just now
                    self._release(resource, name_of(thing))
                    yield f"forced {resource.plural} {name_of(thing)}, which was stuck terminating"

    def _release(self, resource: Resource, name: str) -> None:
        namespace = self._record.namespace
        self._api.patch(resource, name, {"metadata": {"finalizers": None}}, namespace)
        self._api.delete(resource, name, namespace, grace_s=0 if resource == PODS else None)

    def _is_gone(self, wait_s: float) -> bool:
        deadline_s = self._clock.monotonic_s() + wait_s
        while self._api.get(NAMESPACES, self._record.namespace) is not None:
            if self._clock.monotonic_s() > deadline_s:
                return False
            self._clock.sleep(POLL_S)
        return True

    def _put_back_queues(self) -> None:
        problems = put_back(self._api, self._clock, self._record.replaced, run_id=self._record.run_id)
        if problems:
            raise BrokenHarnessError("; ".join(problems))

    def _restore_pools(self, pools: NodePools | None) -> None:
        if pools is None:
            pools = NodePools(NodeContainers(self._cluster, self._clock), self._cluster.topology)
        try:
            pools.read()
            pools.restore()
        finally:
            pools.close()

    def _give_back_storage(self) -> None:
        self.done += give_back(self._record.directory, self._record.checkpoint_dir)


def keep_events(events: Path, logs_dir: Path) -> None:
    """Keep what the pods have said beside the logs.

    Raises:
        OSError: When it cannot be copied.
    """
    if events.is_dir():
        logs_dir.mkdir(parents=True, exist_ok=True)
        for path in events.iterdir():
            shutil.copy2(path, logs_dir / path.name, follow_symlinks=False)
