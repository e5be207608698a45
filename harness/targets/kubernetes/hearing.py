"""Who speaks in a run is heard, behind the start of the attempt that it is of."""

from collections.abc import Sequence

from harness.history import AttemptStarted, Event, JobEvent, LogLine
from harness.protocol.attempt_key import AttemptKey
from harness.targets.kubernetes.api import PODS, Object, name_of, uid_of
from harness.targets.kubernetes.attempts import Attempts
from harness.targets.kubernetes.grounds import ClusterGrounds
from harness.targets.kubernetes.pod_log import PodLog
from harness.targets.kubernetes.pod_processes import PodProcesses
from harness.targets.kubernetes.voices import Voices


class Hearing:
    """Brings together what pods say and the attempts that they are of.

    Args:
        grounds: What the run works with.
        attempts: Which pod is of which.
        voices: Who speaks.
        processes: Finds processes of pods.
        is_ray: Whether RayJobs run: of their output only the submitter's is followed, where the driver's comes together.
    """

    def __init__(self, grounds: ClusterGrounds, attempts: Attempts, voices: Voices, *, processes: PodProcesses, is_ray: bool) -> None:
        self._grounds, self._attempts, self._voices, self._processes = grounds, attempts, voices, processes
        self._is_ray = is_ray

    def begin_at_barrier(self, uid: str) -> AttemptKey | None:
        """A process of a pod has come to the barrier, so the pod runs; None while nobody has seen such a pod."""
        self._attempts.begin(uid, self._grounds.clock.monotonic_s())
        return self._attempts.key_of_pod(uid)

    def listen(self, now_s: float) -> list[Event]:
        """What was said since."""
        self._voices.receive(now_s)
        for pod in self._attempts.silent():
            if self._voices.has_spoken(pod.name):
                self._attempts.begin(pod.uid, now_s)
        started = self._attempts.take_started()
        self._add_new()
        said = self._voices.listen(now_s)
        return [*(self._told(key, began_s, said) for key, began_s in started), *said]

    def _told(self, key: AttemptKey, began_s: float, said: Sequence[Event]) -> AttemptStarted:
        """It began no later than its first word, which comes faster than what the API server tells."""
        own = (event for event in said if isinstance(event, JobEvent | LogLine) and (event.task, event.attempt) == key)
        t_s = min([began_s - self._grounds.launch.epoch_s, *(event.t_s for event in own)])
        return AttemptStarted(t_s=t_s, task=key.task, attempt=key.attempt, pid=self._first_process(key))

    def _first_process(self, key: AttemptKey) -> int:
        """The first process of the attempt's first pod that this machine sees; 0 when it sees none."""
        pods = [self._object(pod.uid) for pod in self._attempts.pods_of(key) if pod.role != "submitter"]
        return next((first.pid for pod in pods if pod is not None and (first := self._processes.first_of(pod))), 0)

    def _add_new(self) -> None:
        for key in self._attempts.running():
            for pod in self._attempts.pods_of(key):
                if pod.started_s is not None and not self._voices.hears(pod.uid):
                    is_followed = (pod.role == "submitter") == self._is_ray
                    self._voices.add(pod.uid, pod.name, key, self._log_of(pod.uid) if is_followed else None)

    def _log_of(self, uid: str) -> PodLog | None:
        pod = self._object(uid)
        if pod is None:
            return None
        container = str(pod["spec"]["containers"][0]["name"])
        return PodLog(self._grounds.api, pod=name_of(pod), namespace=self._grounds.namespace, container=container)

    def _object(self, uid: str) -> Object | None:
        return next((pod for pod in self._grounds.inventory.all(PODS) if uid_of(pod) == uid), None)
