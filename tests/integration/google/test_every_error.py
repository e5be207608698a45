"""Every error of a service at every call that a harness makes on a project: a verdict or a clear error, and nothing is left.

The calls are those of a right course, as the emulator's journal has them: ``test_the_table_has_every_call`` holds the two together.
"""

from dataclasses import dataclass
from typing import Literal

import pytest

from harness.cli.cleaning import What
from harness.cli.owed import owing
from harness.emulator import ApiError, Emulator, InjectedFault
from harness.emulator.failures import (
    aborted,
    deadline_exceeded,
    not_found,
    permission_denied,
    quota_exceeded,
    rate_limited,
    unauthenticated,
    unavailable,
)
from harness.emulator.session import PROJECT
from harness.errors import HarnessError
from harness.runner import Run
from harness.targets.gcp import execution_end, target, undoing
from harness.targets.gcp.calling import RetryPolicy
from harness.targets.gcp.failures import PermissionMissingError
from harness.targets.gcp.permissions import BUCKET_PERMISSIONS, JOB_PERMISSIONS, PROJECT_PERMISSIONS, UNASKED_PERMISSIONS
from harness.verdict import Outcome
from tests.integration.google.course import PHASES, Course, failures_in

Position = Literal["first", "middle", "last", "every"]
POSITIONS: tuple[Position, ...] = ("first", "middle", "last", "every")

JOBS, EXECUTIONS, TASKS = "google.cloud.run.v2.Jobs", "google.cloud.run.v2.Executions", "google.cloud.run.v2.Tasks"
LOGGING = "google.logging.v2.LoggingServiceV2"
READING = {
    f"{JOBS}/GetJob",
    f"{JOBS}/TestIamPermissions",
    "storage.buckets.get",
    "storage.buckets.list",
    "storage.buckets.testIamPermissions",
}
OBJECTS = {"storage.objects.delete", "storage.objects.get", "storage.objects.insert", "storage.objects.list"}
RUNNING = OBJECTS | {
    f"{JOBS}/CreateJob",
    f"{JOBS}/DeleteJob",
    f"{JOBS}/GetJob",
    f"{JOBS}/ListJobs",
    f"{JOBS}/RunJob",
    f"{EXECUTIONS}/GetExecution",
    f"{EXECUTIONS}/ListExecutions",
    f"{TASKS}/ListTasks",
    f"{LOGGING}/ListLogEntries",
    f"{LOGGING}/WriteLogEntries",
    "storage.buckets.get",
    "storage.buckets.list",
}
CLEANING = OBJECTS | {
    f"{JOBS}/DeleteJob",
    f"{JOBS}/ListJobs",
    f"{EXECUTIONS}/CancelExecution",
    f"{EXECUTIONS}/GetExecution",
    f"{EXECUTIONS}/ListExecutions",
    "storage.buckets.get",
    "storage.buckets.list",
}
CALLS = {"plan": READING, "apply": READING, "run": RUNNING, "stop": RUNNING | {f"{EXECUTIONS}/CancelExecution"}, "clean": CLEANING}
"""What each part of a right course calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What befalls a call.

    Attributes:
        error: What is answered, if anything is.
        drop: When the connection is cut.
        is_partial: Whether the answer is cut short.
        passes: Whether one such answer costs nothing: it is asked again.
    """

    error: ApiError | None = None
    drop: Literal["", "before", "after"] = ""
    is_partial: bool = False
    passes: bool = False

    def at(self, method: str, nth: int, times: int) -> InjectedFault:
        """As a fault of the emulator."""
        return InjectedFault(method=method, nth=nth, times=times, error=self.error, drop=self.drop, is_partial=self.is_partial)


TROUBLES = {
    "not found": Trouble(error=not_found("projects/emulated/what/was/asked/for")),
    "permission": Trouble(error=permission_denied("some.permission.needed", "the resource")),
    "quota": Trouble(error=quota_exceeded("NvidiaL4GpuAlloc", limit=1.0, place="europe-west4", service="run.googleapis.com")),
    "rate": Trouble(error=rate_limited("googleapis.com", retry_after_s=0.01), passes=True),
    "unavailable": Trouble(error=unavailable(), passes=True),
    "aborted": Trouble(error=aborted("it was changed by somebody else at the same time")),
    "deadline": Trouble(error=deadline_exceeded(), passes=True),
    "internal": Trouble(error=ApiError("INTERNAL", "An internal error has occurred."), passes=True),
    "expired token": Trouble(error=unauthenticated(), passes=True),
    "dropped before": Trouble(drop="before", passes=True),
    "dropped after": Trouble(drop="after", passes=True),
    "partial": Trouble(is_partial=True, passes=True),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a project that gets better does not wait for long."""
    monkeypatch.setattr(RetryPolicy, "__init__", _impatient(RetryPolicy.__init__))
    monkeypatch.setattr(undoing, "ASKED_EVERY_S", 0.1)
    monkeypatch.setattr(execution_end, "CANCELLED_AGAIN_S", 1.0)
    monkeypatch.setattr(target, "STOP_S_MAX", 20.0)


def _impatient(init):
    def made(self, **fields: float) -> None:
        init(self, **{"first_s": 0.01, "longest_s": 0.02, "attempts_max": 3, "settle_s": 0.1} | fields)

    return made


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    """How often each part of a right course calls what: ``middle`` and ``last`` are taken from it."""
    found: dict[str, dict[str, int]] = {}
    with pytest.MonkeyPatch.context() as monkeypatch:
        directory = tmp_path_factory.mktemp("right")
        for phase in PHASES:
            monkeypatch.setenv("XDG_STATE_HOME", str(directory / phase / "state"))
            with Emulator(directory / phase / "emulator", projects=(PROJECT,)) as emulator:
                for name, value in emulator.endpoints.environment().items():
                    monkeypatch.setenv(name, value)
                course = Course(emulator, directory / phase)
                course.begin(phase)
                course.play(phase)
                assert course.leftovers() == []
                found[phase] = dict(course.calls[phase])
    return found


@pytest.mark.parametrize("phase", PHASES)
def test_the_table_has_every_call(counts: dict[str, dict[str, int]], phase: str):
    assert set(counts[phase]) == CALLS[phase]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One entry of the table."""

    phase: str
    method: str
    trouble: str
    position: Position

    def __str__(self) -> str:
        return f"{self.phase}, {self.method.rpartition('.')[2] if '/' in self.method else self.method}: {self.trouble}, {self.position}"

    def fault(self, counts: dict[str, dict[str, int]]) -> InjectedFault:
        """As a fault of the emulator; a call that is made once is first, middle and last."""
        count = counts[self.phase][self.method]
        nth = {"first": 1, "every": 1, "middle": (count + 1) // 2, "last": count}[self.position]
        return TROUBLES[self.trouble].at(self.method, nth, 0 if self.position == "every" else 1)


def _cells() -> list[Cell]:
    """Every trouble at every call; which of its calls takes turns, so that each call and each trouble has all positions."""
    return [
        Cell(phase=phase, method=method, trouble=trouble, position=POSITIONS[(row + column) % len(POSITIONS)])
        for row, (phase, method) in enumerate((phase, method) for phase in PHASES for method in sorted(CALLS[phase]))
        for column, trouble in enumerate(TROUBLES)
    ]


TABLE = _cells()
SAMPLE = TABLE[::19]
"""Few enough for every day; 19 has no factor in common with the troubles and the positions, so that all of them are among these."""


def check(cell: Cell, course: Course, counts: dict[str, dict[str, int]]) -> None:
    """Play a cell: what it must come to, and that nothing is left when the services are well again."""
    passes = TROUBLES[cell.trouble].passes and cell.position != "every"
    course.begin(cell.phase, cell.fault(counts))
    _judge(cell, _play(course, cell.phase), passes=passes)
    if cell.phase in ("plan", "apply"):
        assert [call for call in course.emulator.world.calls.writes() if not call.method.endswith("/CreateJob")] == []

    course.emulator.world.injections.clear()
    course.end()
    owes = any(owing(run) for run in course.store.runs())
    told = course.clean()
    if any(
        line.what is What.ALONE for line in told
    ):  # the lock could not be freed, or is kept for what is owed: another's until it has expired
        assert owes or cell.method in OBJECTS
        course.outlive_locks()
        told = course.clean()
    assert failures_in(told) == []
    assert course.leftovers() == []


def _play(course: Course, phase: str) -> object:
    """What a part came to, an error that the command line would tell in one line included; any other is a defect."""
    try:
        return course.play(phase)
    except HarnessError as error:
        return error


def _judge(cell: Cell, came_to: object, *, passes: bool) -> None:
    match came_to:
        case HarnessError():
            assert not passes, came_to
            assert str(came_to).strip()
            assert "\n" not in str(came_to)
        case Run() if cell.phase == "run":
            assert came_to.verdict.outcome in ((Outcome.VALID,) if passes else (Outcome.VALID, Outcome.UNKNOWN)), came_to.explain()
        case int():
            assert came_to in ((0,) if passes else (0, 64))
        case list() if passes:
            assert failures_in(came_to) == []


@pytest.mark.timeout(100)
@pytest.mark.parametrize("cell", SAMPLE, ids=str)
def test_an_error_at_a_call_ends_clearly_and_leaves_nothing(cell: Cell, course: Course, counts: dict[str, dict[str, int]]):
    check(cell, course, counts)


@pytest.mark.exhaustive
@pytest.mark.timeout(100)
@pytest.mark.parametrize("cell", [cell for cell in TABLE if cell not in SAMPLE], ids=str)
def test_every_error_at_every_call_ends_clearly_and_leaves_nothing(cell: Cell, course: Course, counts: dict[str, dict[str, int]]):
    check(cell, course, counts)


def test_the_permissions_that_a_plan_names_are_enough(course: Course):
    project = course.emulator.world.projects.find(PROJECT)
    assert project is not None
    project.granted = frozenset((*JOB_PERMISSIONS, *BUCKET_PERMISSIONS, *PROJECT_PERMISSIONS, *UNASKED_PERMISSIONS))

    for phase in ("run", "clean"):
        course.begin(phase)
        came_to = course.play(phase)
        assert failures_in(came_to) == [] if isinstance(came_to, list) else came_to.verdict.is_valid

    assert course.leftovers() == []


def test_a_run_that_ends_itself_waits_for_its_execution_and_takes_all_away(course: Course):
    denied = InjectedFault(method=f"{LOGGING}/WriteLogEntries", error=permission_denied("logging.logEntries.create", "p"), times=0)
    course.begin("run", denied)

    with pytest.raises(PermissionMissingError, match=r"logging\.logEntries\.create") as caught:
        course.play("run")

    assert getattr(caught.value, "__notes__", []) == []
    assert course.leftovers() == []
