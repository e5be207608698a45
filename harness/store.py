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
    RUNS/explore-<job>/<utc>-<seed>/
        owner.json, verdict.json, summary.json, report.html as above
        exploration.json      everything that was found (``harness.explore.result``)
        recipe.json           how recovery was tried
        surroundings.json     digests of the variables of the caller: a replay says which are not as they were
        tried.jsonl           every state that was tried, and what came of it
        trials/               the same while a session of tests goes on, a file each
        log/                  the recording: operations, data, events, output
        recoveries/<state>/   recordings of recoveries
        blobs/                contents of files of states
    RUNS/reproduced-<name>/<utc>-0/
        owner.json, history.jsonl, verdict.json, summary.json, report.html as above
        incident.json         what happened on a platform, made from its log (``harness.incidents.incident``)
        reproduction.json     a scenario of the same timing
    RUNS/gates/<utc>/
        gate.json             what a release gate has measured, and its judgement (``harness.gate.outcome``)
        summary.md            the same, to read
    RUNS/.golden/<key>/       uninterrupted runs, by content of the workload
    RUNS/.kill-points/        what workers of a session of tests share while it goes on
    RUNS/index.html           all runs, to look at
"""

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import StoreError, UnknownNameError
from harness.history import read_regular
from harness.undo import ProcessId, Seen, UndoJournal, find, identify, see

NAME_ATTEMPTS_MAX = 100
"""Runs of one scenario that begin in the same millisecond get a number; more than this many at once is a mistake."""


UNTOLD_S = 1.0
"""So long another's lock is waited for without a word: nobody would have read it."""

UNTOLD_ROUND_S = 0.02

HOLDER_BYTES_MAX = 4096

INDEX_NAME = "index.html"

ENDING_S_MAX = 30.0
"""What is interrupted stops its run, heals and judges nothing; longer than the grace of any profile it could be waiting for."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The process that runs a run.

    Attributes:
        run_id: Carried by every process of the run.
        process: On its machine.
        host: Which machine that is; empty in runs of a version that did not say.
        overseer: The process for which it runs it, there too; None: it runs it for itself.
        ending_s_max: How long it may take to end the run, once its overseer is gone.
    """

    run_id: str
    process: ProcessId
    host: str = ""
    overseer: ProcessId | None = None
    ending_s_max: float = ENDING_S_MAX

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is of another machine, or container, with which the directory is shared: nobody here can tell whether it lives."""
        return self.host not in ("", os.uname().nodename) or see(self.process) is Seen.UNKNOWN

    @property
    def is_dead(self) -> bool:
        """Whether it was of this machine, and its process is gone."""
        return self.host in ("", os.uname().nodename) and see(self.process) is Seen.DEAD

    @property
    def where(self) -> str:
        """Where it is, for a person here."""
        return self.host if self.host not in ("", os.uname().nodename) else f"another machine or container that is called {self.host}"

    @property
    def is_orphaned(self) -> bool:
        """Whether whoever it ran it for is gone, on this machine: it ends by itself, if it can."""
        return not self.is_elsewhere and self.overseer is not None and see(self.overseer) is Seen.DEAD


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
        self.exploration_path = path / "exploration.json"
        self.recipe_path = path / "recipe.json"
        self.surroundings_path = path / "surroundings.json"
        self.incident_path = path / "incident.json"
        self.reproduction_path = path / "reproduction.json"
        self.tried_path = path / "tried.jsonl"
        self.trials = path / "trials"
        self.recorded = path / "log"
        self.recoveries = path / "recoveries"
        self.blobs = path / "blobs"

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
        write_whole(path, data)

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


PROBED_BYTES = 64 * 1024
"""What a file must have room for that is to be written later: on a full disk a name finds room where content does not."""


def writing_problem(path: Path) -> str:
    """Why ``write_whole`` could not write a file now; empty: it could. The file itself is not touched."""
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    try:
        if path.is_dir():
            return "it is a directory"
        try:
            with probe.open("wb") as file:
                file.write(bytes(PROBED_BYTES))
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def write_whole(path: Path, data: bytes, *, advice: str = "") -> None:
    """Write a file whole or not at all, whoever else writes it.

    Args:
        path: Where.
        data: All of it.
        advice: What to do where it cannot be; empty: about the runs directory.

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
        advised = {"advice": advice} if advice else {}
        raise StoreError(path=path, attempted="write", reason=error.strerror or str(error), **advised) from error


class RunStore:
    """All runs under one directory.

    Args:
        root: That directory.
        clock: For the names of runs.
        overseer: The process for which runs are made, if it is not this one.
        ending_s_max: See ``Owner``.
    """

    def __init__(self, root: Path, clock: Clock, *, overseer: ProcessId | None = None, ending_s_max: float = ENDING_S_MAX) -> None:
        self.root = root
        self._clock = clock
        self._overseer = overseer
        self._ending_s_max = ending_s_max

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

    def create_bench(self) -> tuple[RunDirectory, str]:
        """Make the directory by which ``harness clean`` finds what a process that tries kill points leaves when it is killed.

        It is no run and stands in no index; who has made it removes it.

        Raises:
            StoreError: When it cannot be made.
        """
        return self._create(self.root / ".golden" / "kill-points", f"{stamp(self._clock.utc())}-{os.getpid()}")

    def create_gate(self) -> Path:
        """Make the directory of the result of a gate, and return it; it is no run and stands in no index.

        Raises:
            StoreError: When it cannot be made.
        """
        parent = self.root / "gates"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            return _make_unique(parent, stamp(self._clock.utc()))
        except OSError as error:
            raise StoreError(path=parent, attempted="make a directory in", reason=error.strerror or str(error)) from error

    def golden(self, key: str, name: str) -> RunDirectory:
        """The directory of an uninterrupted run."""
        return RunDirectory(self.root / ".golden" / key / name)

    @contextlib.contextmanager
    def golden_lock(self, key: str, *, waits: Callable[[str], None] = lambda _why: None) -> Iterator[None]:
        """Hold the right to establish the golden runs of a key, against every other process; freed by the system when we die.

        Args:
            key: Of the workload.
            waits: Told for whom we wait, when that is not over at once.

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
            if not self._lock_soon(descriptor, directory):
                waits(_words_of_holder(descriptor, key))
                _lock(descriptor, directory)
            _write_holder(descriptor, self._myself(""))
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
        directory.write(directory.owner_path, msgspec.json.encode(self._myself(run_id)))
        return directory, run_id

    def _myself(self, run_id: str) -> Owner:
        return Owner(
            run_id=run_id,
            process=identify([os.getpid()])[0],
            host=os.uname().nodename,
            overseer=self._overseer,
            ending_s_max=self._ending_s_max,
        )

    def _lock_soon(self, descriptor: int, directory: Path) -> bool:
        """Lock without a word, if that takes a moment only."""
        deadline_s = self._clock.monotonic_s() + UNTOLD_S
        while not _lock(descriptor, directory, waits=False):
            if self._clock.monotonic_s() >= deadline_s:
                return False
            self._clock.sleep(UNTOLD_ROUND_S)
        return True


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


def _lock(descriptor: int, directory: Path, *, waits: bool = True) -> bool:
    """Lock, and say whether it is ours: another has it, where nobody is waited for."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:  # some network file systems have no locks
        raise StoreError(path=directory, attempted="lock", reason=error.strerror or str(error)) from error
    return True


def _write_holder(descriptor: int, owner: Owner) -> None:
    """Whoever waits reads it; a full disk keeps nobody from the lock."""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(owner), 0)


def _words_of_holder(descriptor: int, key: str) -> str:
    """For whom we wait, as far as the lock's file tells."""
    what = f"the uninterrupted run of {key.rpartition('-')[0] or key}"
    try:
        owner = msgspec.json.decode(os.pread(descriptor, HOLDER_BYTES_MAX, 0), type=Owner)
    except (OSError, msgspec.MsgspecError):
        return f"waits for another process, which makes {what}"
    where = f" on {owner.where}" if owner.is_elsewhere else ""
    dead = ", whose harness has died; `harness clean` ends it" if owner.is_orphaned else ""
    return f"waits for process {owner.process.pid}{where}, which makes {what}{dead}"


def _make_unique(parent: Path, name: str) -> Path:
    for number in range(1, NAME_ATTEMPTS_MAX + 1):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{NAME_ATTEMPTS_MAX} runs named {name}")
