"""Saves a number every second step, in files of their own, and tells which are whole, or which is the last, by something beside their content."""

import os
import shutil
import socket
import sys
from pathlib import Path

way, directory = sys.argv[1], Path(os.environ["CHECKPOINT_DIR"])
os.chdir(directory)
STEPS, MARK = 6, "user.done"


def is_whole(path: Path) -> bool:
    if way == "mode":
        return not path.stat().st_mode & 0o222
    return way != "attribute" or MARK in os.listxattr(path)


def order(path: Path) -> float:
    return path.stat().st_mtime_ns if way == "time" else int(path.suffix[1:])


def save(step: int) -> None:
    path = Path(f"number.{step}")
    Path("new").write_text(str(step))
    shutil.copy2("new", "copy")
    Path("copy").rename(path)
    if way == "mode":
        path.chmod(0o444)
    elif way == "attribute":
        os.setxattr(path, MARK, b"")
    elif way == "time":
        for older in Path().glob("number.*"):
            if older != path:
                os.utime(older)


if way == "socket" and Path("door").exists():
    raise SystemExit("somebody is at the door")
door = socket.socket(socket.AF_UNIX)
if way == "socket":
    door.bind("door")
saved = sorted((path for path in Path().glob("number.*") if is_whole(path)), key=order)
first = int(saved[-1].read_text()) if saved else 0
if first:
    print(f"resumed from step {first}", flush=True)
for step in range(first + 1, STEPS + 1):
    print(f"step {step}", flush=True)
    if step % 2 == 0:
        save(step)
        print(f"saved checkpoint at step {step}", flush=True)
Path("result.tmp").write_text(str(STEPS))
Path("result.tmp").rename("result")
if way == "socket":
    Path("door").unlink()
