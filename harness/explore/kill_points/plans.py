"""A job recorded once for a session of tests: whoever comes first does it, all others wait and read what it found."""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import BrokenHarnessError, HarnessError, StoreError
from harness.explore.data_file import DataFile
from harness.explore.executors.local import LocalExecutor
from harness.explore.executors.wire import decode, encode
from harness.explore.frontier import Frontier, SurfaceName
from harness.explore.kill_points.choice import Moment
from harness.explore.kill_points.memo import Memo
from harness.explore.kill_points.moments import look_at_all, moments_of
from harness.explore.kill_points.sessions import place_of, sign
from harness.explore.recipe import Recipe, Tried
from harness.explore.recording import recorder_available
from harness.explore.rehearsal import EMPTY, RECORD_S_MAX, Recorder, Rehearsal, rehearse
from harness.explore.result import Recorded
from harness.explore.subject import Subject
from harness.explore.surroundings import digests_of
from harness.explore.trials_file import Trial
from harness.store import RunDirectory, RunStore, write_whole
from harness.targets.local.processes import end_processes
from harness.targets.local.scratch import make_scratch_directory


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a job once it was recorded.

    Attributes:
        job: Its name.
        directory: The run directory; empty where it was refused.
        opened_at: When that was made, in UTC.
        surfaces: What is looked at.
        moments: All kill points on them.
        recipe: How recovery is tried.
        recorded: The recording.
        refused: Why nothing can be said of any kill point.
    """

    job: str
    directory: str = ""
    opened_at: str = ""
    surfaces: tuple[SurfaceName, ...] = ()
    moments: tuple[Moment, ...] = ()
    recipe: Recipe | None = None
    recorded: Recorded | None = None
    refused: str = ""


class Planner:
    """Makes and finds the plans of one session of tests.

    Args:
        store: Where runs lie.
        session: Its name and the id of the process that has begun it, which all its processes know.
        surfaces: What is looked at.
        clock: The machine's.
        seed: Of the jobs.
    """

    def __init__(self, store: RunStore, session: tuple[str, int], surfaces: Sequence[SurfaceName], *, clock: Clock, seed: int) -> None:
        self._store, self._surfaces, self._clock, self._seed = store, tuple(surfaces), clock, seed
        self._place, self._process = place_of(store.root, session[0]), session[1]

    def plan(self, subject: Subject) -> Plan:
        """The plan of a job; who comes second, in this process or another, waits for the first.

        Raises:
            StoreError: When it cannot be written or read.
        """
        key = f"{subject.name}-{hashlib.sha256(encode(subject)).hexdigest()[:16]}"  # jobs of one name may differ in their environment
        path = self._place / f"{key}.json"
        with self._lock(key):
            if not path.exists():
                write_whole(path, encode(self._made(subject)))
            return decode(path.read_bytes(), Plan)

    def plans(self) -> list[Plan]:
        """All that were made."""
        return [decode(path.read_bytes(), Plan) for path in sorted(self._place.glob("*.json"))]

    def choose(self, plan: Plan) -> None:
        """Note that a test of a job stays among those that run: a job of which none does is not asked about.

        Raises:
            StoreError: When it cannot be written.
        """
        path = self._mark_of(plan)
        try:
            path.touch()
        except OSError as error:
            raise StoreError(path=path, attempted="write", reason=error.strerror or str(error)) from error

    def is_chosen(self, plan: Plan) -> bool:
        """Whether any process of the session has noted that."""
        return self._mark_of(plan).exists()

    def forget(self) -> None:
        """The session is over."""
        shutil.rmtree(self._place, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._place.parent.rmdir()

    def _mark_of(self, plan: Plan) -> Path:
        directory = Path(plan.directory)
        return self._place / f"{directory.parent.name}-{directory.name}.chosen"

    def _made(self, subject: Subject) -> Plan:
        why_not = recorder_available()
        if why_not:
            return Plan(job=subject.name, refused=f"operations were not seen, so no crash state is known: {why_not}")
        opened_at = self._clock.utc().isoformat()
        directory, run_id = self._store.create(f"explore-{subject.name}", self._seed)
        try:
            rehearsal = self._rehearse(subject, directory, run_id)
            moments = self._moments(rehearsal)
        except (HarnessError, OSError) as error:
            shutil.rmtree(directory.path, ignore_errors=True)  # nothing was explored
            return Plan(job=subject.name, refused=str(error))
        return Plan(
            job=subject.name,
            directory=str(directory.path),
            opened_at=opened_at,
            surfaces=self._surfaces,
            moments=moments,
            recipe=rehearsal.recipe,
            recorded=rehearsal.recorded,
            refused="; ".join(rehearsal.recorded.blind),
        )

    def _rehearse(self, subject: Subject, directory: RunDirectory, run_id: str) -> Rehearsal:
        scratch = make_scratch_directory(run_id)
        try:
            with contextlib.closing(LocalExecutor(directory.blobs, jobs=1, run_id=run_id, clock=self._clock)) as executor:

                def try_bare(recipe: Recipe) -> Tried:
                    end_processes(run_id, self._clock)  # what the recorded job has left
                    return next(iter(executor.try_all([EMPTY], recipe, deadline_s=self._clock.monotonic_s() + RECORD_S_MAX)))

                rehearsal = rehearse(subject, Recorder(scratch, directory.recorded, run_id), try_bare)
        except TimeoutError as error:
            raise BrokenHarnessError(f"the recording in {directory.path} broke: {error}") from error
        finally:
            end_processes(run_id, self._clock)
            shutil.rmtree(scratch, ignore_errors=True)
        directory.write(directory.recipe_path, msgspec.json.encode(rehearsal.recipe))
        directory.write(directory.surroundings_path, msgspec.json.encode(digests_of(os.environ)))
        Memo(directory.trials).keep(Trial(task=EMPTY, tried=rehearsal.golden))
        return rehearsal

    def _moments(self, rehearsal: Rehearsal) -> tuple[Moment, ...]:
        if rehearsal.recorded.blind:
            return ()
        with DataFile(rehearsal.replayed.log.data_path) as data:
            frontier = Frontier(rehearsal.replayed, data, rehearsal.expected(data), self._surfaces)
            look_at_all(frontier)
            return moments_of(frontier, rehearsal.replayed)

    @contextlib.contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        """Freed by the system when we die."""
        path = self._place / f"{key}.lock"
        try:
            self._place.mkdir(parents=True, exist_ok=True)
            sign(self._place, self._process)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(path=path, attempted="lock", reason=error.strerror or str(error)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        except OSError as error:
            raise StoreError(path=path, attempted="plan the kill points beside", reason=error.strerror or str(error)) from error
        finally:
            os.close(descriptor)


def directory_of(plan: Plan) -> RunDirectory:
    """The run directory of a plan that was not refused."""
    return RunDirectory(Path(plan.directory))
