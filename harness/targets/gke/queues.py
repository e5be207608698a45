"""The queue of a run on a project's cluster: others are in it as well, and its owner may take back that faults are allowed on it."""

from harness.errors import UsageError
from harness.targets.gcp.guard import require_allowed
from harness.targets.kubernetes.api import Object, labels_of, name_of
from harness.targets.kubernetes.queue import QueueChanging
from harness.targets.kubernetes.refusals import told_as_lookup_errors
from harness.undo import ClusterAction


def require_allowed_queue(queue: Object) -> None:
    """See that the owner of a ClusterQueue allows faults on it.

    Raises:
        NotAllowedError: When he does not.
    """
    require_allowed("ClusterQueue", name_of(queue), labels_of(queue))


class ProjectQueueChanging(QueueChanging):
    """As on every cluster; what is written down before a fault acts is so only while the owner of the queue allows it."""

    def quota_undo(self, flavor: str, *, to: int) -> tuple[ClusterAction, ...]:
        """See ``QueueHost``."""
        self._require_allowed_now()
        return super().quota_undo(flavor, to=to)

    def occupation_undo(self, name: str) -> tuple[ClusterAction, ...]:
        """See ``QueueHost``."""
        self._require_allowed_now()
        return super().occupation_undo(name)

    def _require_allowed_now(self) -> None:
        """See that the queue may be touched, looked up each time.

        Raises:
            LookupError: When it may not.
        """
        with told_as_lookup_errors():
            queue = self._queue()
        try:
            require_allowed_queue(queue)
        except UsageError as error:
            raise LookupError(str(error)) from error
