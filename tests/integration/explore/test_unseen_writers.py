"""Writers that a tool in Python cannot see: the same overwrite in place is found whoever does it, or nothing is claimed, and why is said."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.clock import SystemClock
from harness.explore.budget import Budget
from harness.explore.exploring import Explorer, Options
from harness.explore.judgement import Broken
from harness.explore.operation_log import OperationLog, read_operation_log
from harness.explore.operations import Elsewhere, Wrote
from harness.explore.recipe import Recipe
from harness.explore.result import Exploration, Recorded
from harness.explore.subject import Subject
from harness.store import RunStore
from harness.targets import left_behind
from harness.verdict import Outcome
from tests.integration.explore.recipes import ROOT

JOBS = Path(__file__).with_name("jobs")


class Silence:
    """A watcher that tells nobody."""

    def recorded(self, recorded: Recorded) -> None: ...

    def planned(self, states: int) -> None: ...

    def judged(self, surface: str, outcome: Outcome, worst: Broken | None) -> None: ...


class Explored(NamedTuple):
    """What came of it, and what was recorded."""

    exploration: Exploration
    log: OperationLog


Explore = Callable[..., Explored]


@pytest.fixture
def explore(tmp_path: Path) -> Iterator[Explore]:
    """Explores the job, killed processes on a local disk only."""
    clock = SystemClock()
    run_ids: list[str] = []

    def explore(way: str, **environment: str) -> Explored:
        command = (sys.executable, "-S", str(JOBS / "overwrites_in_place.py"), way)
        subject = Subject(name="overwrites-in-place", recipe=Recipe(command=command, directory=str(ROOT), environment=environment))
        options = Options(surfaces=(("posix", "process"),), budget=Budget(seconds=None, states=60), jobs=2)
        directory, run_id = RunStore(tmp_path / "runs", clock).create("explore-overwrites-in-place", 0)
        run_ids.append(run_id)
        explorer = Explorer(subject, options, directory=directory, name="run", run_id=run_id, clock=clock, watcher=Silence())
        return Explored(explorer.explore().exploration, read_operation_log(directory.recorded))

    yield explore
    assert [line for run_id in run_ids for line in left_behind(run_id)] == []


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library in C; empty where nobody can compile it, and the C library itself must do."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return ""
    library = tmp_path_factory.mktemp("writer") / "overwrite.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(JOBS / "overwrite.c")], check=True)
    return str(library)


@pytest.fixture
def server() -> Iterator[str]:
    """Somebody outside who writes what comes over a socket; its path."""
    with tempfile.TemporaryDirectory(prefix="writer-") as directory, socket.socket(socket.AF_UNIX) as door:
        path = Path(directory, "door")  # a short name: sun_path holds 108 bytes
        door.bind(str(path))
        door.listen()
        thread = threading.Thread(target=serve, args=(door,))
        thread.start()
        yield str(path)
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(path))
        thread.join()


def serve(door: socket.socket) -> None:
    """Overwrite in place, in two pieces, until somebody sends nothing."""
    while True:
        connection, _ = door.accept()
        with connection, connection.makefile("rb") as lines:
            path = lines.readline().rstrip(b"\n")
            if not path:
                return
            content = lines.read()
            file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(file, content[: len(content) // 2])
            os.write(file, content[len(content) // 2 :])
            os.close(file)
            connection.sendall(b"done")


def broken(exploration: Exploration) -> set[str]:
    states = [state for surface in exploration.surfaces for state in surface.states]
    return {each.promise for state in states for each in state.broken if each.outcome is Outcome.INVALID}


def writers(log: OperationLog) -> dict[str, set[tuple[int, int]]]:
    """By system call, the processes and threads that wrote with it."""
    found = defaultdict(set)
    for entry in log.entries:
        if isinstance(entry, Wrote):
            found[entry.call].add((entry.process, entry.thread))
    return found


CALLS = {
    "open": "write",
    "at_once": "pwrite64",
    "c": "write",
    "child": "write",
    "threads": "pwrite64",
    "sendfile": "sendfile",
    "copy_file_range": "copy_file_range",
}
"""By way, the system call that must have been seen, so that it is what it is called."""


@pytest.mark.parametrize("way", CALLS)
def test_an_overwrite_in_place_is_found_whoever_does_it(explore: Explore, writer: str, way: str) -> None:
    exploration, log = explore(way, WRITER=writer)

    assert exploration.outcome is Outcome.INVALID
    assert exploration.recorded.blind == ()
    assert "restores-what-was-saved" in broken(exploration), "a torn checkpoint was not found"
    assert CALLS[way] in writers(log)


def test_the_child_and_the_threads_are_others_than_the_job(explore: Explore) -> None:
    own, child, threads = (writers(explore(way).log) for way in ("open", "child", "threads"))

    assert len({process for process, _ in own["write"]}) == 1
    assert len({process for process, _ in child["write"]}) == 3, "one for each save"
    assert not any(process == thread for process, thread in threads["pwrite64"])


def test_an_overwrite_in_place_by_the_c_library_alone_is_found(explore: Explore) -> None:
    assert "restores-what-was-saved" in broken(explore("c").exploration)


def test_a_mapped_checkpoint_is_unknown_and_never_valid(explore: Explore) -> None:
    exploration, _ = explore("mmap")

    assert exploration.outcome is Outcome.UNKNOWN
    assert "through a shared mapping, which no system call shows" in " ".join(exploration.reasons)


def test_a_checkpoint_that_somebody_outside_writes_is_unknown_and_never_valid(explore: Explore, server: str) -> None:
    exploration, _ = explore("socket", SERVER=server)

    assert exploration.outcome is Outcome.UNKNOWN
    assert "somebody else changed the directory meanwhile" in " ".join(exploration.reasons)


def test_a_checkpoint_that_goes_elsewhere_over_a_socket_is_unknown_and_never_valid(explore: Explore, server: str, tmp_path: Path) -> None:
    exploration, _ = explore("elsewhere", SERVER=server, ELSEWHERE=str(tmp_path / "elsewhere"))

    assert exploration.outcome is Outcome.UNKNOWN
    assert "the job saves somewhere else, or not at all" in " ".join(exploration.reasons)


def test_a_save_that_is_split_between_two_directories_is_unknown_and_never_valid(explore: Explore, tmp_path: Path) -> None:
    exploration, log = explore("split", ELSEWHERE=str(tmp_path / "elsewhere"))

    assert [entry.path for entry in log.entries if isinstance(entry, Elsewhere)] == [str(tmp_path / "elsewhere")]
    assert exploration.outcome is Outcome.UNKNOWN
    assert exploration.reasons == (
        f"each save writes `{tmp_path / 'elsewhere'}`, too, outside of the checkpoint directory: what a crash leaves of it is not known",
    )


def test_the_same_job_is_valid_where_it_renames(explore: Explore) -> None:
    exploration, _ = explore("rename")

    assert (exploration.outcome, exploration.reasons) == (Outcome.VALID, ())
