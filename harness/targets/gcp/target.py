"""The target ``gcp``: Cloud Run jobs on a Google Cloud project, or on an emulator that Google's own clients talk to."""

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.capabilities import Fidelity, Launch
from harness.clock import Clock
from harness.cloud_run.environment import CHECKPOINTS_AT
from harness.errors import BrokenHarnessError, HarnessError, StoreError, UsageError
from harness.history import BarrierReached, Event
from harness.scenario import Scenario
from harness.targets.gcp.applied import require_applied
from harness.targets.gcp.bucket import require_allowed_bucket
from harness.targets.gcp.calling import CALL_DEADLINE_S, Caller
from harness.targets.gcp.connection import connect, emulator_addresses
from harness.targets.gcp.deployment import Surroundings, build_job, copy_job
from harness.targets.gcp.execution import GcpExecution
from harness.targets.gcp.failures import CallError, ResourceMissingError
from harness.targets.gcp.fidelity import EMULATED_FIDELITY, FIDELITY
from harness.targets.gcp.footprint import write_footprint
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.guard import require_allowed
from harness.targets.gcp.job_volumes import volume_problems
from harness.targets.gcp.leftovers import remove_run
from harness.targets.gcp.masking import Mask
from harness.targets.gcp.moments import points_of
from harness.targets.gcp.oversight import Oversight
from harness.targets.gcp.pace import EMULATED, PROJECT
from harness.targets.gcp.place import Place, resolve_place
from harness.targets.gcp.plan import digest_of
from harness.targets.gcp.refusals import check_launch
from harness.targets.gcp.run_names import run_job_name
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.signalling import ProcessHosting
from harness.targets.gcp.submission import Jobs
from harness.targets.gcp.undoing import ENDED_S

INTERRUPTED_S_MAX = 15.0
"""The same when the run was interrupted: whoever did that waits, and what has not ended by then is ended by `harness clean`."""

ENDING_S_MAX = INTERRUPTED_S_MAX + ENDED_S + 3 * CALL_DEADLINE_S
"""All of that: what has not ended is cancelled once more and waited for, its job is deleted, and its objects are listed and deleted. It
takes seconds unless a service hangs; who is killed before leaves a job and objects that cost money."""

STOP_S_MAX = 90.0
"""For an execution to end after its cancel: SIGTERM, ten seconds, SIGKILL, and what the platform needs to say so."""


class GcpTarget(ProcessHosting):
    """Jobs on Cloud Run. The job is the run's own (deployed, or a copy of an adopted one), its command is wrapped by the agent.

    Retries, timeouts, cancels and what storage shows are the platform's own. The SIGTERM of a maintenance, and every other signal, is sent
    by the agent in the container: no service lets anybody cause a maintenance of Cloud Run. ``fidelity`` says it item by item.
    """

    name = "gcp"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._execution: GcpExecution | None = None
        self._open: contextlib.ExitStack | None = None
        self._oversight: Oversight | None = None
        self._is_stopped = self._is_interrupted = False
        self._points: tuple[str, ...] = ()
        self._scenario: Scenario | None = None
        self._mask = Mask(Secrets())
        self._last: list[Event] = []

    # ---- Target ------------------------------------------------------------------------------------------------------

    def fidelity(self) -> Sequence[Fidelity]:
        """See ``Target``."""
        return EMULATED_FIDELITY if self._is_emulated else FIDELITY

    def check_launch(self, launch: Launch) -> None:
        """See ``LaunchChecking``. No service is asked."""
        check_launch(launch, self._place(), is_emulated=self._is_emulated)

    def check_scenario(self, scenario: Scenario, launch: Launch) -> None:
        """See ``ScenarioChecking``. Everything that a scenario of Cloud Run names is its own; where it acts is kept for the agent."""
        self._scenario = scenario
        if launch.armed:
            self._points = points_of(scenario)

    def start(self, launch: Launch) -> None:
        """See ``Target``."""
        self.check_launch(launch)
        for directory in (launch.logs_dir, launch.checkpoint_dir):
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(path=directory, attempted="create", reason=error.strerror or str(error)) from error
        self._open = contextlib.ExitStack()
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
        grounds = Grounds(
            launch=launch,
            clock=self._clock,
            clients=clients,
            caller=Caller(clock=self._clock, secrets=secrets, renew=clients.renew, problem=clients.problem),
            place=place,
            pace=EMULATED if clients.is_emulator else PROJECT,
        )
        require_allowed_bucket(clients, grounds.caller, place.bucket)
        self._oversight = Oversight(clients, grounds.caller, place, plan=plan)
        resources.push(self._oversight.leave)
        self._oversight.begin(launch.run_id, digest_of(self._scenario, launch.seed) if self._scenario is not None else "")
        write_footprint(launch.run_id, place, os.environ)
        resources.callback(remove_run, launch.run_id, place, clients, grounds.caller)
        job = run_job_name(place, launch.run_id)
        self._deploy(grounds, job)
        self._oversight.require_alone()
        self._execution = GcpExecution(grounds, job, beat=self._oversight.look)
        self._execution.begin()

    def _deploy(self, grounds: Grounds, name: str) -> None:
        """Make the run's job: a copy of the one that is adopted, or as the guide deploys it."""
        place = grounds.place
        working_dir = str(grounds.launch.directory) if grounds.clients.is_emulator else ""
        around = Surroundings(place=place, pace=grounds.pace, interpreter=self.interpreter(), working_dir=working_dir, points=self._points)
        around = replace(around, lock=self._oversight.lock if self._oversight is not None else "")
        jobs = Jobs(grounds.clients, grounds.caller)
        try:
            adopted = jobs.get(place.job_name)
        except ResourceMissingError:
            if not (grounds.launch.image or place.image):
                raise
            jobs.create(build_job(grounds.launch, around), name)
        else:
            require_allowed("job", place.job_name, dict(adopted.labels))
            for problem in volume_problems(adopted):
                raise UsageError(problem)
            jobs.create(copy_job(adopted, grounds.launch, around), name)

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
        """See ``Target``."""
        if self._execution is not None and not self._is_stopped:
            self._execution.release(barrier)

    def is_finished(self) -> bool:
        """See ``Target``."""
        return self._is_stopped or (self._execution is not None and self._execution.is_over)

    def stop(self) -> Sequence[Event]:
        """See ``Target``. Cancels, waits until Cloud Run has ended it, and removes all that the run has made."""
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
                resources.callback(self._execution.close)
                if self._is_interrupted:
                    self._execution.end_all(self._last, deadline_s=INTERRUPTED_S_MAX, is_heard=False)
                    return
                self._execution.end_all(self._last, deadline_s=STOP_S_MAX)
                if self._execution.name and not self._execution.is_over:
                    name = self._execution.name
                    raise BrokenHarnessError(
                        f"execution {name} was not seen to end within {STOP_S_MAX:g} s of its cancel; run `harness clean`"
                    )

    # ---- Interruptible, LongEnding, StartupCounting, Cancellable, CheckpointStorage, ImageHost, MemoryLimiter ---

    def interrupt(self) -> None:
        """See ``Interruptible``."""
        self._is_interrupted = True

    def ending_s_max(self) -> float:
        """See ``LongEnding``."""
        return ENDING_S_MAX

    def has_ended(self) -> bool:
        """See ``Settling``. Its last words and its log may come minutes later."""
        return self._execution is not None and self._execution.is_over_there

    def startup_s(self) -> float:
        """See ``StartupCounting``."""
        return self._execution.startup.total_s if self._execution is not None else 0.0

    def cancel(self) -> None:
        """See ``Cancellable``."""
        self.execution.cancel()

    def checkpoint_path(self, task: int) -> Path:
        """See ``CheckpointStorage``. A mirror of the bucket: what is changed in it is carried there before the job goes on."""
        execution = self.execution
        launch = execution.grounds.launch
        if not 0 <= task < launch.tasks:
            raise LookupError(f"the execution has no task {task}, but {launch.tasks}")
        try:
            execution.storage.show()
        except CallError as error:
            raise LookupError(str(error)) from error
        path, mounted = launch.checkpoint_path, launch.checkpoint_dir
        if mounted.is_symlink() or not path.resolve().is_relative_to(mounted.resolve()):
            raise LookupError(f"{path} leads out of the mirrored directory, to {path.resolve()}, where nothing is ours to change")
        return path

    def interpreter(self) -> str:
        """See ``ImageHost``. That of the image; on an emulator, which looks into none, this one."""
        return sys.executable if self._is_emulated else "python3"

    def mounted_at(self, checkpoint_dir: Path) -> str:
        """See ``ImageHost``."""
        del checkpoint_dir
        return CHECKPOINTS_AT

    def memory_problem(self) -> str:
        """See ``MemoryLimiter``."""
        return "the emulator runs jobs as processes without a limit" if self._is_emulated else ""

    # ---- what the other parts need -----------------------------------------------------------------------------------

    @property
    def execution(self) -> GcpExecution:
        """The one that runs.

        Raises:
            LookupError: When none does.
        """
        if self._execution is None or self._is_stopped:
            raise LookupError("no execution runs on the gcp target")
        return self._execution

    @property
    def _is_emulated(self) -> bool:
        return emulator_addresses(os.environ) is not None

    def _place(self) -> Place:
        return resolve_place({}, os.environ)
