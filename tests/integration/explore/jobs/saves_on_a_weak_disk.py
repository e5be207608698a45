"""A job that survives every kill of its process, and is wrong on a disk that loses what was not synced, in a way that is chosen by name.

The last one is right there, too.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

LAST = 3


def say(event: str, **fields: object) -> None:
    if sys.argv[1] != "silent":
        with Path(os.environ["HARNESS_EVENTS"]).open("a") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")


def written(path: Path, content: str, *, syncs: bool) -> Path:
    with path.open("w") as file:
        file.write(content)
        file.flush()
        if syncs:
            os.fsync(file.fileno())
    return path


def sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def by_one_temporary_name(model: Path, content: str) -> None:
    """Nothing but the last rename is sure to be there before the directory is synced, not even that of the first file before the second's."""
    temporary = model.with_name("tmp")
    written(temporary, content, syncs=True).replace(model)
    written(temporary, content, syncs=True).replace(model.with_name("meta"))
    sync_directory(model.parent)


def by_moving_in(model: Path, content: str) -> None:
    """The directory is synced, and not the file, which was written elsewhere."""
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write(content)
    Path(file.name).replace(model)
    sync_directory(model.parent)


def by_silent(model: Path, content: str) -> None:
    """Nothing is synced, and nothing is said of it."""
    written(model.with_name("tmp"), content, syncs=False).replace(model)


def by_right(model: Path, content: str) -> None:
    """Written elsewhere, and all of it synced."""
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(model)
    sync_directory(model.parent)


def restored(model: Path) -> dict[str, int]:
    state = json.loads(model.read_text())
    meta = model.with_name("meta")
    if meta.exists() and json.loads(meta.read_text())["step"] > state["step"]:
        raise SystemExit("the model is older than what is said of it")
    return state


def main(way: str) -> None:
    model = Path(os.environ["CHECKPOINT_DIR"], "model")
    state = {"step": 0, "params": 1}
    if model.exists():
        state = restored(model)
        say("restore", step=state["step"], digests={"params": str(state["params"])})
    say("start", restored_step=state["step"], steps=LAST)
    while state["step"] < LAST:
        step = state["step"] + 1
        state = {"step": step, "params": state["params"] * 7 + step}
        digests = {"params": str(state["params"])}
        say("step", step=step, digests=digests)
        say("save.begin", step=step, digests=digests)
        globals()[f"by_{way}"](model, json.dumps(state))
        say("save.end", step=step, digests=digests)
    Path(os.environ["CHECKPOINT_DIR"], "final").write_text(json.dumps(state))
    say("done", step=state["step"])


main(sys.argv[1])
