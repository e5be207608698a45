"""The jobs on which ``harness explore`` and ``ckpt-chaos`` stand side by side: one that is right, others that save in a wrong way."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks import ROOT

OVERWRITER = ROOT / "tests" / "integration" / "explore" / "jobs"
"""Where the job lies that overwrites its checkpoint in place in a way that is chosen by name, and its library in C."""

Nature = Literal["right", "wrong", "hidden"]
"""Hidden: wrong where system calls do not show it, so that it is enough not to call it right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job.

    Attributes:
        name: How the line is called.
        nature: What there is to find.
        words: What follows the interpreter on the command line.
        result: A file of the checkpoint directory that ends as in the uninterrupted run.
        has_numbered_checkpoints: Whether ``ckpt-chaos`` can tell its checkpoints: their names end with the step.
    """

    name: str
    nature: Nature
    words: tuple[str, ...]
    result: str = "final.json"
    has_numbered_checkpoints: bool = True


def _broken(name: str, *, has_numbered_checkpoints: bool = True) -> Job:
    words = ("-m", f"workloads.broken.{name}")
    return Job(name=name, nature="wrong", words=words, has_numbered_checkpoints=has_numbered_checkpoints)


def _overwriting(way: str, nature: Nature = "wrong") -> Job:
    words = (str(OVERWRITER / "overwrites_in_place.py"), way)
    return Job(name=f"in place by {way}", nature=nature, words=words, result="checkpoint", has_numbered_checkpoints=False)


JOBS: tuple[Job, ...] = (
    Job(name="linear", nature="right", words=("-m", "workloads.linear.train")),
    _broken("saves_in_place", has_numbered_checkpoints=False),
    _broken("deletes_old_before_new"),
    _broken("latest_before_data"),
    _broken("picks_incomplete_checkpoint"),
    _broken("renames_without_fsync"),
    _broken("crashes_on_stale_temporary"),
    _broken("crashes_on_stale_lock"),
    _broken("skips_saves_after_resume"),
    _overwriting("open"),
    _overwriting("c"),
    _overwriting("child"),
    _overwriting("threads"),
    _overwriting("sendfile"),
    _overwriting("copy_file_range"),
    _overwriting("mmap", "hidden"),
    _overwriting("socket", "hidden"),
)

ENVIRONMENT: Mapping[str, str] = {"STEPS": "12", "STEP_SECONDS": "0", "SAVE_EVERY": "4", "KEEP": "10"}
"""Three saves, and none of them is removed: ``ckpt-chaos`` asks for that where it shall tell whether the newest checkpoint was used."""


@contextlib.contextmanager
def surroundings() -> Iterator[dict[str, str]]:
    """The variables of all jobs: what they are told, the library in C where somebody can compile it, and the server that writes for one."""
    with tempfile.TemporaryDirectory(prefix="writer-") as directory, _server(Path(directory, "door")) as door:
        yield {**os.environ, **ENVIRONMENT, "WRITER": _library(Path(directory)), "SERVER": str(door)}


def _library(directory: Path) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return ""  # the job then takes the C library itself
    library = directory / "overwrite.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(OVERWRITER / "overwrite.c")], check=True)
    return str(library)


@contextlib.contextmanager
def _server(path: Path) -> Iterator[Path]:
    """Somebody outside who writes in place what comes over a socket."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        thread = threading.Thread(target=_serve, args=(door,))
        thread.start()
        try:
            yield path
        finally:
            with socket.socket(socket.AF_UNIX) as last:
                last.connect(str(path))
            thread.join()


def _serve(door: socket.socket) -> None:
    """Until somebody sends nothing; one who is killed while he sends leaves half a checkpoint."""
    while True:
        connection, _ = door.accept()
        with connection, connection.makefile("rb") as lines:
            path = lines.readline().rstrip(b"\n")
            if not path:
                return
            content = lines.read()
            file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            for half in (content[: len(content) // 2], content[len(content) // 2 :]):
                os.write(file, half)
            os.close(file)
            with contextlib.suppress(OSError):
                connection.sendall(b"done")
