"""A stage for jobs under the recorder, and a replay of their logs that shares no code with it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.explore.data_file import DataFile
from harness.explore.models import MODELS
from harness.explore.operation_log import OperationLog, read_operation_log
from harness.explore.operations import Blind, Ended, Printed, Said, real_path
from harness.explore.recording import SCRIPT
from harness.explore.replay import replay
from harness.explore.states import File, Link
from harness.explore.trees import BranchTree

PATIENCE_S = 120.0

PREAMBLE = """
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, struct, subprocess, sys, threading, time
root, outside = sys.argv[1:3]
os.chdir(root)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    words = [ctypes.c_char_p(word) if isinstance(word, bytes) else word if isinstance(word, ctypes._Pointer) else ctypes.c_long(word) for word in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def fails(name, act, *arguments, **options):
    try:
        act(*arguments, **options)
    except OSError as error:
        assert errno.errorcode[error.errno] == name, f"{errno.errorcode[error.errno]} instead of {name}"
        return
    raise AssertionError(f"succeeded, {name} was due")
def make(path, content=b"x"):
    with open(path, "wb") as file:
        file.write(content)
def content(path):
    with open(path, "rb") as file:
        return file.read()
kept = []
def address(data):
    kept.append(data)
    return ctypes.addressof(data)
"""


def number(name: str) -> int:
    from harness.supervision.syscalls import this_architecture

    architecture = this_architecture()
    assert architecture is not None
    return next(number for number, call in architecture.recorded.items() if call.name == name)


Tree = dict[bytes, Any]
"""By path: bytes of a file, None for a directory, a path for the target of a link."""


class Recorded:
    """A log: as read strictly, and what the test's own replay makes of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log: OperationLog = read_operation_log(directory)
        self.lines = [json.loads(line) for line in (directory / "operations.jsonl").read_bytes().splitlines()]
        self._data = (directory / "data").read_bytes()

    @property
    def blind(self) -> list[tuple[str, str]]:
        return [(entry.what, entry.path) for entry in self.log.entries if isinstance(entry, Blind)]

    @property
    def said(self) -> list[str]:
        return [entry.line for entry in self.log.entries if isinstance(entry, Said)]

    @property
    def printed(self) -> dict[str, str]:
        texts = {"stdout": "", "stderr": ""}
        for entry in self.log.entries:
            if isinstance(entry, Printed):
                texts[entry.stream] += entry.text
        return texts

    @property
    def end(self) -> Ended | None:
        last = self.log.entries[-1] if self.log.entries else None
        return last if isinstance(last, Ended) else None

    def kinds(self, *left_out: str) -> list[str]:
        return [line["kind"] for line in self.lines[1:] if line["kind"] not in {"end", "close", "print", "elsewhere", "refused", *left_out}]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines[1:] if line["kind"] == kind]

    def bytes_of(self, extent: list[int]) -> bytes:
        return self._data[extent[0] : extent[0] + extent[1]]

    def tree(self, *, until: int | None = None) -> Tree:
        """What the operations make of the directory, after the entry ``until``."""
        player = Player(self)
        player.bring(self.lines[0]["initial"])
        for line in self.lines[1:]:
            if until is None or line["index"] <= until:
                player.play(line)
        return {real_path(path): player.things[node] for path, node in player.names.items()}


class Player:
    """Names as whole paths, contents as bytes: slow and plain."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self.things: dict[int, Any] = {}
        self.names: dict[str, int] = {}

    def bring(self, items: list[dict[str, Any]]) -> None:
        for item in items:
            assert item["node"] not in self.things, "a node is used again"
            kinds = {"file": self._recorded.bytes_of(item.get("data", [0, 0])), "directory": None, "link": target_of(item)}
            self.things[item["node"]] = kinds[item["kind"]]
            self.names[item["path"]] = item["node"]

    def play(self, line: dict[str, Any]) -> None:
        kind, path, node = line["kind"], line.get("path", ""), line.get("node", 0)
        if kind in {"create", "mkdir", "symlink"}:
            assert node not in self.things, "a node is used again"
            assert path not in self.names, f"{path} was there"
            self.things[node] = {"create": b"", "mkdir": None, "symlink": target_of(line)}[kind]
            if path:
                self.names[path] = node
        elif kind == "open" and line.get("truncates"):
            self.things[node] = b""
        elif kind == "write":
            data, offset, old = self._recorded.bytes_of(line["data"]), line["offset"], self.things[node]
            self.things[node] = old[:offset].ljust(offset, b"\0") + data + old[offset + len(data) :]
        elif kind == "truncate":
            self.things[node] = self.things[node][: line["size"]].ljust(line["size"], b"\0")
        elif kind in {"unlink", "rmdir", "move-out"}:
            assert self.names[path] == node
            assert kind != "rmdir" or not any(name.startswith(f"{path}/") for name in self.names)
            for name in self._below(path):
                del self.names[name]
        elif kind == "rename":
            assert self.names[path] == node
            self._rename(path, line["to"], exchanges=line.get("exchanges", False))
        elif kind == "link":
            self.names[line["to"]] = node
        elif kind == "move-in":
            for name in self._below(line["to"]):
                del self.names[name]
            self.bring(line["items"])

    def _below(self, path: str) -> list[str]:
        return [name for name in self.names if name == path or name.startswith(f"{path}/")]

    def _rename(self, path: str, to: str, *, exchanges: bool) -> None:
        moving = {to + name[len(path) :]: self.names.pop(name) for name in self._below(path)}
        replaced = {path + name[len(to) :]: self.names.pop(name) for name in self._below(to)}
        self.names |= moving | (replaced if exchanges else {})


def modelled(log: OperationLog) -> Tree:
    """What ``posix`` leaves of a log at its end; nothing in the log may contradict itself."""
    played = replay(log)
    assert played.gaps == (), played.gaps
    *_, last = MODELS["posix"].whole(played, "process")
    tree: Tree = {}
    with DataFile(log.data_path) as data:
        for path, thing in BranchTree(last.system.tree()).items():
            left = data.read(thing.content) if isinstance(thing, File) else None
            tree[real_path(path)] = Path(os.fsdecode(real_path(thing.target))) if isinstance(thing, Link) else left
    return tree


def target_of(line: dict[str, Any]) -> Path:
    """Where a link leads."""
    return Path(os.fsdecode(real_path(line.get("target", ""))))


def tree_of(root: Path) -> Tree:
    """What is in a real directory."""
    found: Tree = {}
    for path in root.rglob("*"):
        key = os.fsencode(path.relative_to(root))
        if path.is_symlink():
            found[key] = path.readlink()
        else:
            found[key] = None if path.is_dir() else path.read_bytes()
    return found


class Stage:
    """A directory that is recorded, one beside it, and the way to run jobs."""

    def __init__(self, directory: Path, *, root: Path | None = None) -> None:
        self.root, self.outside, self.log = root or directory / "root", directory / "outside", directory / "log"
        self.events = directory / "events.jsonl"
        self.root.mkdir(exist_ok=True)
        self.outside.mkdir()
        self.started: list[subprocess.Popen[str]] = []

    def start(self, command: tuple[str, ...], **options: Any) -> subprocess.Popen[str]:
        line = (
            sys.executable,
            "-P",
            str(SCRIPT),
            "--root",
            str(self.root),
            "--log",
            str(self.log),
            "--events",
            str(self.events),
            "--",
            *command,
        )
        pipe = subprocess.PIPE
        environment = options.pop("env", {**os.environ, "HARNESS_EVENTS": str(self.events)})
        process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment, **options)
        self.started.append(process)
        return process

    def start_python(self, code: str, **options: Any) -> subprocess.Popen[str]:
        return self.start((sys.executable, "-c", PREAMBLE + code, str(self.root), str(self.outside)), **options)

    def run(self, code: str, **options: Any) -> Recorded:
        """Record a job that must succeed, and whose log must tell all of the directory: to the model, and to the plain replay here."""
        recorded = self.run_blindly(code, **options)
        assert recorded.blind == [], recorded.of("blind")
        real = tree_of(self.root)
        for made in (recorded.tree(), modelled(recorded.log)):
            assert made == real, {path: (made.get(path, "none"), real.get(path, "none")) for path in made.keys() | real.keys()}
        return recorded

    def run_blindly(self, code: str, **options: Any) -> Recorded:
        """Record a job that must succeed."""
        process = self.start_python(code, **options)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, errors) == (0, ""), errors
        recorded = Recorded(self.log)
        assert recorded.end is not None
        return recorded

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=PATIENCE_S)
