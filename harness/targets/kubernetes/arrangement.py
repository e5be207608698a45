"""What is made for a run before anything is submitted: its record, storage, namespace, queues, and pools of the right size."""

from harness.errors import BrokenHarnessError
from harness.kind import ALLOW_LABEL, RUN_ID_LABEL
from harness.kind.nodes import DOCKER_S
from harness.kind.nodes import READY_S as NODES_READY_S
from harness.targets.kubernetes.api import NAMESPACES, is_run_namespace, resource_of
from harness.targets.kubernetes.control_plane import ask_everything
from harness.targets.kubernetes.grounds import Grounds
from harness.targets.kubernetes.manifest_files import job_document, queues_document, queues_of
from harness.targets.kubernetes.patience import Patience
from harness.targets.kubernetes.pools import NodePools, first_sizes
from harness.targets.kubernetes.predecessors import take_away_predecessors
from harness.targets.kubernetes.queue_objects import QueueObjects
from harness.targets.kubernetes.refusals import told_as_written_wrong
from harness.targets.kubernetes.run_record import RunRecord, write_record
from harness.targets.kubernetes.run_storage import RunStorage
from harness.targets.kubernetes.submission import Submission

READY_S = 2 * NODES_READY_S + 4 * DOCKER_S
"""For node pools to have their first sizes: one shrinks, then another one grows, each within its own deadline, which says more. A machine
that starts takes up to 15 s, four at once on two cores a minute."""


class Arrangement:
    """The place where a run plays; ``harness.targets.kubernetes.ending`` takes it away again.

    Attributes:
        record: What is made, once it is written down.

    Raises:
        InvalidDocumentError: When the queues of the scenario cannot be read.
    """

    def __init__(self, grounds: Grounds, storage: RunStorage, pools: NodePools) -> None:
        launch = grounds.launch
        self._grounds, self._storage, self._pools = grounds, storage, pools
        self._queues = QueueObjects(grounds.api, grounds.clock, queues_of(launch), namespace=grounds.namespace, run_id=launch.run_id)
        self._patience = Patience(grounds.clock, grounds.cluster)
        self.record: RunRecord | None = None
        self._ready_by_s = float("inf")
        self._is_ready = False

    def make(self, submission: Submission) -> None:
        """Make it all; written down first. What does not answer just now is waited for.

        Raises:
            InvalidDocumentError: When the API server takes what the scenario brings for written wrong.
            HarnessError: When something cannot be made; the caller takes away what was.
        """
        grounds, patiently = self._grounds, self._patience.until_answered
        patiently(lambda: ask_everything(grounds.api))
        take_away_predecessors(grounds)
        patiently(self._refuse_foreign_namespace)
        record = RunRecord(
            run_id=grounds.launch.run_id,
            namespace=grounds.namespace,
            directory=str(self._storage.directory),
            checkpoint_dir=self._storage.moved_from,
            replaced=patiently(self._queues.replaced),
            cluster_uid=grounds.cluster.uid,
            journal=str(grounds.launch.journal or ""),
        )
        write_record(grounds.cluster.name, record)
        self.record = record
        self._storage.prepare()
        patiently(self._make_namespace)
        patiently(lambda: self._queues.apply(queues_document(grounds.launch)))
        patiently(lambda: self._make_companions(submission))
        self._pools.read()
        self._pools.scale(first_sizes(grounds.cluster.topology, grounds.launch.cluster), "the run begins")
        self._ready_by_s = grounds.clock.monotonic_s() + READY_S

    def is_ready(self, now_s: float) -> bool:
        """Whether pools have their first sizes and Kueue takes jobs; once it is, it stays.

        Raises:
            InvalidDocumentError: When Kueue takes none in the queues that the scenario brings, and says why.
            BrokenHarnessError: When that takes too long.
        """
        if not self._is_ready and not self._pools.is_busy():
            self._queues.await_active(queues_document(self._grounds.launch))
            self._is_ready = True
        if not self._is_ready and now_s > self._ready_by_s:
            advice = "see `docker ps --all` for nodes that do not run; on a machine that is busy with other things run it again"
            raise BrokenHarnessError(f"the node pools did not come to their first sizes within {READY_S:g} s; {advice}")
        return self._is_ready

    def _refuse_foreign_namespace(self) -> None:
        """It would be taken away at the end.

        Raises:
            BrokenHarnessError: When a namespace of that name is there and not the run's.
        """
        name, run_id = self._grounds.namespace, self._grounds.launch.run_id
        found = self._grounds.api.get(NAMESPACES, name)
        if found is not None and not is_run_namespace(found, run_id):
            labels = f"{ALLOW_LABEL}: true and {RUN_ID_LABEL}: {run_id}"
            raise BrokenHarnessError(f"namespace {name} is there and does not say {labels}; it is not ours to act in")

    def _make_namespace(self) -> None:
        labels = {ALLOW_LABEL: "true", RUN_ID_LABEL: self._grounds.launch.run_id}
        metadata = {"name": self._grounds.namespace, "labels": labels}
        self._grounds.api.apply(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def _make_companions(self, submission: Submission) -> None:
        for thing in submission.companions():
            resource = resource_of(thing)
            assert resource is not None, "manifests are checked when they are read"
            assert resource.is_namespaced, "so that it goes with the namespace"
            thing["metadata"].pop("namespace", None)
            with told_as_written_wrong(thing, job_document(self._grounds.launch)):
                self._grounds.api.apply(resource, thing, self._grounds.namespace)
