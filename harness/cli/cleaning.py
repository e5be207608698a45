"""``harness clean``: ends what dead runs have left behind, and leaves living runs alone."""

from pathlib import Path

from harness.clock import Clock
from harness.errors import BrokenHarnessError
from harness.store import RunDirectory, RunStore
from harness.targets import left_behind, remove_left_behind
from harness.undo import perform


def clean(runs_dir: Path, clock: Clock) -> list[str]:
    """Finish owed undos and end leftovers of every run whose owner is gone; returns one line for each thing done.

    A run is dead when the process that ran it is; its history stays. Running it twice is harmless. After a reboot nothing of a run
    lives, and its undos find no process. A run of another machine that shares the directory is left to that one: its processes are not
    seen here.
    """
    done: list[str] = []
    for run in RunStore(runs_dir, clock).runs():
        owner = run.owner()
        if owner is not None and owner.is_elsewhere:
            if not run.is_over() or run.undo.owed():
                done.append(f"{run.name}: run on {owner.host}, left alone; `harness clean` there ends what it left")
            continue
        if run.is_running():
            done.append(f"{run.name}: still running, left alone")
            continue
        done += [f"{run.name}: {line}" for line in _clean_run(run)]
    return done


def _clean_run(run: RunDirectory) -> list[str]:
    owner = run.owner()
    if owner is None:
        return []
    done: list[str] = []
    if left_behind(owner.run_id):
        done += remove_left_behind(owner.run_id)
    for entry in run.undo.owed():
        assert entry.undo is not None
        try:
            done.append(f"{entry.injection}: {perform(entry.undo)}")
            run.undo.settle(entry.injection)
        except BrokenHarnessError as error:
            done.append(f"{entry.injection}: {error}")
    return done
