"""A job that overwrites its only checkpoint in place, in two halves or at once, in a way that is chosen by name; the last one does it right.

The first half of a checkpoint tells the step, the second what it holds: a torn one is restored without a complaint.
"""

import ctypes
import json
import mmap
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LAST, HALF = 3, 4096


def say(event: str, **fields: object) -> None:
    with Path(os.environ["HARNESS_EVENTS"]).open("a") as file:
        file.write(json.dumps({"event": event, **fields}) + "\n")


def opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)


def by_open(path: Path, content: bytes) -> None:
    file = opened(path)
    os.write(file, content[:HALF])
    os.write(file, content[HALF:])
    os.close(file)


def by_at_once(path: Path, content: bytes) -> None:
    """One call of two pages, which a kill may cut between them."""
    file = opened(path)
    os.pwrite(file, content, 0)
    os.close(file)


def by_c(path: Path, content: bytes) -> None:
    """A library of our own, or the C library itself where there is no compiler."""
    if library := os.environ.get("WRITER"):
        failed = ctypes.CDLL(library).overwrite(os.fsencode(path), content, ctypes.c_size_t(len(content)))
    else:
        libc = ctypes.CDLL(None)
        file = libc.open(os.fsencode(path), os.O_WRONLY | os.O_CREAT, 0o644)
        written = [libc.write(file, half, ctypes.c_size_t(HALF)) for half in (content[:HALF], content[HALF:])]
        failed = written != [HALF, HALF] or libc.close(file)
    assert not failed


def by_mmap(path: Path, content: bytes) -> None:
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.truncate(2 * HALF)
        with mmap.mmap(file.fileno(), 2 * HALF) as memory:
            memory[:HALF] = content[:HALF]
            memory[HALF:] = content[HALF:]


def by_child(path: Path, content: bytes) -> None:
    subprocess.run(["dd", f"of={path}", f"bs={HALF}", "iflag=fullblock", "conv=notrunc", "status=none"], input=content, check=True)


def by_threads(path: Path, content: bytes) -> None:
    file = opened(path)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda offset: os.pwrite(file, content[offset : offset + HALF], offset), (0, HALF)))
    os.close(file)


def by_sendfile(path: Path, content: bytes) -> None:
    copied(path, content, lambda source, file, offset: os.sendfile(file, source, offset, HALF))


def by_copy_file_range(path: Path, content: bytes) -> None:
    copied(path, content, lambda source, file, offset: os.copy_file_range(source, file, HALF, offset, offset))


def copied(path: Path, content: bytes, copy) -> None:
    new = path.with_name("new")
    new.write_bytes(content)
    source, file = os.open(new, os.O_RDONLY), opened(path)
    assert [copy(source, file, offset) for offset in (0, HALF)] == [HALF, HALF]
    os.close(source)
    os.close(file)
    new.unlink()


def by_socket(path: Path, content: bytes) -> None:
    """Somebody else writes it: a process that this job has not started."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["SERVER"])
        connection.sendall(os.fsencode(path) + b"\n" + content)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(4) == b"done"


def by_elsewhere(_: Path, content: bytes) -> None:
    """The same, and not below the checkpoint directory."""
    by_socket(Path(os.environ["ELSEWHERE"]), content)


def by_split(path: Path, content: bytes) -> None:
    """What it holds goes elsewhere, and only where that is goes here; not even that is the same each time, so nothing here names it."""
    Path(os.environ["ELSEWHERE"]).write_bytes(content)
    by_rename(path, content)


def by_rename(path: Path, content: bytes) -> None:
    """Right where a process is killed."""
    new = path.with_name("new")
    new.unlink(missing_ok=True)
    by_open(new, content)
    new.rename(path)


def main(way: str) -> None:
    path, step, params = Path(os.environ["CHECKPOINT_DIR"], "checkpoint"), 0, 1
    if path.exists():
        content = path.read_bytes()
        step, params = int(content[:HALF]), int(content[HALF:])
        say("restore", step=step, digests={"params": str(params)})
    say("start", restored_step=step, steps=LAST)
    while step < LAST:
        step, params = step + 1, params * 7 + step
        digests = {"params": str(params)}
        say("step", step=step, digests=digests)
        say("save.begin", step=step, digests=digests)
        globals()[f"by_{way}"](path, str(step).encode().ljust(HALF) + str(params).encode().ljust(HALF))
        say("save.end", step=step, digests=digests)
    say("done", step=step)


main(sys.argv[1])
