"""What is made on a project's cluster before anything is submitted: a namespace, LocalQueues, what a job brings. The rest is adopted."""

from harness.errors import BrokenHarnessError
from harness.kind import ALLOW_LABEL, RUN_ID_LABEL
from harness.targets.gcp.guard import ALLOWED_LABEL, ALLOWED_VALUE, RUN_LABEL
from harness.targets.gke.grounds import ProjectGrounds
from harness.targets.gke.queues import require_allowed_queue
from harness.targets.gke.refusals import local_queues
from harness.targets.kubernetes.api import CLUSTER_QUEUES, NAMESPACES, Object, is_run_namespace, resource_of
from harness.targets.kubernetes.manifest_files import job_document, queues_document
from harness.targets.kubernetes.queue_objects import QueueObjects
from harness.targets.kubernetes.refusals import told_as_written_wrong
from harness.targets.kubernetes.submission import Submission


class Adoption:
    """The place where a run plays."""

    def __init__(self, grounds: ProjectGrounds) -> None:
        self._grounds = grounds
        launch = grounds.launch
        self._queues = QueueObjects(grounds.api, grounds.clock, local_queues(launch), namespace=grounds.namespace, run_id=launch.run_id)

    def make(self, submission: Submission) -> None:
        """Make what is the run's own; nothing of the cluster's is changed.

        Raises:
            NotAllowedError: When the owner of a queue does not allow faults on it.
            InvalidDocumentError: When the API server takes what the scenario brings for written wrong.
            BrokenHarnessError: When something cannot be made; the caller takes away what was.
        """
        self._require_queues(submission)
        self._make_namespace()
        document = queues_document(self._grounds.launch)
        self._queues.apply(document)
        self._make_companions(submission)
        self._queues.await_active(document)

    def _require_queues(self, submission: Submission) -> None:
        """See that the ClusterQueues are there, and that faults are allowed on them: a run fills them, and may lower their quota.

        Those, too, before which a job's manifest brings a LocalQueue of its own.
        """
        brought = [one for one in submission.companions() if one["kind"] == "LocalQueue"]
        for one in [*local_queues(self._grounds.launch), *brought]:
            name = str(one["spec"]["clusterQueue"])
            found = self._grounds.api.get(CLUSTER_QUEUES, name)
            if found is None:
                advice = f"make it as the guide does, and label it {ALLOWED_LABEL}={ALLOWED_VALUE}"
                raise BrokenHarnessError(f"cluster {self._grounds.cluster.name} has no ClusterQueue {name}; {advice}")
            require_allowed_queue(found)

    def _make_namespace(self) -> None:
        name, run_id = self._grounds.namespace, self._grounds.launch.run_id
        found = self._grounds.api.get(NAMESPACES, name)
        if found is not None and not is_run_namespace(found, run_id):
            raise BrokenHarnessError(f"namespace {name} is there and does not say {RUN_ID_LABEL}: {run_id}; it is not ours to act in")
        labels = {ALLOW_LABEL: "true", RUN_ID_LABEL: run_id, RUN_LABEL: run_id}
        body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self._grounds.api.apply(NAMESPACES, body)

    def _make_companions(self, submission: Submission) -> None:
        for thing in submission.companions():
            resource = resource_of(thing)
            assert resource is not None, "manifests are checked when they are read"
            thing["metadata"].pop("namespace", None)
            with told_as_written_wrong(thing, job_document(self._grounds.launch)):
                self._grounds.api.apply(resource, thing, self._grounds.namespace)
