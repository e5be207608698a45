"""All that a harness does on a project, one part after the other, on an emulator: plan, apply, run, a run that is stopped, clean."""

import os
import subprocess
from collections import Counter
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import psutil
from google.cloud import run_v2
from msgspec.structs import replace

from harness.cli.cleaning import Told, What, clean
from harness.cli.project_cleaning import clean_project
from harness.cli.project_plan import AskedOfProject, Project, held, plan_or_apply, project_asked_for, told
from harness.clock import SystemClock
from harness.emulator import Emulator, InjectedFault
from harness.emulator.session import BUCKET, JOB, OWNED_LABELS, PROJECT, REGION
from harness.emulator.storage.buckets import BucketSettings
from harness.runner import Options, Run, run_scenario
from harness.scenario import Injection, Platform, Scenario
from harness.scenario.expectations import Completes, WithinRetries
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.store import RunStore
from harness.targets.gcp.connection import Clients, connect
from harness.targets.gcp.footprint import footprints_directory, write_footprint
from harness.targets.gcp.guard import ALLOWED_LABEL, ALLOWED_VALUE, RUN_LABEL, run_prefix
from harness.targets.gcp.lock_holders import LEASE_S, SKEW_S
from harness.targets.gcp.place import Place
from harness.targets.gcp.run_names import run_job_name, run_label
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.target import GcpTarget
from harness.undo import CancelRunExecution, ProcessId, RestoreProject, identify
from scenarios.jobs import COUNTER

ROOT = Path(__file__).resolve().parents[3]
PLACE = Place(project=PROJECT, region=REGION, bucket=BUCKET, job=JOB)

KILLED = Scenario(
    name="a-killed-job-is-tried-again",
    why="a host error",
    workload=replace(COUNTER, steps=6, environment={"STEPS": "6", "STEP_SECONDS": "0.02", "SAVE_EVERY": "2"}),
    platform=Platform(max_retries=1, timeout_s=60.0),
    injections=(Injection(fault=Kill(), at=AtStep(step=3)),),
    expects=(Completes(), WithinRetries(attempts_max=2)),
    deadline_s=60.0,
)
"""Guide A's counter, short."""

STOPPED = replace(
    KILLED,
    name="a-job-that-is-too-slow-is-stopped",
    workload=replace(COUNTER, steps=600, environment={"STEPS": "600", "STEP_SECONDS": "0.5", "SAVE_EVERY": "2"}),
    platform=Platform(max_retries=1, timeout_s=60.0, grace_s=0.2),
    injections=(),
    deadline_s=0.3,
)
"""Its execution goes on until somebody ends it."""

LEASE_OVER_S = LEASE_S + SKEW_S + 1.0

PHASES = ("plan", "apply", "run", "stop", "clean")


class Ahead:
    """The system's clock, that a test moves ahead."""

    def __init__(self) -> None:
        self._clock, self.ahead_s = SystemClock(), 0.0

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s() + self.ahead_s

    def utc(self) -> datetime:
        return self._clock.utc() + timedelta(seconds=self.ahead_s)

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


class Course:
    """One project with the guide's job, and what a harness does there. What a part has called is found in ``calls``."""

    def __init__(self, emulator: Emulator, directory: Path) -> None:
        self.emulator = emulator
        self._clock = Ahead()
        self.calls: dict[str, Counter[str]] = {}
        self.store = RunStore(directory / "runs", self._clock)
        self._runs = directory / "runs"
        self._plan = directory / "plan.json"
        project = emulator.world.projects.find(PROJECT)
        assert project is not None
        settings = BucketSettings(labels=OWNED_LABELS)
        emulator.buckets.create(BUCKET, project=PROJECT, project_number=project.number, settings=settings)
        self._make_job(JOB, {ALLOWED_LABEL: ALLOWED_VALUE})

    # ---- the parts ---------------------------------------------------------------------------------------------------

    def begin(self, phase: str, fault: InjectedFault | None = None) -> None:
        """Do what comes before a part; then put the fault in force."""
        scenario = STOPPED if phase == "stop" else KILLED
        if phase in ("apply", "run", "stop"):
            assert self.plan(scenario) == 0
        if phase in ("run", "stop"):
            self.apply(scenario)
        if phase == "clean":
            self._leave_behind()
        self._before = len(self.emulator.world.calls.all())
        if fault is not None:
            self.emulator.world.injections.add(fault)

    def play(self, phase: str) -> Run | int | list[Told] | None:
        """Do a part, after ``begin``.

        Raises:
            HarnessError: When it could not be done.
        """
        try:
            match phase:
                case "plan":
                    return self.plan(KILLED)
                case "apply":
                    self.apply(KILLED)
                    return None
                case "run" | "stop":
                    return self.run(KILLED if phase == "run" else STOPPED)
                case _:
                    return self.clean()
        finally:
            self.calls[phase] = Counter(call.method for call in self.emulator.world.calls.all()[self._before :])

    def plan(self, scenario: Scenario) -> int:
        """``harness run --plan``: the exit code."""
        code = plan_or_apply(self._asked_for(), [scenario], seed=0, clock=self._clock, as_json=False)
        assert code is not None
        return code

    def apply(self, scenario: Scenario) -> None:
        """What ``harness run --apply`` does before the first run."""
        self._project = self._asked_for(apply=True)
        assert plan_or_apply(self._project, [scenario], seed=0, clock=self._clock, as_json=False) is None

    def run(self, scenario: Scenario) -> Run:
        """The run itself, with the lock of the project."""
        options = Options(root=ROOT, keep=True)
        with told(self._project), held(self._project, self._clock, self._runs):
            return run_scenario(scenario, target=lambda: GcpTarget(self._clock), clock=self._clock, store=self.store, options=options)

    def clean(self) -> list[Told]:
        """``harness clean --target gcp``: all that it tells."""
        undone = list(clean(self._runs, self._clock))
        return [*undone, *clean_project(PLACE.named(), None, runs_dir=self._runs, clock=self._clock)]

    def end(self) -> None:
        """The processes that have made the runs are gone, as far as anybody can tell."""
        gone = _dead_process()
        for run in self.store.runs():
            owner = run.owner()
            assert owner is not None
            run.write(run.owner_path, msgspec.json.encode(replace(owner, process=gone)))

    def outlive_locks(self) -> None:
        """Whoever has not freed the project by now does not have it any more."""
        self.pass_time(LEASE_OVER_S)

    def pass_time(self, seconds: float) -> None:
        """On the harness's clock."""
        self._clock.ahead_s += seconds

    # ---- what is there -----------------------------------------------------------------------------------------------

    def leftovers(self) -> list[str]:
        """All that should not be there any more, in words."""
        with closing(self._connect()) as clients:
            jobs = [job.name.rpartition("/")[2] for job in clients.jobs.list_jobs(parent=PLACE.parent)]
            executions = list(clients.executions.list_executions(parent=PLACE.job_name))
        objects = [path for path in self.emulator.buckets.directory(BUCKET).rglob("*") if path.is_file()]
        owed = [entry.injection for run in self.store.runs() for entry in run.undo.owed()]
        footprints = list(footprints_directory().glob("*.json"))
        return [
            *(f"job {name}" for name in jobs if name != JOB),
            *(f"execution {execution.name}" for execution in executions),
            *(f"object {path.name}" for path in objects),
            *(f"undo of {injection}" for injection in owed),
            *(f"footprint {path.name}" for path in footprints),
            *_processes(),
        ]

    # ---- how it is made ----------------------------------------------------------------------------------------------

    def _asked_for(self, *, apply: bool = False) -> Project:
        options = {} if apply else {name: value for name, value in PLACE.named().items() if value}
        asked = AskedOfProject(
            options=options,
            limits={"gpu_hours": None, "blast_radius": None, "duration_s": None},
            config=None,
            plans=not apply,
            apply=self._plan if apply else None,
            plan_file=self._plan,
        )
        project = project_asked_for("gcp", asked)
        assert project is not None
        return project

    def _connect(self) -> Clients:
        return connect(PROJECT, os.environ, Secrets())

    def _make_job(self, name: str, labels: dict[str, str]) -> None:
        task = run_v2.TaskTemplate(containers=[run_v2.Container(image="job", command=["sleep", "600"])], timeout=timedelta(seconds=600))
        job = run_v2.Job(labels=labels, template=run_v2.ExecutionTemplate(template=task))
        with closing(self._connect()) as clients:
            clients.jobs.create_job(parent=PLACE.parent, job=job, job_id=name).result(timeout=30)

    def _leave_behind(self) -> None:
        """What a run whose process was killed leaves: its job with an execution, objects, and an undo that is owed."""
        run, run_id = self.store.create("killed", 0)
        write_footprint(run_id, PLACE, os.environ)
        name = run_job_name(PLACE, run_id)
        self._make_job(name.rpartition("/")[2], {RUN_LABEL: run_label(run_id), ALLOWED_LABEL: ALLOWED_VALUE})
        with closing(self._connect()) as clients:
            begun = clients.jobs.run_job(name=name).metadata.name.rpartition("/")[2]
            for path in ("checkpoints/2", "agent/orders/0-0/00001.json"):
                clients.storage.bucket(BUCKET).blob(f"{run_prefix(run_id)}{path}").upload_from_string(b"x")
        action = CancelRunExecution(name=f"{name}/executions/{begun}")
        emulator = self.emulator.endpoints.environment()["HARNESS_GCP_EMULATOR"]
        run.undo.owe("execution", RestoreProject(project=PROJECT, actions=(action,), emulator=emulator))
        self.end()


def _dead_process() -> ProcessId:
    with subprocess.Popen(["sleep", "600"]) as process:
        identity = identify([process.pid])[0]
        process.kill()
    return identity


def failures_in(told: list[Told]) -> list[str]:
    """What could not be cleaned."""
    return [line.text for line in told if line.what is What.FAILED]


def _processes() -> list[str]:
    """Those that run below this one; one that has ended runs no more, whoever has not waited for it yet."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found.append(f"process {' '.join(process.cmdline())}")
    return found
