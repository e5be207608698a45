"""One run on the cluster: what is made for it, the reading of all that is seen and said, and its end."""

import contextlib
import selectors
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from harness.cloud_run.environment import execution_name
from harness.errors import BrokenHarnessError
from harness.history import AttemptStarted, Event, ExecutionStarted, LogLine
from harness.kind import ALLOW_LABEL, RUN_ID_LABEL
from harness.protocol.attempt_key import AttemptKey
from harness.targets.kubernetes.api import (
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    RAY_CLUSTERS,
    RAY_JOBS,
    WORKLOADS,
    labels_of,
    name_of,
    resource_of,
)
from harness.targets.kubernetes.attempts import Attempts
from harness.targets.kubernetes.autoscaler import OnDemandAutoscaler
from harness.targets.kubernetes.dws import DwsSimulator
from harness.targets.kubernetes.grounds import Grounds
from harness.targets.kubernetes.leaks import LeakLook
from harness.targets.kubernetes.manifest_files import guide_queues, read_manifest
from harness.targets.kubernetes.pod_edits import PodEdits
from harness.targets.kubernetes.pod_log import PodLog
from harness.targets.kubernetes.pod_processes import PodProcesses
from harness.targets.kubernetes.pools import NodePools, first_sizes
from harness.targets.kubernetes.queue_objects import QueueObjects
from harness.targets.kubernetes.run_record import RunRecord, write_record
from harness.targets.kubernetes.run_storage import RunStorage
from harness.targets.kubernetes.submission import Submission
from harness.targets.kubernetes.telling import Teller
from harness.targets.kubernetes.voices import Voices
from harness.targets.kubernetes.watching import Change, Watched, Watches

WATCHED = (PODS, JOBS, RAY_JOBS, RAY_CLUSTERS, WORKLOADS, PROVISIONING_REQUESTS, EVENTS)
"""In the run's namespace; nodes everywhere."""

DRAIN_S = 10.0
"""For reading what was said before an end was seen; the log of a pod whose node is gone never ends."""

READY_S = 150.0
"""For node pools to have their first sizes: a machine that starts takes up to 15 s, four at once on two cores a minute."""

RAY_VERSION = "2.53.0"
"""That of the guide, where none is installed beside us."""


class ClusterExecution:
    """Begun by ``begin``, moved by ``poll``; ``harness.targets.kubernetes.ending`` takes it away again.

    Attributes:
        grounds: What it works with.
        attempts: The state machine.
        processes: Finds processes of pods.
        pending: Events that the next ``poll`` returns.
        pools: The node pools.
        dws: Who provisions capacity.
        queue_objects: Kueue's objects of the run.
        storage: The run's directories.
        voices: Who speaks.
    """

    def __init__(self, grounds: Grounds, storage: RunStorage) -> None:
        launch = grounds.launch
        self.grounds, self.storage = grounds, storage
        self.pending: list[Event] = []
        self._resources = contextlib.ExitStack()
        self._selector = self._resources.enter_context(selectors.DefaultSelector())
        edits = PodEdits(launch=launch, cluster=grounds.cluster, storage=storage)
        edits.check()
        self._submission = Submission(edits, ray_version=_ray_version())
        queues = read_manifest(launch.root / launch.cluster.queues) if launch.cluster.queues else guide_queues()
        self.queue_objects = QueueObjects(grounds.api, grounds.clock, queues, grounds.namespace)
        self.processes = PodProcesses(launch.run_id)
        self.attempts = Attempts(launch, grounds.hurt, is_ray=self._submission.resource == RAY_JOBS)
        self.voices = Voices(launch, storage.events, processes=self.processes, selector=self._selector)
        self.pools = NodePools(grounds.machines, grounds.cluster.topology)
        self._teller = Teller(grounds.inventory, self.attempts, epoch_s=launch.epoch_s)
        self._leaks = LeakLook(grounds.inventory)
        self._watches: Watches | None = None
        self._over_since_s: dict[AttemptKey, float] = {}
        self._ready_by_s = float("inf")
        self._is_announced = False
        self._submitted = 0
        self._next_due_s = 0.0
        namespace, cluster = grounds.namespace, launch.cluster
        self.dws = DwsSimulator(
            grounds.api, self.pools, grounds.clock, namespace=namespace, cluster=cluster, task_of=grounds.inventory.task_of
        )
        self._autoscaler = OnDemandAutoscaler(grounds.api, self.pools, grounds.clock, namespace=namespace, answer=cluster.on_demand)

    # ---- beginning ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make all that the run needs; written down first.

        Raises:
            HarnessError: When something cannot be made; the caller takes away what was.
        """
        grounds, launch = self.grounds, self.grounds.launch
        self._refuse_foreign_namespace()
        record = RunRecord(
            run_id=launch.run_id,
            namespace=grounds.namespace,
            directory=str(self.storage.directory),
            checkpoint_dir=self.storage.moved_from,
            replaced=self.queue_objects.replaced(),
        )
        write_record(grounds.cluster.name, record)
        self.storage.prepare()
        if launch.armed:
            for task in range(launch.tasks):
                self.voices.open_barrier(self.storage.socket_path(task), self._begin_at_barrier)
        self._make_namespace()
        self.queue_objects.apply()
        self._make_companions()
        self.pools.read()
        self.pools.scale(first_sizes(grounds.cluster.topology, launch.cluster), "the run begins")
        self._ready_by_s = grounds.clock.monotonic_s() + READY_S
        watched = [*(Watched(resource, grounds.namespace) for resource in WATCHED), Watched(NODES)]
        self._watches = Watches(grounds.api, watched)
        self._selector.register(self._watches.descriptor, selectors.EVENT_READ)

    def _refuse_foreign_namespace(self) -> None:
        name = self.grounds.namespace
        found = self.grounds.api.get(NAMESPACES, name)
        if found is not None and labels_of(found).get(ALLOW_LABEL) != "true":
            raise BrokenHarnessError(f"namespace {name} is there and does not say {ALLOW_LABEL}: true; it is not ours to act in")

    def _make_namespace(self) -> None:
        labels = {ALLOW_LABEL: "true", RUN_ID_LABEL: self.grounds.launch.run_id}
        metadata = {"name": self.grounds.namespace, "labels": labels}
        self.grounds.api.apply(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def _make_companions(self) -> None:
        for thing in self._submission.companions():
            resource = resource_of(thing)
            assert resource is not None, "manifests are checked when they are read"
            thing["metadata"].pop("namespace", None)
            self.grounds.api.apply(resource, thing, self.grounds.namespace)

    # ---- polling -----------------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether all has ended and was told."""
        return self.attempts.is_finished and self._leaks.is_done and not self.pending

    def poll(self) -> list[Event]:
        """Take in what has happened since, and let the emulated parts move."""
        now_s = self.grounds.clock.monotonic_s()
        events, self.pending = self.pending, []
        events += self._see_changes(now_s)
        events += self._move_emulated()
        events += self._announce_or_submit(now_s)
        events += self._hear(now_s)
        events += self._tell_ends(now_s)
        if self.attempts.is_finished:
            events += self._leaks.tell(self.grounds.t_s())
        return events

    def wait(self, timeout_s: float) -> None:
        """Sleep until there is something to read, or the time is over."""
        self._selector.select(0.0 if self.pending or self.voices.is_behind else max(0.0, timeout_s))

    def _see_changes(self, now_s: float) -> list[Event]:
        events: list[Event] = []
        for change in self._watches.drain() if self._watches is not None else []:
            events += self._teller.see(change, now_s)
            self.dws.see(change)
            self._autoscaler.see(change)
        return events

    def _move_emulated(self) -> list[Event]:
        t_s = self.grounds.t_s()
        return [*self.pools.tick(t_s), *self.dws.tick(t_s), *self._autoscaler.tick(t_s)]

    def _announce_or_submit(self, now_s: float) -> list[Event]:
        """The start of the execution is told when all is ready; the jobs come after it, so that what acts before them can."""
        launch = self.grounds.launch
        if not self._is_announced:
            if self._is_preparing(now_s):
                return []
            self._is_announced = True
            return [
                ExecutionStarted(
                    t_s=self.grounds.t_s(),
                    execution=execution_name(launch),
                    tasks=launch.tasks,
                    max_retries=launch.max_retries,
                    timeout_s=launch.timeout_s,
                    grace_s=launch.grace_s,
                )
            ]
        if self._submitted < launch.tasks and now_s >= self._next_due_s:
            self._submit(self._submitted)
            self._submitted += 1
            self._next_due_s = now_s + launch.cluster.apart_s
        return []

    def _is_preparing(self, now_s: float) -> bool:
        """Whether pools still come to their first sizes, or not all watches have seen what is there.

        Raises:
            BrokenHarnessError: When that takes too long.
        """
        if now_s > self._ready_by_s:
            raise BrokenHarnessError(f"the node pools did not come to their first sizes within {READY_S:g} s; run `harness down kind`")
        if self.pools.is_busy() or self._watches is None or not self._watches.is_synced:
            return True
        self.queue_objects.await_active()
        return False

    def _submit(self, task: int) -> None:
        created = self.grounds.api.create(self._submission.resource, self._submission.build(task), self.grounds.namespace)
        self.grounds.inventory.see(Change("added", self._submission.resource, created))  # what it owns is then known for its own

    def _hear(self, now_s: float) -> list[Event]:
        """What was said, behind the starts of those who say it."""
        self.voices.receive(now_s)
        for pod in self.attempts.silent():
            if self.voices.has_spoken(pod.name):
                self.attempts.begin(pod.uid, now_s)
        started = self.attempts.take_started()
        self._listen_to_new()
        said = self.voices.listen(now_s)
        return [*(self._started(key, began_s, said) for key, began_s in started), *said]

    def _started(self, key: AttemptKey, began_s: float, said: Sequence[Event]) -> AttemptStarted:
        """It began no later than its first word, which comes faster than what the API server tells."""
        words = [event.t_s for event in said if (getattr(event, "task", None), getattr(event, "attempt", None)) == key]
        t_s = min([began_s - self.grounds.launch.epoch_s, *words])
        return AttemptStarted(t_s=t_s, task=key.task, attempt=key.attempt, pid=self._first_process(key))

    def _first_process(self, key: AttemptKey) -> int:
        uids = {pod.uid for pod in self.attempts.pods_of(key) if pod.role != "submitter"}
        pods = [pod for pod in self.grounds.inventory.pods(key.task) if pod["metadata"]["uid"] in uids]
        return next((pid for pod in pods if (pid := self.processes.first_of(pod))), 0)

    def _listen_to_new(self) -> None:
        """Listen to pods that run: of a Ray job's output only the submitter's is followed, where its driver's comes together."""
        for key in self.attempts.running():
            for pod in self.attempts.pods_of(key):
                if pod.started_s is None or self.voices.hears(pod.uid):
                    continue
                is_followed = (pod.role == "submitter") == (self._submission.resource == RAY_JOBS)
                self.voices.add(pod.uid, pod.name, key, self._log_of(pod.uid) if is_followed else None)

    def _log_of(self, uid: str) -> PodLog | None:
        pod = next((pod for pod in self.grounds.inventory.all(PODS) if pod["metadata"]["uid"] == uid), None)
        if pod is None:
            return None
        container = str(pod["spec"]["containers"][0]["name"])
        return PodLog(self.grounds.api, pod=name_of(pod), namespace=self.grounds.namespace, container=container)

    def _begin_at_barrier(self, uid: str) -> AttemptKey | None:
        """A process of a pod has come to the barrier, so the pod runs."""
        self.attempts.begin(uid, self.grounds.clock.monotonic_s())
        return self.attempts.key_of_pod(uid)

    def _tell_ends(self, now_s: float) -> list[Event]:
        events: list[Event] = []
        for key in self.attempts.running():
            if not self.attempts.are_over(key, now_s):
                continue
            since_s = self._over_since_s.setdefault(key, now_s)
            has_said_all = all(self.voices.has_said_all(pod.uid) for pod in self.attempts.pods_of(key))
            if has_said_all or now_s > since_s + DRAIN_S:
                events.append(self.attempts.finish(key, self.grounds.t_s()))
        return [*events, *self.attempts.conclude(self.grounds.t_s())]

    # ---- end ---------------------------------------------------------------------------------------------------------

    def hush(self) -> list[Event]:
        """Watch and listen no more; returns what was last said."""
        now_s = self.grounds.clock.monotonic_s()
        events = [*self.pending, *self._see_changes(now_s), *self._hear(now_s)]
        self.pending = []
        events += [self.attempts.finish(key, self.grounds.t_s(), is_stopped=True) for key in self.attempts.running()]
        events += self.voices.close(now_s)
        if self._watches is not None:
            self._selector.unregister(self._watches.descriptor)
            self._watches.close()
            self._watches = None
        return events

    def close(self) -> None:
        """Free what is left."""
        self.pools.close()
        self._resources.close()

    def say(self, text: str, severity: str = "NOTICE") -> LogLine:
        """A line of the platform's."""
        return LogLine(t_s=self.grounds.t_s(), stream="system", text=text, severity=severity)


def _ray_version() -> str:
    try:
        return version("ray")
    except PackageNotFoundError:
        return RAY_VERSION
