"""Damage every file of one checkpoint in every way, restore it each time, and print what came of it, one JSON object a line.

    python -m tests.workloads.jax_gpu_damage CHECKPOINT_DIR STEP SCRATCH_DIR

A process of its own, because it imports JAX. ``outcome`` is ``same`` (what was saved), ``refused`` or ``wrong``.
"""

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from workloads.jax_gpu import checkpointing, model

FLIPS = 4  # positions tried in each file


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def flip_a_bit(random_source: random.Random) -> Callable[[Path], None]:
    def flip(file: Path) -> None:
        data = bytearray(file.read_bytes())
        if data:
            data[random_source.randrange(len(data))] ^= 1 << random_source.randrange(8)
        file.write_bytes(data)

    return flip


def damages() -> Iterator[tuple[str, Callable[[Path], None]]]:
    yield "delete", Path.unlink
    yield "empty", empty
    yield "truncate", cut_in_half
    random_source = random.Random(0)
    for _ in range(FLIPS):
        yield "flip", flip_a_bit(random_source)


def main(source: Path, step: int, scratch: Path) -> None:
    initial = checkpointing.Snapshot(0, model.initial_state(0), model.Cursor(0))
    saved = checkpointing.restore(source, step, initial, ignore).digests()
    checkpoint = source / str(step)
    for file in sorted(path.relative_to(checkpoint) for path in checkpoint.rglob("*") if path.is_file()):
        for name, damage in damages():
            shutil.rmtree(scratch / str(step), ignore_errors=True)
            shutil.copytree(checkpoint, scratch / str(step))
            damage(scratch / str(step) / file)
            print(json.dumps({"file": str(file), "damage": name, "outcome": restored(scratch, step, initial, saved)}), flush=True)


def restored(root: Path, step: int, initial: checkpointing.Snapshot, saved: checkpointing.Digests) -> str:
    try:
        digests = checkpointing.restore(root, step, initial, ignore).digests()
    except (checkpointing.DamagedError, *checkpointing.STORAGE_ERRORS):
        return "refused"
    return "same" if digests == saved else "wrong"


def ignore(event: str, **fields: object) -> None:
    pass


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
