"""A program that does anything to its directory, and what becomes of it with and without the recorder."""

import ast
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tests.integration.recorded import PATIENCE_S, PREAMBLE, Recorded, Stage, Tree, number, tree_of

_PROGRAM = """
import random
draw = random.Random(int(sys.argv[3]))
names = [b"a", b"b", b"c", b"d\\xff", "\\u00e9".encode()]
held = []
def path():
    parts = [draw.choice(names) for _ in range(draw.choice((1, 1, 2, 3)))]
    if not draw.randrange(8):
        parts.insert(draw.randrange(len(parts) + 1), draw.choice((b"..", b".", b"")))
    return b"/".join(parts) if parts[0] and parts[0] != b".." else b"a"
def act():
    choice = draw.randrange(25)
    if choice < 4:
        flags = draw.choice((os.O_CREAT, os.O_CREAT | os.O_TRUNC, os.O_CREAT | os.O_EXCL, os.O_CREAT | os.O_APPEND, 0))
        held.append(os.open(path(), flags | draw.choice((os.O_WRONLY, os.O_RDWR, os.O_RDONLY))))
        return held[-1]
    elif choice < 9 and held:
        file = draw.choice(held)
        data = draw.randbytes(draw.randrange(300))
        return draw.choice((lambda: os.write(file, data), lambda: os.pwrite(file, data, draw.randrange(500)), lambda: os.writev(file, [data, data]),
            lambda: os.ftruncate(file, draw.randrange(600)), lambda: os.sendfile(file, other, draw.randrange(100), draw.randrange(1, 200)),
            lambda: os.copy_file_range(draw.choice(held), file, draw.randrange(1, 200), draw.randrange(100)),
            lambda: os.posix_fallocate(file, draw.randrange(300), draw.randrange(1, 300)), lambda: os.fsync(file),
            lambda: os.lseek(file, draw.randrange(400), os.SEEK_SET)))()
    elif choice == 9 and held:
        os.close(held.pop(draw.randrange(len(held))))
    elif choice == 10:
        os.mkdir(path())
    elif choice == 11:
        os.unlink(path())
    elif choice == 12:
        os.rmdir(path())
    elif choice == 13:
        os.rename(path(), path())
    elif choice == 14:
        os.link(path(), path(), follow_symlinks=False)
    elif choice == 15:
        os.symlink(path(), path())
    elif choice == 16:
        call(RENAMEAT2, -100, path(), -100, path(), draw.choice((1, 2)))
    elif choice == 17:
        away = os.fsencode(outside) + b"/" + draw.choice((b"x", b"y"))
        draw.choice((lambda: os.rename(path(), away), lambda: os.rename(away, path()), lambda: os.link(path(), away), lambda: os.link(away, path())))()
    elif choice == 18:
        os.truncate(path(), draw.randrange(-2, 99))
    elif choice == 19:
        os.symlink(draw.choice((os.fsencode(root) + b"/" + path(), b"../outside/" + path(), os.fsencode(outside) + b"/x")), path())
    elif choice == 20:
        held.append(os.open(draw.choice((b".", path())), os.O_TMPFILE | os.O_RDWR))
    elif choice == 21 and held:
        os.link(b"/proc/self/fd/%d" % draw.choice(held), path(), src_dir_fd=0, follow_symlinks=True)
    elif choice == 22 and held:
        held.append(os.dup(draw.choice(held)))
    elif choice == 23:
        os.chdir(draw.choice((os.fsencode(root), path())))
    elif choice == 24:
        directory = os.open(path(), os.O_RDONLY | os.O_DIRECTORY)
        try:
            draw.choice((lambda: os.mkdir(path(), dir_fd=directory), lambda: os.rename(path(), path(), src_dir_fd=directory),
                lambda: os.close(os.open(path(), os.O_CREAT | os.O_WRONLY, dir_fd=directory)), lambda: os.fsync(directory),
                lambda: os.mknod(path(), dir_fd=directory), lambda: call(UNLINKAT, directory, path(), 0x200)))()
        finally:
            os.close(directory)
other = os.open("/proc/self/exe", os.O_RDONLY)
results = []
for _ in range(900):
    try:
        results.append(act())
    except OSError as error:
        results.append(errno.errorcode[error.errno])
make(outside + "/results", repr(results).encode())
"""


def random_program() -> str:
    """Code that follows the preamble; its third argument is the seed."""
    return _PROGRAM.replace("RENAMEAT2", str(number("renameat2"))).replace("UNLINKAT", str(number("unlinkat")))


@dataclass
class Fared:
    """What a program got, an errno's name where a call failed, and what it left; and the same without the recorder."""

    recorded: Recorded
    results: list[Any]
    tree: Tree
    bare_results: list[Any]
    bare_tree: Tree


def fare(stage: Stage, seed: int) -> Fared:
    """Run a random program by itself, and again under the recorder."""
    _prepare(stage)
    subprocess.run((sys.executable, "-c", PREAMBLE + _seeded(seed), str(stage.root), str(stage.outside)), check=True, timeout=PATIENCE_S)
    bare, bare_results = tree_of(stage.root), _results(stage)
    recorded = record_program(stage, seed)
    return Fared(recorded, _results(stage), tree_of(stage.root), bare_results, bare)


def record_program(stage: Stage, seed: int) -> Recorded:
    """Run a random program under the recorder."""
    _prepare(stage)
    return stage.run(_seeded(seed))


def _seeded(seed: int) -> str:
    return f"sys.argv.append('{seed}')\n" + random_program()


def _prepare(stage: Stage) -> None:
    for directory in (stage.root, stage.outside):
        shutil.rmtree(directory)
    for name in ("a", "b/c"):
        (stage.root / name).parent.mkdir(parents=True, exist_ok=True)
        (stage.root / name).write_text(f"initial {name}")
    stage.outside.mkdir()


def _results(stage: Stage) -> list[Any]:
    return list(ast.literal_eval((stage.outside / "results").read_text()))
