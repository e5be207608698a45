"""``harness clean``: ends what dead runs have left behind, and leaves living runs alone."""

import contextlib
from collections.abc import Collection, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec
import psutil

from harness.cli.worker import UNNOTICED_S
from harness.clock import Clock
from harness.emulator.standing import dead_ones, forget
from harness.errors import BrokenHarnessError, HarnessError
from harness.explore.fixed_place import remove_free_locks
from harness.explore.kill_points.sessions import remove_dead
from harness.protocol.barrier import dead_owners
from harness.store import RunDirectory, RunStore
from harness.targets import LeftElsewhere, is_in_use, is_left_on, left_behind, left_elsewhere, perform, remove_left_behind
from harness.undo import RestoreCluster, RestoreProject, find

ORPHAN_ROUND_S = 0.05

KILLED_S_MAX = 5.0
"""SIGKILL acts within milliseconds, also on what is stopped."""


class What(StrEnum):
    """What a line of ``clean`` tells."""

    BEGUN = "begun"
    """Something that may take minutes."""

    DONE = "done"
    ALONE = "alone"
    """A run that is not ours to clean, now or here: no failure."""

    FAILED = "failed"
    """It is there still."""


class Told(msgspec.Struct, frozen=True):
    """One line; ``run`` is the one that it is about."""

    what: What
    run: str
    text: str


def clean(runs_dir: Path, clock: Clock) -> Iterator[Told]:
    """Finish owed undos and end leftovers of every run whose owner is gone, and tell each thing as it happens.

    A run is dead when the process that ran it is; its history stays. Running it twice is harmless. After a reboot nothing of a run
    lives, and its undos find no process. A run of another machine that shares the directory is left to that one: its processes are not
    seen here. What a target has written down of runs of other directories is looked at as well, for it keeps others from the target.
    """
    seen: set[str] = set()
    for run in RunStore(runs_dir, clock).runs():
        owner = run.owner()
        seen |= {owner.run_id} if owner is not None else set()
        yield from _look_after(run, run.name, clock)
    yield from _look_after_sessions(runs_dir)
    yield from _look_after_emulators(clock)
    yield from _look_after_sockets(seen, clock)
    locks = remove_free_locks()
    if locks:
        yield Told(What.DONE, "explorations", f"removed files of {locks} locks that nobody has")
    for left in left_elsewhere():
        if left.run_id not in seen:
            yield from _look_elsewhere(left, clock)


def summary_of(told: list[Told]) -> str:
    """What it came to, in one line."""
    counts = {what: sum(line.what is what for line in told) for what in What}
    parts = [f"{counts[What.DONE]} done"] * bool(counts[What.DONE])
    parts += [f"{counts[What.ALONE]} left alone"] * bool(counts[What.ALONE])
    parts += [f"{counts[What.FAILED]} could not be done; run it again when that is mended"] * bool(counts[What.FAILED])
    return ", ".join(parts) or "nothing was left behind"


def _look_after(run: RunDirectory, name: str, clock: Clock) -> Iterator[Told]:
    """Clean one run, or say why not; a broken one must not keep the others from being cleaned."""
    try:
        owner = run.owner()
        if owner is not None and owner.is_elsewhere:
            if not run.is_over() or run.undo.owed():
                yield Told(What.ALONE, name, f"run on {owner.where}, left alone; `harness clean` there ends what it left")
        elif owner is not None and run.is_running() and not owner.is_orphaned:
            yield Told(What.ALONE, name, "still running, left alone")
        elif owner is not None:
            yield from _end_orphan(run, name, clock)
            yield from _clean_run(run, name, owner.run_id, clock)
    except HarnessError as error:
        yield Told(What.FAILED, name, str(error))
    except OSError as error:
        yield Told(What.FAILED, name, f"cannot be read: {error}; what it left, if anything, is still there")


def _end_orphan(run: RunDirectory, name: str, clock: Clock) -> Iterator[Told]:
    """Wait until the process of a run whose harness was killed has ended, which it does by itself, or end it: what we undo it may do again.

    It may take as long as that harness would have waited for it, for it may be at work on what it owes: half of a resize is not mended by
    killing who waits for it. One that was stopped does nothing by itself.

    Raises:
        HarnessError: When it withstands.
    """
    owner = run.owner()
    process = find(owner.process) if owner is not None and owner.is_orphaned and not run.is_over() else None
    if process is None:
        return
    yield Told(What.BEGUN, name, f"its harness was killed; waiting until process {process.pid}, which ran it, has ended it")
    assert owner is not None
    deadline_s = clock.monotonic_s() + owner.ending_s_max + UNNOTICED_S
    while run.is_running() and not _is_stopped(process) and clock.monotonic_s() < deadline_s:
        clock.sleep(ORPHAN_ROUND_S)
    if not run.is_running():
        yield Told(What.DONE, name, f"process {process.pid} has ended it")
        return
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
    deadline_s = clock.monotonic_s() + KILLED_S_MAX
    while run.is_running() and clock.monotonic_s() < deadline_s:
        clock.sleep(ORPHAN_ROUND_S)
    if run.is_running():
        raise BrokenHarnessError(f"process {process.pid}, which ran it, withstands SIGKILL; what it left is still there")
    yield Told(What.DONE, name, f"killed process {process.pid}, which had not ended it")


def _is_stopped(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.NoSuchProcess:
        return False


def _look_after_sessions(runs_dir: Path) -> Iterator[Told]:
    """What sessions of tests have planned is of no use when they were killed."""
    try:
        for name in remove_dead(runs_dir):
            yield Told(What.DONE, f"session {name}", "removed the plans of its kill points")
    except OSError as error:
        yield Told(What.FAILED, "sessions of kill points", f"cannot be removed: {error}")


def _look_after_emulators(clock: Clock) -> Iterator[Told]:
    """What emulators that were killed have left: processes of their jobs, of a command beside them, and their directories."""
    for found in dead_ones():
        name = f"emulator {found.owner.run_id[:8]}"
        try:
            for run_id in found.run_ids():
                for line in remove_left_behind(run_id, clock, only="local"):
                    yield Told(What.DONE, name, line)
            still = [line for run_id in found.run_ids() for line in left_behind(run_id)]
            if still:
                yield Told(What.FAILED, name, f"still there after that: {', '.join(still)}")
                continue
            forget(found)
            yield Told(What.DONE, name, f"removed {found.root}" if found.is_temporary else f"ended; its buckets stay in {found.root}")
        except (HarnessError, OSError) as error:
            yield Told(What.FAILED, name, f"could not be cleaned: {error}")


def _look_after_sockets(seen: Collection[str], clock: Clock) -> Iterator[Told]:
    """What runs have left whose directories are gone, or are elsewhere: their socket directories say whose they are."""
    for run_id in dead_owners():
        if run_id not in seen:
            yield from _take_away(run_id, f"run {run_id}", clock)


def _look_elsewhere(left: LeftElsewhere, clock: Clock) -> Iterator[Told]:
    """Clean a run that is not in the runs directory, by what a target says of it: its own directory may lie elsewhere, or be gone.

    One that lives was not asked about.
    """
    directory = RunDirectory(left.directory) if left.directory is not None else None
    if directory is not None and directory.owner() is not None:
        yield from () if directory.is_running() else _look_after(directory, str(directory.path), clock)
    elif is_in_use(left.target):  # whoever uses it may be this very run
        yield Told(What.ALONE, f"run {left.run_id}", f"left alone while a run uses the target {left.target}")
    else:
        yield from _take_away(left.run_id, f"run {left.run_id}", clock)


def _clean_run(run: RunDirectory, name: str, run_id: str, clock: Clock) -> Iterator[Told]:
    """Undo first, the last first: what a fault took away, like the node of a pod, may be needed to remove the rest.

    Raises:
        HarnessError: When it owes something to a project that somebody else has: all of it stays until that ends.
    """
    owed = run.undo.owed()
    if any(isinstance(entry.undo, RestoreProject) for entry in owed):
        _require_free_project(run_id, clock)
    for entry in reversed(owed):
        assert entry.undo is not None
        if isinstance(entry.undo, RestoreCluster):
            yield Told(What.BEGUN, name, f"{_when()}will undo {entry.injection} on the cluster {entry.undo.cluster}")
        elif isinstance(entry.undo, RestoreProject):
            yield Told(What.BEGUN, name, f"will undo {entry.injection} on the project {entry.undo.project}")
        try:
            said = perform(entry.undo, clock)
            run.undo.settle(entry.injection)
        except HarnessError as error:
            yield Told(What.FAILED, name, f"{entry.injection}: {error}")
        else:
            yield Told(What.DONE, name, f"{entry.injection}: {said}")
    yield from _take_away(run_id, name, clock)


def _require_free_project(run_id: str, clock: Clock) -> None:
    from harness.targets.gcp.leftovers import require_free_project

    require_free_project(run_id, clock)


def _when() -> str:
    """Why the next thing may take half an hour."""
    return "once the run that uses the cluster has ended, " if is_in_use("kind") else ""


def _take_away(run_id: str, name: str, clock: Clock) -> Iterator[Told]:
    """What is left on any target; what cannot be taken away is said, and left for the next time."""
    try:
        left = left_behind(run_id)
        if not left:
            return
        when = _when() if is_left_on("kind", run_id) else ""
        yield Told(What.BEGUN, name, f"{when}will remove what is left: {', '.join(left)}")
        for line in remove_left_behind(run_id, clock):
            yield Told(What.DONE, name, line)
        still = left_behind(run_id)
        if still:
            yield Told(What.FAILED, name, f"still there after that: {', '.join(still)}")
    except (HarnessError, OSError) as error:
        yield Told(What.FAILED, name, f"could not be cleaned: {'; '.join([str(error), *getattr(error, '__notes__', ())])}")
