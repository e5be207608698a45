"""The run directory, and the only module that knows its paths.

::

    RUNS/<scenario>/<utc>-<seed>/
        owner.json            who runs it: process id and start time, host, run id
        scenario.json         what was promised
        schedule.json         its faults alone
        history.jsonl         what was seen
        golden.jsonl          the history of the uninterrupted run it was compared with
        undo.jsonl            undos owed and settled
        verdict.json          the judgement; its presence means that the run is over
        summary.json          its row in the index
        fidelity.json         what the target played and what it left out
        report.html           the same, to look at
        checkpoints.manifest  content ledger of the checkpoint directory at the end
        checkpoints/          the mounted directory; removed after a valid run unless it shall be kept
        kept/                 originals of what faults damaged
        logs/                 log entries in Cloud Logging's shape, and what the job said of itself
        replay.sh             the same run again
    RUNS/.golden/<key>/       uninterrupted runs, by content of the workload
    RUNS/index.html           all runs, to look at
"""

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import StoreError, UnknownNameError
from harness.history import read_regular
from harness.undo import ProcessId, UndoJournal, find, identify

NAME_ATTEMPTS_MAX = 100
"""Runs of one scenario that begin in the same millisecond get a number; more than this many at once is a mistake."""


INDEX_NAME = "index.html"


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The process that runs a run.

    Attributes:
        run_id: Carried by every process of the run.
        process: On its machine.
        host: Which machine that is; empty in runs of a version that did not say.
    """

    run_id: str
    process: ProcessId
    host: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is of another machine with which the directory is shared: nobody here can tell whether it lives."""
        return self.host not in ("", os.uname().nodename)


class RunDirectory:
    """The paths of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.owner_path = path / "owner.json"
        self.scenario_path = path / "scenario.json"
        self.schedule_path = path / "schedule.json"
        self.history_path = path / "history.jsonl"
        self.golden_path = path / "golden.jsonl"
        self.undo_path = path / "undo.jsonl"
        self.verdict_path = path / "verdict.json"
        self.summary_path = path / "summary.json"
        self.fidelity_path = path / "fidelity.json"
        self.report_path = path / "report.html"
        self.manifest_path = path / "checkpoints.manifest"
        self.replay_path = path / "replay.sh"
        self.checkpoints = path / "checkpoints"
        self.kept = path / "kept"
        self.logs = path / "logs"

    @property
    def name(self) -> str:
        """Scenario and run, as they are shown."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def index_path(self) -> Path:
        """The page over all runs, of which this is one."""
        return self.path.parent.parent / INDEX_NAME

    @property
    def undo(self) -> UndoJournal:
        """The journal of undos."""
        return UndoJournal(self.undo_path)

    def owner(self) -> Owner | None:
        """Who runs it; None when the directory is not a run or was torn at its very beginning."""
        try:
            return msgspec.json.decode(read_regular(self.owner_path), type=Owner)
        except (OSError, msgspec.MsgspecError):
            return None

    def is_over(self) -> bool:
        """Whether it was judged."""
        return self.verdict_path.exists()

    def is_running(self) -> bool:
        """Whether its owner lives and has not judged it yet."""
        owner = self.owner()
        return owner is not None and not self.is_over() and find(owner.process) is not None

    def write(self, path: Path, data: bytes) -> None:
        """Write a document whole or not at all.

        Raises:
            StoreError: When it could not be written; the old one, if any, is intact.
        """
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise StoreError(path=path, attempted="write", reason=error.strerror or str(error)) from error

    def write_script(self, path: Path, text: str) -> None:
        """Write a script that can be executed.

        Raises:
            StoreError: As ``write``.
        """
        self.write(path, text.encode())
        try:
            path.chmod(0o755)
        except OSError as error:
            raise StoreError(path=path, attempted="make executable", reason=error.strerror or str(error)) from error

    def remove_checkpoints(self) -> None:
        """Remove the mounted directory and the kept originals; what they held is in the manifest."""
        for directory in (self.checkpoints, self.kept):
            shutil.rmtree(directory, ignore_errors=True)


class RunStore:
    """All runs under one directory."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self.root = root
        self._clock = clock

    @property
    def index_path(self) -> Path:
        """The page over all runs."""
        return self.root / INDEX_NAME

    def create(self, scenario: str, seed: int) -> tuple[RunDirectory, str]:
        """Make the directory of a new run and return it with the run's id.

        Raises:
            StoreError: When it cannot be made.
        """
        return self._create(self.root / scenario, f"{stamp(self._clock.utc())}-{seed}")

    def create_golden(self, key: str, name: str) -> tuple[RunDirectory, str]:
        """Make the directory of an uninterrupted run; an unfinished one of the same name is replaced."""
        shutil.rmtree(self.golden(key, name).path, ignore_errors=True)
        return self._create(self.root / ".golden" / key, name)

    def golden(self, key: str, name: str) -> RunDirectory:
        """The directory of an uninterrupted run."""
        return RunDirectory(self.root / ".golden" / key / name)

    @contextlib.contextmanager
    def golden_lock(self, key: str) -> Iterator[None]:
        """Hold the right to establish the golden runs of a key, against every other process; freed by the system when we die.

        Raises:
            StoreError: When the lock file cannot be made.
        """
        directory = self.root / ".golden"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(directory / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(path=directory, attempted="lock", reason=error.strerror or str(error)) from error
        try:
            _lock(descriptor, directory)
            yield
        finally:
            os.close(descriptor)

    def runs(self) -> list[RunDirectory]:
        """Every run, golden ones included, oldest first within a scenario."""
        found = [path.parent for pattern in ("*/*/owner.json", ".golden/*/*/owner.json") for path in self.root.glob(pattern)]
        return [RunDirectory(path) for path in sorted(set(found))]

    def _create(self, parent: Path, name: str) -> tuple[RunDirectory, str]:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            path = _make_unique(parent, name)
            directory = RunDirectory(path)
            for folder in (directory.checkpoints, directory.kept, directory.logs):
                folder.mkdir()
        except OSError as error:
            raise StoreError(path=parent, attempted="make a run directory in", reason=error.strerror or str(error)) from error
        run_id = secrets.token_hex(6)
        owner = Owner(run_id=run_id, process=identify([os.getpid()])[0], host=os.uname().nodename)
        directory.write(directory.owner_path, msgspec.json.encode(owner))
        return directory, run_id


def open_run(path: Path) -> RunDirectory:
    """The run at a path.

    Raises:
        UnknownNameError: When there is no run.
    """
    directory = RunDirectory(path)
    if not directory.scenario_path.exists():
        below = [str(found.parent) for found in sorted(path.glob("*/scenario.json"), reverse=True)]  # where only the scenario was named
        siblings = [found.parent.name for found in path.parent.glob("*/scenario.json")]
        raise UnknownNameError(kind="run directory", name=str(path), known=below or siblings)
    return directory


def stamp(utc: datetime) -> str:
    """A moment as a name that sorts: ``20260131T235959.123Z``."""
    return f"{utc:%Y%m%dT%H%M%S}.{utc.microsecond // 1000:03d}Z"


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:  # some network file systems have no locks
        raise StoreError(path=directory, attempted="lock", reason=error.strerror or str(error)) from error


def _make_unique(parent: Path, name: str) -> Path:
    for number in range(1, NAME_ATTEMPTS_MAX + 1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{NAME_ATTEMPTS_MAX} runs named {name}")
