"""The target named ``gcp`` where its place names a cluster: Jobs and RayJobs on a GKE cluster of a project."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from harness.capabilities import Fidelity, Launch, Processes
from harness.clock import Clock
from harness.cloud_run.environment import CHECKPOINTS_AT
from harness.errors import HarnessError, StoreError
from harness.history import BarrierReached, Event
from harness.scenario import Fault, Scenario
from harness.targets.gcp.adopting import adopt
from harness.targets.gcp.applied import require_applied
from harness.targets.gcp.bucket import require_allowed_bucket
from harness.targets.gcp.calling import CALL_DEADLINE_S, Caller
from harness.targets.gcp.connection import EMULATOR_VARIABLE, Clients, connect
from harness.targets.gcp.failures import CallError
from harness.targets.gcp.footprint import write_footprint
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.leftovers import remove_run
from harness.targets.gcp.machines import Machines
from harness.targets.gcp.masking import Mask
from harness.targets.gcp.oversight import Oversight
from harness.targets.gcp.pace import EMULATED, PROJECT
from harness.targets.gcp.place import Place, resolve_place
from harness.targets.gcp.plan import digest_of
from harness.targets.gcp.pool_sizes import PoolSizes
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.undoing import CLUSTER_S
from harness.targets.gcp.works import Works
from harness.targets.gke.ending import GONE_S, remove_namespace
from harness.targets.gke.execution import ProjectExecution
from harness.targets.gke.fidelity import FIDELITY
from harness.targets.gke.grounds import ProjectGrounds
from harness.targets.gke.namespaces import namespace_of
from harness.targets.gke.nodes import Hands, ProjectNodeHosting
from harness.targets.gke.queues import ProjectQueueChanging
from harness.targets.gke.refusals import REVOCATION, check_launch, fault_problem, image_of
from harness.targets.gke.server import ServerApi
from harness.targets.kubernetes.collecting import collect
from harness.targets.kubernetes.inventory import Inventory
from harness.targets.kubernetes.pods import PodRemoving

ENDING_S_MAX = 2 * CLUSTER_S + GONE_S + 3 * CALL_DEADLINE_S
"""A node pool gets its size and its autoscaling back, the namespace goes, and then the objects. It takes minutes unless the cluster is at
something else; who is killed before leaves a pool of somebody else's at no nodes."""


class ProjectClusterTarget(ProjectNodeHosting, PodRemoving, ProjectQueueChanging):
    """Jobs and RayJobs in Kueue's queues of a cluster that is adopted; its nodes are hurt through Compute and Kubernetes Engine.

    A run makes its own namespace and changes of the cluster's own what its faults change, each with its undo written before.
    """

    name = "gcp"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._execution: ProjectExecution | None = None
        self._hands: Hands | None = None
        self._open: contextlib.ExitStack | None = None
        self._oversight: Oversight | None = None
        self._is_stopped = False
        self._scenario: Scenario | None = None
        self._mask = Mask(Secrets())
        self._last: list[Event] = []

    # ---- Target ------------------------------------------------------------------------------------------------------

    def fidelity(self) -> Sequence[Fidelity]:
        """See ``Target``."""
        return FIDELITY

    def fault_problem(self, fault: Fault) -> str:
        """See ``FaultChecking``."""
        return fault_problem(fault)

    def check_launch(self, launch: Launch) -> None:
        """See ``LaunchChecking``. No service is asked."""
        check_launch(launch, self._place())

    def check_scenario(self, scenario: Scenario, launch: Launch) -> None:
        """See ``ScenarioChecking``. It is kept: only what was planned begins on a project."""
        del launch
        self._scenario = scenario

    def start(self, launch: Launch) -> None:
        """See ``Target``."""
        self.check_launch(launch)
        for directory in (launch.logs_dir, launch.checkpoint_dir):
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(path=directory, attempted="create", reason=error.strerror or str(error)) from error
        self._open = contextlib.ExitStack()
        self.cluster_name = self._place().cluster_name
        try:
            self._begin(launch, self._open)
        except BaseException as error:
            self._stop_after(error)
            raise

    def _begin(self, launch: Launch, resources: contextlib.ExitStack) -> None:
        place, secrets = self._place(), Secrets()
        plan = require_applied(place, self._clock, scenario=self._scenario, seed=launch.seed)
        secrets.learn_environment(os.environ)
        secrets.learn_environment(launch.environment)
        self._mask = Mask(secrets)
        clients = connect(place.project, os.environ, secrets)
        resources.callback(clients.close)
        caller = Caller(clock=self._clock, secrets=secrets, renew=clients.renew, problem=clients.problem)
        require_allowed_bucket(clients, caller, place.bucket)
        grounds = self._grounds(launch, place, clients, caller)
        resources.callback(grounds.api.close)
        self._oversight = Oversight(clients, caller, place, plan=plan)
        resources.push(self._oversight.leave)
        self._oversight.begin(launch.run_id, digest_of(self._scenario, launch.seed) if self._scenario is not None else "")
        write_footprint(launch.run_id, place, os.environ, is_of_cluster=True)
        resources.callback(self._take_away, grounds)
        works = Works(caller)
        resources.callback(works.give_up)
        self._hands = Hands(
            machines=Machines(clients, caller),
            sizes=PoolSizes(clients, caller, place.project),
            works=works,
            hasten=self._oversight.hasten,
        )
        self._execution = ProjectExecution(grounds, works)
        resources.callback(self._execution.close)
        self._execution.begin()

    def _take_away(self, grounds: ProjectGrounds) -> None:
        """Remove all that the run has made; where its namespace stays, it stays written down where that is."""
        run_id, project = grounds.launch.run_id, grounds.project
        is_all = False
        try:
            remove_namespace(grounds.api, run_id, self._clock)
            is_all = True
        finally:
            remove_run(run_id, project.place, project.clients, project.caller, is_all=is_all)

    def _grounds(self, launch: Launch, place: Place, clients: Clients, caller: Caller) -> ProjectGrounds:
        """What the run works with: its cluster is looked up, and faults are allowed on it."""
        cluster = adopt(clients, caller, place)
        pace = EMULATED if clients.is_emulator else PROJECT
        own = replace(caller, chance=Random(1))  # noqa: S311  jitter, no cryptography; watches call in threads of their own
        return ProjectGrounds(
            launch=launch,
            clock=self._clock,
            api=ServerApi(cluster, clients, own),
            namespace=namespace_of(launch.run_id),
            inventory=Inventory(launch.run_id),
            project=Grounds(launch=launch, clock=self._clock, clients=clients, caller=caller, place=place, pace=pace),
            cluster=cluster,
            image=image_of(launch, place),
            emulator=os.environ.get(EMULATOR_VARIABLE, ""),
        )

    def _stop_after(self, error: BaseException) -> None:
        """Take away what was begun; what fails at that does not hide why."""
        try:
            self._end_all()
        except HarnessError as other:
            error.add_note(f"and while taking away what was begun: {other}")

    def poll(self) -> Sequence[Event]:
        """See ``Target``."""
        if self._execution is None or self._is_stopped:
            return ()
        if self._oversight is not None:
            self._oversight.look()
        return self._mask.of(self._execution.poll())

    def require_permission(self) -> None:
        """See ``Permitting``. Its owners' labels are read anew."""
        if self._oversight is not None and not self._is_stopped:
            self._oversight.look(at_once=True)

    def wait(self, timeout_s: float) -> None:
        """See ``Target``."""
        if self._execution is None or self._is_stopped:
            self._clock.sleep(timeout_s)
        else:
            self._execution.wait(timeout_s)

    def release(self, barrier: BarrierReached) -> None:
        """See ``Target``. Nobody waits: what is to be held is refused when it is bound."""

    def is_finished(self) -> bool:
        """See ``Target``."""
        return self._is_stopped or (self._execution is not None and self._execution.is_over)

    def stop(self) -> Sequence[Event]:
        """See ``Target``. The namespace goes with the job, the run's part of the bucket with it."""
        self._end_all()
        last, self._last = self._mask.of(self._last), []
        return last

    def _end_all(self) -> None:
        """End everything, once. What was seen until then is in ``_last`` whatever fails, for the next ``stop`` to return.

        Raises:
            HarnessError: When something could not be ended or removed; the rest was.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        resources, self._open = self._open, None
        if resources is None:
            return
        with resources:
            if self._execution is not None:
                self._end(self._execution)

    def _end(self, execution: ProjectExecution) -> None:
        grounds = execution.grounds
        if not (execution.is_over and execution.attempts.have_succeeded):
            with contextlib.suppress(OSError):  # a full disk keeps nothing from being ended
                collect(grounds.api, grounds.namespace, grounds.launch.logs_dir / "cluster", self._clock)
        try:
            execution.hush()
        finally:
            self._last += execution.pending
            execution.pending = []
        self._last += execution.last_look()

    # ---- LongEnding, QueueHost, CheckpointStorage, ImageHost ---------------------------------------------------------------------

    def ending_s_max(self) -> float:
        """See ``LongEnding``."""
        return ENDING_S_MAX

    def revoke_capacity(self, victim: Processes) -> tuple[str, ...]:
        """See ``QueueHost``: refused when a scenario is bound."""
        raise LookupError(f"{REVOCATION} (task {victim.task})")

    def checkpoint_path(self, task: int) -> Path:
        """See ``CheckpointStorage``. A mirror of the bucket: what is changed in it is carried there by the next ``poll``."""
        execution = self.execution
        launch = execution.grounds.launch
        if not 0 <= task < launch.tasks:
            raise LookupError(f"the execution has no task {task}, but {launch.tasks}")
        if execution.storage is None:
            raise LookupError(f"pods of cluster {execution.grounds.cluster.name} mount no bucket: there is nothing to change")
        try:
            execution.storage.show()
        except CallError as error:
            raise LookupError(str(error)) from error
        path, mounted = launch.checkpoint_path, launch.checkpoint_dir
        if mounted.is_symlink() or not path.resolve().is_relative_to(mounted.resolve()):
            raise LookupError(f"{path} leads out of the mirrored directory, to {path.resolve()}, where nothing is ours to change")
        return path

    def interpreter(self) -> str:
        """See ``ImageHost``. That of the image."""
        return "python3"

    def mounted_at(self, checkpoint_dir: Path) -> str:
        """See ``ImageHost``."""
        del checkpoint_dir
        return CHECKPOINTS_AT

    # ---- what the other parts need -----------------------------------------------------------------------------------

    @property
    def grounds(self) -> ProjectGrounds:
        """See ``ClusterHosting``. The authority of the API server tells it from another at its address."""
        return self.execution.grounds

    @property
    def hands(self) -> Hands:
        """See ``ProjectNodeHosting``."""
        if self._hands is None or self._is_stopped:
            raise LookupError("no execution runs on the cluster of the gcp target")
        return self._hands

    @property
    def execution(self) -> ProjectExecution:
        """The one that runs.

        Raises:
            LookupError: When none does.
        """
        if self._execution is None or self._is_stopped:
            raise LookupError("no execution runs on the cluster of the gcp target")
        return self._execution

    def _place(self) -> Place:
        return resolve_place({}, os.environ)
