"""The target named ``kind``: jobs on a real cluster, in Kueue's queues."""

import contextlib
from collections.abc import Callable, Sequence

from harness.capabilities import Fidelity, Launch
from harness.clock import Clock
from harness.errors import BrokenHarnessError, StoreError, TargetUnavailableError
from harness.history import BarrierReached, Event
from harness.kind import (
    KindCluster,
    NodeContainers,
    find_cluster,
    lasting_problem,
    lasting_problem_with_operators,
    problem_with,
    reason_and_advice,
)
from harness.kind.cluster import problem_with_record
from harness.kind.lock import Turn
from harness.scenario import Scenario
from harness.targets.kubernetes.api import NAMESPACES, Api, ApiError, uid_of
from harness.targets.kubernetes.checking import check_asked, check_names
from harness.targets.kubernetes.collecting import collect
from harness.targets.kubernetes.control_plane import ControlPlaneHosting
from harness.targets.kubernetes.dws import DwsSimulator
from harness.targets.kubernetes.ending import Ending, keep_events
from harness.targets.kubernetes.execution import ClusterExecution
from harness.targets.kubernetes.fidelity import FIDELITY
from harness.targets.kubernetes.grounds import Grounds
from harness.targets.kubernetes.inventory import Inventory
from harness.targets.kubernetes.manifest_files import queues_of
from harness.targets.kubernetes.nodes import NodeHosting
from harness.targets.kubernetes.pod_edits import PodEdits
from harness.targets.kubernetes.pods import PodHosting
from harness.targets.kubernetes.pools import NodePools
from harness.targets.kubernetes.queue import QueueHosting
from harness.targets.kubernetes.run_storage import RunStorage
from harness.targets.kubernetes.signalling import ProcessHosting
from harness.targets.kubernetes.submission import Submission

CHECKED_S = 5.0
"""The cluster is asked who it is no more often than that."""

ENDING_S_MAX = 840.0
"""Runs share what must be whole for the next one: 240 s to mend nodes, 600 s to take the run away and bring node pools to rest. It takes
a minute unless something hangs; who is killed before leaves a broken cluster."""


class KubernetesTarget(ProcessHosting, PodHosting, NodeHosting, QueueHosting, ControlPlaneHosting):
    """Jobs and RayJobs on the local cluster: real API server, scheduler, kubelets, Kueue and KubeRay; nodes are containers.

    One run at a time: queues and node pools are the cluster's, so runs take turns. What Google runs behind a ProvisioningRequest, and its
    autoscaler, are emulated (``dws``, ``autoscaler``). ``fidelity`` says it item by item.
    """

    name = "kind"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turn: Turn | None = None
        self._waited_s = 0.0
        self._execution: ClusterExecution | None = None
        self._checked_s = float("-inf")
        self._is_stopped = False
        self._last: list[Event] = []

    # ---- Target ------------------------------------------------------------------------------------------------------

    def fidelity(self) -> Sequence[Fidelity]:
        """See ``Target``."""
        return FIDELITY

    def check_launch(self, launch: Launch) -> None:
        """See ``LaunchChecking``. Neither the cluster nor whoever has it is asked: only what is written is read."""
        cluster = _recorded_cluster()
        edits = PodEdits(launch=launch, cluster=cluster, storage=RunStorage(cluster.shared_dir, launch))
        edits.check()
        check_asked(launch, queues_of(launch), cluster.topology)
        Submission(edits, ray_version="").build(0)

    def check_scenario(self, scenario: Scenario, launch: Launch) -> None:
        """See ``ScenarioChecking``. As ``check_launch``, it only reads."""
        check_names(scenario, queues_of(launch), _recorded_cluster().topology)

    def take_turn(self, say: Callable[[str], None] = lambda _: None) -> float:
        """See ``TurnTaking``. The cluster is asked only then: whoever had it may have killed its API server."""
        name = _recorded_cluster().name
        self._turn = self._turn or Turn(name)
        self._waited_s += self._turn.take(self._clock, say)
        try:
            _refuse_silent_cluster(self._clock)
        except TargetUnavailableError:
            self._turn.free()
            raise
        return self._waited_s

    def ending_s_max(self) -> float:
        """See ``LongEnding``."""
        return ENDING_S_MAX

    def start(self, launch: Launch) -> None:
        """See ``Target``. Waits for the cluster where another run has it."""
        self.take_turn()
        cluster = _recorded_cluster()
        try:
            launch.logs_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(path=launch.logs_dir, attempted="create", reason=error.strerror or str(error)) from error
        storage = RunStorage(cluster.shared_dir, launch)
        grounds = Grounds(
            launch=launch,
            clock=self._clock,
            cluster=cluster,
            api=Api(cluster.kubeconfig, cluster.context),
            machines=NodeContainers(cluster, self._clock),
            namespace=namespace_of(launch.run_id),
            directory=storage.directory,
            inventory=Inventory(launch.run_id),
        )
        execution = ClusterExecution(grounds, storage)
        self._execution = execution
        try:
            execution.begin()
        except BaseException as error:
            self._stop_after(error)
            raise
        if self._waited_s >= 1.0:
            execution.pending.append(execution.say(f"Waited {self._waited_s:.0f} s for another run on the cluster."))

    def _stop_after(self, error: BaseException) -> None:
        """Take away what was begun; what fails at that does not hide why."""
        try:
            self._end_all()
        except BrokenHarnessError as other:
            error.add_note(f"and while taking away what was begun: {other}")

    def poll(self) -> Sequence[Event]:
        """See ``Target``."""
        if self._execution is None or self._is_stopped:
            return ()
        self.end_notices()
        return self._execution.poll()

    def wait(self, timeout_s: float) -> None:
        """See ``Target``."""
        if self._execution is None or self._is_stopped:
            self._clock.sleep(timeout_s)
        else:
            self._execution.wait(max(0.0, min(timeout_s, self.notice_due_s() - self._clock.monotonic_s())))

    def release(self, barrier: BarrierReached) -> None:
        """See ``Target``."""
        if self._execution is not None and not self._is_stopped:
            self._execution.voices.release(barrier)

    def is_finished(self) -> bool:
        """See ``Target``."""
        return self._is_stopped or (self._execution is not None and self._execution.is_over)

    def has_ended(self) -> bool:
        """See ``Settling``. What it leaves is looked at some time later."""
        return self._execution is not None and self._execution.has_ended

    def stop(self) -> Sequence[Event]:
        """See ``Target``."""
        self._end_all()
        last, self._last = tuple(self._last), []
        return last

    def _end_all(self) -> None:
        """End everything, once. What was seen until then is in ``_last`` whatever fails, for the next ``stop`` to return.

        Raises:
            BrokenHarnessError: When something could not be ended or taken away; the rest was.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        with contextlib.ExitStack() as last:
            last.callback(self._free_turn)
            last.callback(self.end_mending)
            if self._execution is not None:
                last.callback(self._execution.close)
                self._end(self._execution)

    def _end(self, execution: ClusterExecution) -> None:
        grounds = execution.grounds
        if not (execution.is_over and execution.attempts.have_succeeded):
            with contextlib.suppress(OSError):  # a full disk keeps nothing from being ended
                collect(grounds.api, grounds.namespace, grounds.launch.logs_dir / "cluster", self._clock)
        if execution.record is None:
            self._hush(execution)
            return
        ending = Ending(grounds.api, grounds.cluster, execution.record, self._clock)
        ending.end_pods()
        try:
            self._hush(execution)
            with contextlib.suppress(OSError):
                keep_events(execution.storage.events, grounds.launch.logs_dir)
        finally:
            self.end_mending()  # a machine that is started now would be up in a pool that rests without it
            ending.remove_all(pools=execution.pools)
        self._last += [execution.say(line) for line in ending.done if line.startswith("forced")]

    def _hush(self, execution: ClusterExecution) -> None:
        try:
            execution.hush()
        finally:
            self._last += execution.pending
            execution.pending = []

    # ---- what the other parts need -----------------------------------------------------------------------------------

    @property
    def grounds(self) -> Grounds:
        """What the run works with; seen to be the cluster that it began on.

        Raises:
            LookupError: When no execution runs, or another cluster answers.
        """
        grounds = self.execution.grounds
        self._see_that_it_is_ours(grounds)
        return grounds

    @property
    def pools(self) -> NodePools:
        """The node pools.

        Raises:
            LookupError: When no execution runs.
        """
        return self.execution.pools

    @property
    def dws(self) -> DwsSimulator:
        """Who provisions capacity.

        Raises:
            LookupError: When no execution runs.
        """
        return self.execution.dws

    @property
    def execution(self) -> ClusterExecution:
        """The one that runs.

        Raises:
            LookupError: When none does.
        """
        if self._execution is None or self._is_stopped:
            raise LookupError("no execution runs on the kind target")
        return self._execution

    def _see_that_it_is_ours(self, grounds: Grounds) -> None:
        """Nothing is hurt in a cluster that has taken the place of ours; one that does not answer is asked again later."""
        name, ours = grounds.cluster.name, grounds.cluster.uid
        recorded = find_cluster()
        if recorded is None or recorded.uid != ours:
            raise LookupError(f"the cluster {name} was taken down or made anew: its uid is not {ours} any more")
        if self._clock.monotonic_s() < self._checked_s + CHECKED_S:
            return
        try:
            found = grounds.api.get(NAMESPACES, "kube-system")
        except ApiError as error:
            if error.is_of_another:
                raise LookupError(f"another cluster answers in place of {name}: {error}") from error
            return
        uid = "" if found is None else uid_of(found)
        if uid != ours:
            raise LookupError(f"another cluster answers in place of {name}: its uid is {uid}, not {ours}")
        self._checked_s = self._clock.monotonic_s()

    def _free_turn(self) -> None:
        if self._turn is not None:
            self._turn.free()


def namespace_of(run_id: str) -> str:
    """The namespace of a run."""
    return f"harness-{run_id}"


def _recorded_cluster() -> KindCluster:
    """The cluster as it was brought up, whether or not it answers just now."""
    cluster = find_cluster()
    problem = problem_with(None) if cluster is None else problem_with_record(cluster)
    if problem or cluster is None:
        raise _unavailable(problem)
    return cluster


def _refuse_silent_cluster(clock: Clock) -> None:
    """See that the cluster answers, with Kueue and KubeRay, now that nobody else can have silenced it."""
    cluster = find_cluster()
    problem = lasting_problem(cluster, clock)
    if cluster is not None and not problem:
        problem = lasting_problem_with_operators(cluster, clock)
    if problem:
        raise _unavailable(problem)


def _unavailable(problem: str) -> TargetUnavailableError:
    reason, advice = reason_and_advice(problem)
    return TargetUnavailableError(target="kind", reason=reason, advice=advice)
