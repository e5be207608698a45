"""``harness clean``: ends what dead runs have left behind, and leaves living runs alone."""

from pathlib import Path

from harness.clock import Clock
from harness.errors import HarnessError
from harness.store import RunDirectory, RunStore
from harness.targets import left_behind, perform, remove_left_behind


def clean(runs_dir: Path, clock: Clock) -> list[str]:
    """Finish owed undos and end leftovers of every run whose owner is gone; returns one line for each thing done.

    A run is dead when the process that ran it is; its history stays. Running it twice is harmless. After a reboot nothing of a run
    lives, and its undos find no process. A run of another machine that shares the directory is left to that one: its processes are not
    seen here.
    """
    return [f"{run.name}: {line}" for run in RunStore(runs_dir, clock).runs() for line in _look_after(run, clock)]


def _look_after(run: RunDirectory, clock: Clock) -> list[str]:
    """Clean one run, or say why not; a broken one must not keep the others from being cleaned."""
    try:
        owner = run.owner()
        if owner is not None and owner.is_elsewhere:
            is_clean = run.is_over() and not run.undo.owed()
            return [] if is_clean else [f"run on {owner.host}, left alone; `harness clean` there ends what it left"]
        return ["still running, left alone"] if run.is_running() else _clean_run(run, clock)
    except OSError as error:
        return [f"cannot be read: {error.strerror or error}; what it left, if anything, is still there"]


def _clean_run(run: RunDirectory, clock: Clock) -> list[str]:
    """Undo first, the last first: what a fault took away, like the node of a pod, may be needed to remove the rest."""
    owner = run.owner()
    if owner is None:
        return []
    done: list[str] = []
    for entry in reversed(run.undo.owed()):
        assert entry.undo is not None
        try:
            done.append(f"{entry.injection}: {perform(entry.undo, clock)}")
            run.undo.settle(entry.injection)
        except HarnessError as error:
            done.append(f"{entry.injection}: {error}")
    return done + _take_away(owner.run_id, clock)


def _take_away(run_id: str, clock: Clock) -> list[str]:
    """What is left on any target; what cannot be taken away is said, and left for the next time."""
    try:
        return remove_left_behind(run_id, clock) if left_behind(run_id) else []
    except HarnessError as error:
        return [f"could not be cleaned: {'; '.join([str(error), *getattr(error, '__notes__', ())])}"]
