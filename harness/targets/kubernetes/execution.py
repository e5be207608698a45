"""One run on the cluster while it lasts: all that is seen and said is read, and the emulated parts move."""

import contextlib
import selectors
from abc import ABC, abstractmethod
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from harness.cloud_run.environment import execution_name
from harness.errors import BrokenHarnessError
from harness.history import Event, ExecutionStarted, LogLine, ObservationLost
from harness.protocol.attempt_key import AttemptKey
from harness.targets.kubernetes.api import (
    CONFLICT,
    EVENTS,
    JOBS,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    RAY_CLUSTERS,
    RAY_JOBS,
    WORKLOADS,
    ApiError,
    Object,
)
from harness.targets.kubernetes.arrangement import Arrangement
from harness.targets.kubernetes.attempts import Attempts
from harness.targets.kubernetes.autoscaler import OnDemandAutoscaler
from harness.targets.kubernetes.dws import DwsSimulator
from harness.targets.kubernetes.grounds import ClusterGrounds, Grounds
from harness.targets.kubernetes.hearing import Hearing
from harness.targets.kubernetes.leaks import LeakLook
from harness.targets.kubernetes.machine_roll import MachineRoll
from harness.targets.kubernetes.manifest_files import job_document
from harness.targets.kubernetes.patience import Patience
from harness.targets.kubernetes.pod_edits import PodEdits
from harness.targets.kubernetes.pod_processes import PodProcesses
from harness.targets.kubernetes.pools import NodePools
from harness.targets.kubernetes.refusals import told_as_written_wrong
from harness.targets.kubernetes.run_record import RunRecord
from harness.targets.kubernetes.run_storage import RunStorage
from harness.targets.kubernetes.submission import Submission
from harness.targets.kubernetes.telling import EVENTS_MAX, Teller
from harness.targets.kubernetes.voices import Voices
from harness.targets.kubernetes.watching import Change, Watched, Watches

WATCHED = (PODS, JOBS, RAY_JOBS, RAY_CLUSTERS, WORKLOADS, PROVISIONING_REQUESTS, EVENTS)
"""In the run's namespace; nodes everywhere."""

UNANSWERED_S = 90.0
"""An API server that is killed is back within half a minute; one that stays away for longer is not coming back."""

SUBMIT_AGAIN_S = 0.5

DRAIN_S = 10.0
"""For reading what was said before an end was seen; the log of a pod whose node is gone never ends, and counts as lost then."""

RAY_VERSION = "2.53.0"
"""That of the guide, where none is installed beside us."""


class Bearing(Protocol):
    """Bears a server that does not answer just now."""

    def bear(self, error: ApiError) -> None:
        """Take note that there was no answer.

        Raises:
            BrokenHarnessError: When there was none for too long, or that does not pass.
        """
        ...

    def renew(self) -> None:
        """Take note that there was an answer."""
        ...


class ClusterCourse(ABC):
    """One run on any cluster while it lasts: it is submitted, watched and heard. Moved by ``poll``, silenced by ``hush``.

    Args:
        grounds: What it works with.
        submission: Makes the objects.
        events_dir: Where pods that see a directory of this machine write their events.
        patience: Bears a server that does not answer just now.

    Attributes:
        attempts: The state machine.
        processes: Finds processes of pods, where pods run on this machine.
        voices: Who speaks.
        pending: Events that the next ``poll`` returns.
    """

    def __init__(self, grounds: ClusterGrounds, submission: Submission, *, events_dir: Path, patience: Bearing) -> None:
        launch = grounds.launch
        self._ground, self._submission, self._patience = grounds, submission, patience
        self.pending: list[Event] = []
        is_ray = submission.resource == RAY_JOBS
        self._resources = contextlib.ExitStack()
        self._selector = self._resources.enter_context(selectors.DefaultSelector())
        self.processes = PodProcesses(launch.run_id)
        self.attempts = Attempts(launch, grounds.hurt, is_ray=is_ray)
        self.voices = Voices(launch, events_dir, processes=self.processes, selector=self._selector)
        self._hearing = Hearing(grounds, self.attempts, self.voices, processes=self.processes, is_ray=is_ray)
        self._teller = Teller(grounds.inventory, self.attempts, epoch_s=launch.epoch_s)
        self._leaks = LeakLook(grounds.inventory, grounds.api, grounds.namespace)
        self._watches: Watches | None = None
        self._over_since_s: dict[AttemptKey, float] = {}
        self._is_announced = False
        self._submitted = 0
        self._next_due_s = 0.0
        self._failing_since_s: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether all has ended and was told."""
        return self.attempts.is_finished and self._leaks.is_done and not self.pending

    @property
    def has_ended(self) -> bool:
        """Whether every task has ended; what is left of them is still to be looked at."""
        return self.attempts.is_finished

    def poll(self) -> list[Event]:
        """Take in what has happened since, and let what is played move.

        Raises:
            BrokenHarnessError: When the cluster is gone, or what is played on it cannot be moved.
        """
        now_s, t_s = self._ground.clock.monotonic_s(), self._ground.t_s()
        self._notice_loss(now_s)
        events, self.pending = self.pending, []
        events += self._see_changes(now_s)
        events += self._move(t_s)
        events += self._announce_or_submit(now_s)
        events += self._hearing.listen(now_s)
        events += self._tell_ends(now_s)
        if self.attempts.is_finished:
            events += self._leaks.tell(self._ground.t_s())
        return events

    def wait(self, timeout_s: float) -> None:
        """Sleep until there is something to read, or the time is over."""
        self._selector.select(0.0 if self.pending or self.voices.is_behind else max(0.0, timeout_s))

    def hush(self) -> None:
        """Watch and listen no more; what was last seen and said, and the ends of what ran, are then in ``pending``, whatever fails.

        Raises:
            BrokenHarnessError: When something that was last seen or said cannot be taken in.
        """
        now_s, ended = self._ground.clock.monotonic_s(), self.attempts.ended_pods()  # not those that we have ended
        with contextlib.ExitStack() as steps:
            steps.callback(self._close_watches)
            steps.callback(lambda: self.pending.extend(self.voices.close(now_s, ended=ended)))
            steps.callback(self._end_running)
            self.pending += self._see_changes(now_s)
            self.pending += self._hearing.listen(now_s)

    def close(self) -> None:
        """Free what is left."""
        self._resources.close()

    def say(self, text: str) -> LogLine:
        """A line of the platform's."""
        return LogLine(t_s=self._ground.t_s(), stream="system", text=text, severity="NOTICE")

    # ---- what places add ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _is_ready(self, now_s: float) -> bool:
        """Whether all is there that jobs need.

        Raises:
            BrokenHarnessError: When that takes too long.
        """

    @abstractmethod
    def _lost(self, now_s: float) -> str:
        """What of the cluster is gone for good, in words; empty as far as is known."""

    @abstractmethod
    def _silent(self) -> str:
        """That the API server has not answered for long, with what to do."""

    def _move(self, t_s: float) -> list[Event]:
        """Let what is played move."""
        del t_s
        return []

    def _take(self, change: Change) -> None:
        """Let what is played know of a change."""
        del change

    # ---- the course --------------------------------------------------------------------------------------------------

    def _begin_to_watch(self) -> None:
        watched = [*(Watched(resource, self._ground.namespace) for resource in WATCHED), Watched(NODES)]
        self._watches = Watches(self._ground.api, watched)
        self._selector.register(self._watches.descriptor, selectors.EVENT_READ)

    def _end_running(self) -> None:
        """Tell the ends of what is stopped."""
        self.pending += [self.attempts.finish(key, self._ground.t_s(), is_stopped=True) for key in self.attempts.running()]

    def _close_watches(self) -> None:
        """Watch no more, and tell what went unseen."""
        watches, self._watches = self._watches, None
        if watches is not None:
            self.pending += self._told_gaps(watches)
            self._selector.unregister(watches.descriptor)
            watches.close()

    def _see_changes(self, now_s: float) -> list[Event]:
        events: list[Event] = []
        for change in self._watches.drain() if self._watches is not None else []:
            events += self._teller.see(change, now_s)
            self._take(change)
        return events

    def _announce_or_submit(self, now_s: float) -> list[Event]:
        """The start of the execution is told when all is ready; the jobs come after it, so that what acts before them can."""
        launch = self._ground.launch
        if not self._is_announced:
            is_watching = self._watches is not None and self._watches.is_synced
            self._is_announced = is_watching and self._is_ready(now_s)
            return [self._started()] if self._is_announced else []
        if self._submitted < launch.tasks and now_s >= self._next_due_s and not self._ground.ahead:
            is_done = self._submit(self._submitted)
            self._submitted += is_done
            self._next_due_s = now_s + (launch.cluster.apart_s if is_done else SUBMIT_AGAIN_S)
        return []

    def _started(self) -> ExecutionStarted:
        launch = self._ground.launch
        return ExecutionStarted(
            t_s=self._ground.t_s(),
            execution=execution_name(launch),
            tasks=launch.tasks,
            max_retries=launch.max_retries,
            timeout_s=launch.timeout_s,
            grace_s=launch.grace_s,
        )

    def _submit(self, task: int) -> bool:
        """Submit a task, once: a server that gave no answer may have taken it all the same. False: it is to be tried again.

        Raises:
            InvalidDocumentError: When the API server takes its manifest for written wrong.
            ApiError: When it refuses it otherwise.
            BrokenHarnessError: When it has not answered for long.
        """
        api, resource, namespace = self._ground.api, self._submission.resource, self._ground.namespace
        thing = self._submission.build(task)
        try:
            with told_as_written_wrong(thing, job_document(self._ground.launch)):
                created: Object | None = api.create(resource, thing, namespace)
        except ApiError as error:
            if error.status == CONFLICT:
                created = api.get(resource, self._submission.name_of(task), namespace)
            else:
                self._patience.bear(error)
                return False
        self._patience.renew()
        if created is not None:
            self._ground.inventory.see(Change("added", resource, created))  # what it owns is then known for its own
        return True

    def _notice_loss(self, now_s: float) -> None:
        """Tell a cluster that is gone, or of which a part is, from one that restarts.

        Raises:
            BrokenHarnessError: When a machine was removed, nothing has answered for long, or a watch has ended by a fault of its own.
        """
        lost = self._lost(now_s)
        if lost:
            raise BrokenHarnessError(lost)
        if self._watches is not None and self._watches.broken:
            raise BrokenHarnessError(f"what happens on the cluster is not seen any more: {self._watches.broken}")
        if self._watches is None or not self._watches.is_failing:
            self._failing_since_s = None
            return
        self._failing_since_s = now_s if self._failing_since_s is None else self._failing_since_s
        if now_s > self._failing_since_s + UNANSWERED_S:
            raise BrokenHarnessError(self._silent())

    def _tell_ends(self, now_s: float) -> list[Event]:
        events: list[Event] = []
        for key in self.attempts.running():
            if not self.attempts.are_over(key, now_s):
                continue
            since_s = self._over_since_s.setdefault(key, now_s)
            has_said_all = all(self.voices.has_said_all(pod.uid) for pod in self.attempts.pods_of(key))
            if has_said_all or now_s > since_s + DRAIN_S:
                events.append(self.attempts.finish(key, self._ground.t_s()))
        return [*events, *self.attempts.conclude(self._ground.t_s())]

    def _told_gaps(self, watches: Watches) -> list[Event]:
        t_s, untold = self._ground.t_s(), self._teller.events_untold
        told: list[Event] = []
        if watches.gaps:
            detail = "objects went through something while a watch was broken, and were seen again only after it"
            told.append(ObservationLost(t_s=t_s, what="cluster", count=watches.gaps, detail=detail))
        if untold:
            detail = f"of the cluster's own events came after the first {EVENTS_MAX} and were not recorded"
            told.append(ObservationLost(t_s=t_s, what="cluster-events", count=untold, detail=detail))
        return told


class ClusterExecution(ClusterCourse):
    """A run on the local cluster: begun by ``begin``; node pools, DWS and the autoscaler are played beside it.

    Attributes:
        grounds: What it works with.
        storage: The run's directories.
        pools: The node pools.
        dws: Who provisions capacity.

    Raises:
        InvalidDocumentError: When the launch cannot be submitted.
    """

    def __init__(self, grounds: Grounds, storage: RunStorage) -> None:
        launch = grounds.launch
        self.grounds, self.storage = grounds, storage
        edits = PodEdits(launch=launch, cluster=grounds.cluster, storage=storage)
        edits.check()
        submission = Submission(edits, ray_version=ray_version())
        super().__init__(grounds, submission, events_dir=storage.events, patience=Patience(grounds.clock, grounds.cluster))
        self._roll = MachineRoll(grounds.machines)
        self._resources.callback(self._roll.close)
        self.pools = NodePools(grounds.machines, grounds.cluster.topology)
        self._arrangement = Arrangement(grounds, storage, self.pools)
        place = (grounds.api, self.pools, grounds.clock)
        self.dws = DwsSimulator(*place, namespace=grounds.namespace, cluster=launch.cluster, task_of=grounds.inventory.task_of)
        self._autoscaler = OnDemandAutoscaler(*place, namespace=grounds.namespace, answer=launch.cluster.on_demand)

    def begin(self) -> None:
        """Make all that the run needs and begin to watch.

        Raises:
            HarnessError: When something cannot be made; the caller takes away what was.
        """
        launch = self.grounds.launch
        self._arrangement.make(self._submission)
        if launch.armed:
            for task in range(launch.tasks):
                self.voices.open_barrier(self.storage.socket_path(task), self._hearing.begin_at_barrier)
        self._begin_to_watch()

    @property
    def record(self) -> RunRecord | None:
        """What the run has made, as it was written down; None when it has made nothing."""
        return self._arrangement.record

    def close(self) -> None:
        """Free what is left."""
        self.pools.close()
        super().close()

    def _is_ready(self, now_s: float) -> bool:
        return self._arrangement.is_ready(now_s)

    def _lost(self, now_s: float) -> str:
        missing = self._roll.missing(now_s)
        return f"of the cluster {self.grounds.cluster.name} {missing}" if missing else ""

    def _silent(self) -> str:
        name = self.grounds.cluster.name
        return f"the API server of cluster {name} has not answered for {UNANSWERED_S:g} s; run `harness up kind`"

    def _move(self, t_s: float) -> list[Event]:
        return [*self.pools.tick(t_s), *self.dws.tick(t_s), *self._autoscaler.tick(t_s)]

    def _take(self, change: Change) -> None:
        self.dws.see(change)
        self._autoscaler.see(change)


def ray_version() -> str:
    """The version of Ray that is installed beside us, or the guide's."""
    try:
        return version("ray")
    except PackageNotFoundError:
        return RAY_VERSION
