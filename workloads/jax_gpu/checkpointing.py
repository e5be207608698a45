"""Checkpoints by Orbax, with a ledger of the job's own.

Orbax makes a save atomic, not sound: it restores a flipped byte without an error, and takes an empty directory named like a step for the
newest checkpoint. So each checkpoint carries the fingerprints of its parts; a restore recomputes them and goes back to the next older
step when they differ.

    CHECKPOINT_DIR/<step>/{state,progress,ledger}   one checkpoint
    CHECKPOINT_DIR/damaged/<step>                   a checkpoint that did not restore, kept for whoever wants to know why
    CHECKPOINT_DIR/final.json                       the result of a complete run
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import jax
import numpy as np
import orbax.checkpoint as ocp

from workloads import protocol
from workloads.jax_gpu.model import Cursor, State

KEPT = 2  # one to go back to when the newest is damaged
SAVE_TIMEOUT_SECONDS = 60  # a rank that waits for a dead one gives up; a save here takes well under a second
Digests = dict[str, str]

# What Orbax, TensorStore and the JSON reader were seen to raise on files that are missing, short, foreign or cannot be written.
STORAGE_ERRORS = (OSError, ValueError, KeyError, TypeError)


class Emitter(Protocol):
    def __call__(self, event: str, **fields: object) -> None: ...


class DamagedError(Exception):
    """A checkpoint restored without an error but does not hold what was saved."""


class SaveFailedError(Exception):
    """A checkpoint was not written; training on would pretend that it was."""


@dataclass(frozen=True)
class Snapshot:
    """Everything that the next step depends on, after ``step`` completed steps."""

    step: int
    state: State
    cursor: Cursor

    def digests(self) -> Digests:
        """Fingerprint each part of the state; equal on every rank, and equal for a resumed and an uninterrupted job."""
        order = self.cursor.order().astype("<i8").tobytes()
        parts = {name: protocol.digest(*_canonical_bytes(tree)) for name, tree in self.state.items()}
        return {**parts, "data": protocol.digest(json.dumps(asdict(self.cursor)), order), "step": protocol.digest(str(self.step))}


def _canonical_bytes(tree: object) -> list[bytes | str]:
    """Path, dtype, shape and little-endian bytes of each leaf, in the order of the paths."""
    leaves = sorted((jax.tree_util.keystr(path), np.asarray(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(tree))
    return [
        part
        for path, leaf in leaves
        for part in (path, leaf.dtype.name, str(leaf.shape), leaf.astype(leaf.dtype.newbyteorder("<")).tobytes())
    ]


def restore_newest(root: Path, initial: Snapshot, emit: Emitter) -> Snapshot:
    """Restore the newest sound checkpoint below ``root``, or return ``initial``; set aside what is newer and damaged.

    Damaged directories leave only after an older choice was made and before a manager counts them: one of them would block
    the next save of its step, and count as one of the checkpoints kept, so that the last good one is deleted.
    """
    damaged: list[int] = []
    chosen = initial
    for step in sorted(_steps(root), reverse=True):
        try:
            chosen = restore(root, step, initial, emit)
            break
        except (DamagedError, *STORAGE_ERRORS) as error:
            emit("restore.refused", step=step, reason=f"{type(error).__name__}: {_first_line(error)}")
            print(f"Checkpoint of step {step} is damaged: {type(error).__name__}: {_first_line(error)}", flush=True)
            damaged.append(step)
    if damaged:
        print(f"Falling back to step {chosen.step}." if chosen.step else "No checkpoint is usable.", flush=True)
    for step in damaged:
        _set_aside(root, step)
    return chosen


def restore(root: Path, step: int, initial: Snapshot, emit: Emitter) -> Snapshot:
    """Load one checkpoint into host memory, without a word to the other ranks, and compare it with its ledger.

    Raises:
        DamagedError: the fingerprints differ from those taken when it was saved.
        OSError, ValueError, KeyError, TypeError: files are missing, short or foreign.
    """
    emit("restore.begin", step=step)
    rank = jax.process_index()
    alone = ocp.options.MultiprocessingOptions(primary_host=rank, active_processes={rank}, barrier_sync_key_prefix=f"rank{rank}")
    items = ocp.args.Composite(
        state=ocp.args.StandardRestore(initial.state), progress=ocp.args.JsonRestore(), ledger=ocp.args.JsonRestore()
    )
    handler = ocp.CompositeCheckpointHandler(composite_options=ocp.CompositeOptions(multiprocessing_options=alone))
    with ocp.Checkpointer(handler, multiprocessing_options=alone) as reader:
        restored = reader.restore(root / str(step), args=items)
    snapshot = Snapshot(restored.progress["step"], restored.state, Cursor(**restored.progress["cursor"]))
    digests = snapshot.digests()
    differing = sorted(part for part in digests if digests[part] != restored.ledger.get(part))
    if snapshot.step != step:
        raise DamagedError(f"it says that it holds step {snapshot.step}")
    if differing:
        raise DamagedError(f"it does not hold what was saved: {', '.join(differing)}")
    emit("restore", step=step, digests=digests)
    return snapshot


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _steps(root: Path) -> list[int]:
    return [int(entry.name) for entry in root.iterdir() if entry.name.isdecimal() and entry.name == str(int(entry.name))]


def _set_aside(root: Path, step: int) -> None:
    graveyard = root / "damaged"
    graveyard.mkdir(exist_ok=True)
    names = [str(step), *(f"{step}.{number}" for number in range(1, 1000))]
    name = next(name for name in names if not (graveyard / name).exists())
    (root / str(step)).rename(graveyard / name)
    print(f"Set aside the damaged checkpoint of step {step}: {graveyard / name}", flush=True)


def _stay_silent(_event: str, **_fields: object) -> None:
    """Of all ranks that take part in a save only the first reports it."""


class _Manager(ocp.CheckpointManager):
    """A manager that does not ask JAX about preemption.

    Each question sets the counter of the rank that asks to the step asked about. Orbax asks again when an asynchronous save ends, with
    a step long past and on rank 0 only: the ranks could then agree on a step that one of them has left behind, and never save.
    """

    def reached_preemption(self, step: int) -> bool:
        del step
        return False


class Checkpoints:
    """Saves in the background, one at a time, and acknowledges a save only when it is committed."""

    def __init__(self, root: Path, emit: Emitter, *, saved_step: int) -> None:
        """Open the directory for writing after the restore of ``saved_step``; what a killed save left half done is removed."""
        self._emit = emit if jax.process_index() == 0 else _stay_silent
        self._pending: tuple[int, Digests] | None = None
        self._saved_step = saved_step
        options = ocp.CheckpointManagerOptions(
            max_to_keep=KEPT, cleanup_tmp_directories=True, async_options=ocp.AsyncOptions(timeout_secs=SAVE_TIMEOUT_SECONDS)
        )
        self._manager = _Manager(root, options=options)

    def save(self, snapshot: Snapshot) -> None:
        """Start a save; the state is copied before this returns. A step that is saved already is not saved again.

        Raises:
            SaveFailedError: this save could not start, or the one before it failed.
        """
        self._finish()
        if snapshot.step <= self._saved_step:
            return
        digests = snapshot.digests()
        self._emit("save.begin", step=snapshot.step, digests=digests)
        items = ocp.args.Composite(
            state=ocp.args.StandardSave(snapshot.state),
            progress=ocp.args.JsonSave({"step": snapshot.step, "cursor": asdict(snapshot.cursor)}),
            ledger=ocp.args.JsonSave(digests),
        )
        with _failing_as(snapshot.step):
            started = self._manager.save(snapshot.step, args=items, force=True)
        if not started:
            raise SaveFailedError(f"The save of step {snapshot.step} failed: Orbax skipped it")
        self._pending = (snapshot.step, digests)

    def poll(self) -> None:
        """Acknowledge the save under way if it has been committed.

        Raises:
            SaveFailedError: it ended otherwise.
        """
        if self._pending and not self._manager.is_saving_in_progress():
            self._finish()

    def close(self) -> None:
        """Wait until everything is on disk: an exit before that loses the last save with exit code 0.

        Raises:
            SaveFailedError: the last save failed.
        """
        self._finish()
        self._manager.close()

    def _finish(self) -> None:
        if not self._pending:
            return
        step, digests = self._pending
        with _failing_as(step):
            self._manager.wait_until_finished()
        self._pending = None
        self._saved_step = step
        self._emit("save.end", step=step, digests=digests)


@contextmanager
def _failing_as(step: int) -> Iterator[None]:
    try:
        yield
    except STORAGE_ERRORS as error:
        raise SaveFailedError(f"The save of step {step} failed: {type(error).__name__}: {_first_line(error)}") from error


def write_result(root: Path, snapshot: Snapshot) -> None:
    """Write ``final.json`` whole or not at all."""
    partial = root / "final.json.tmp"
    with partial.open("w") as file:
        json.dump({"step": snapshot.step, "digests": snapshot.digests()}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(root / "final.json")
