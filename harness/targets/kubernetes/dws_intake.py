"""New ProvisioningRequests: for which task each is, and which script it gets."""

from collections import Counter
from collections.abc import Callable

from harness.scenario import Cluster, ProvisioningScript
from harness.targets.kubernetes.api import Object, uid_of
from harness.targets.kubernetes.dws_course import Course
from harness.targets.kubernetes.dws_reasons import failure_of
from harness.targets.kubernetes.dws_requests import asked_by, is_queued
from harness.targets.kubernetes.dws_served import Served

STRANGER_S = 2.0
"""A request whose workload was not seen after so long is no task's: the two come by different watches, a moment apart."""


class Intake:
    """Holds requests until it is known for whom they are."""

    def __init__(self, cluster: Cluster, task_of: Callable[[Object], int | None], pool: str) -> None:
        """Make it.

        Raises:
            UnknownNameError: When a script fails for a reason that GKE does not have.
        """
        for phase in (phase for script in cluster.provisioning for phase in script.phases if phase.state == "failed"):
            failure_of(phase.reason)
        self._cluster, self._task_of, self._pool = cluster, task_of, pool
        self._waiting: dict[str, tuple[float, Object]] = {}
        self._known: set[str] = set()
        self._used: Counter[int] = Counter()

    def see(self, thing: Object, now_s: float) -> None:
        """Take note of a request; one of another class, or one that was seen before, is passed over."""
        uid = uid_of(thing)
        if is_queued(thing) and uid not in self._known:
            self._known.add(uid)
            self._waiting[uid] = (now_s, thing)

    def forget(self, uid: str) -> None:
        """A request was deleted."""
        self._waiting.pop(uid, None)

    def ready(self, now_s: float) -> list[Served]:
        """Requests of which it is known by now for whom they are."""
        found: list[Served] = []
        for uid, (seen_s, thing) in [*self._waiting.items()]:
            task = self._task_of(thing)
            if task is not None or now_s >= seen_s + STRANGER_S:
                del self._waiting[uid]
                found.append(Served(Course(asked_by(thing), self._script_for(task), self._cluster, self._pool, seen_s=seen_s)))
        return found

    def _script_for(self, task: int | None) -> ProvisioningScript:
        """The first, second, … of a task; the last holds for those after it. Another job's request is granted."""
        if task is None:
            return ProvisioningScript()
        scripts = self._cluster.provisioning
        self._used[task] += 1
        return scripts[min(self._used[task], len(scripts)) - 1]
