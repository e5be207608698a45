"""The supervisor that holds a job at operations, without a target: it goes as the job goes, and never keeps a job that nobody listens for."""

import contextlib
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.history import OperationReached
from harness.process_table import read_row
from harness.protocol.attempt_key import AttemptKey
from harness.scenario.triggers import AtOperation
from harness.targets.local.stops import StopsDoor, held_at, stops_available

PATIENCE_S = 120.0


class Stage:
    """A directory, a door, and a job that is held."""

    def __init__(self, directory: Path) -> None:
        self.root, self.events, self.path = directory / "root", directory / "events", directory / "door"
        self.root.mkdir()
        self.selector = selectors.DefaultSelector()
        self.door: StopsDoor | None = None
        self.job: subprocess.Popen[str] | None = None

    def start(self, code: str, *stops: AtOperation, root: Path | None = None) -> subprocess.Popen[str]:
        self.door = StopsDoor(self.path, AttemptKey(0, 0), stops, epoch_s=0.0, selector=self.selector)
        command = (sys.executable, "-S", "-c", f"import os, signal, sys, threading\nos.chdir({str(self.root)!r})\n{code}")
        line = held_at(command, stops, door=self.path, root=root or self.root, events=self.events)
        environment = {"HARNESS_EVENTS": str(self.events)}
        self.job = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        return self.job

    def reached(self, count: int = 1) -> list[OperationReached]:
        assert self.door is not None
        found: list[OperationReached] = []
        end_s = time.monotonic() + PATIENCE_S
        while len(found) < count:
            assert time.monotonic() < end_s, "nobody was held"
            self.selector.select(1.0)
            found += self.door.receive(0.0)
        return found

    def resume(self, *held: OperationReached) -> None:
        assert self.door is not None
        for each in held:
            self.door.resume(each)

    def finish(self) -> tuple[int, str, str]:
        assert self.job is not None
        output, errors = self.job.communicate(timeout=PATIENCE_S)
        return self.job.returncode, output, errors

    def close(self) -> None:
        if self.job is not None:
            if self.job.poll() is None:
                self.job.kill()
            self.job.communicate(timeout=PATIENCE_S)
        if self.door is not None:
            self.door.close()
        self.selector.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with contextlib.closing(Stage(tmp_path)) as stage:
        yield stage


MKDIR = AtOperation(operation="mkdir", path="a", when="before")


def test_this_machine_can_hold_a_job() -> None:
    assert stops_available() == ""


def test_when_nobody_listens_any_more_nobody_is_held_any_more(stage: Stage) -> None:
    """A job never depends on the harness."""
    stage.start("os.mkdir('a'); os.mkdir('b'); print('on')", MKDIR, AtOperation(operation="mkdir", path="b"))
    stage.reached()
    assert stage.door is not None

    stage.door.close()

    assert stage.finish() == (0, "on\n", "")
    assert (stage.root / "b").is_dir()


@pytest.mark.parametrize(("code", "status"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM)])
def test_it_ends_as_the_job_does(stage: Stage, code: str, status: int) -> None:
    stage.start(code, MKDIR)
    assert stage.finish()[0] == status


def test_its_death_takes_the_job_along_and_changes_nothing_more(stage: Stage) -> None:
    job = stage.start("os.mkdir('a')", MKDIR)
    (held,) = stage.reached()

    job.kill()
    job.wait(PATIENCE_S)

    end_s = time.monotonic() + PATIENCE_S
    while (row := read_row(held.pid)) is not None and row.state != "gone":
        assert time.monotonic() < end_s, "the job outlived its supervisor"
    assert not (stage.root / "a").exists()


def test_what_cannot_be_watched_is_not_run(stage: Stage) -> None:
    stage.start("open('ran', 'w')", MKDIR, root=stage.root / "nowhere")
    code, _, errors = stage.finish()
    assert (code, "cannot supervise" in errors) == (70, True)
    assert not (stage.root / "ran").exists()


def test_an_operation_that_fails_is_not_counted(stage: Stage) -> None:
    code = """
os.mkdir("step_1")
for act in (lambda: os.mkdir("step_1"), lambda: os.mkdir("none/step_2"), lambda: os.rmdir("step_9")):
    try: act()
    except OSError: pass
os.mkdir("step_2")
"""
    stage.start(code, AtOperation(operation="mkdir", path="step_*", nth=2))
    (held,) = stage.reached()
    assert sorted(path.name for path in stage.root.iterdir()) == ["step_1", "step_2"]
    stage.resume(held)
    assert stage.finish()[0] == 0


def test_two_addresses_of_one_operation_are_both_told_and_both_must_let_go(stage: Stage) -> None:
    code = """
events = os.open(os.environ["HARNESS_EVENTS"], os.O_WRONLY | os.O_APPEND)
os.write(events, b'{"event": "go"}\\n')
os.mkdir("a")
os.mkdir("b")
"""
    after_go = AtOperation(operation="mkdir", path="a", after="go")
    stage.start(code, AtOperation(operation="mkdir", path="a"), after_go, AtOperation(operation="mkdir", path="b", when="before"))
    first, second = stage.reached(2)
    assert {first.after, second.after} == {"", "go"}

    stage.resume(first)
    assert not stage.selector.select(0.3), "it went on to the next operation"
    stage.resume(second)
    stage.resume(*stage.reached())

    assert stage.finish()[0] == 0


def test_of_two_threads_each_is_held_for_itself(stage: Stage) -> None:
    code = """
threads = [threading.Thread(target=os.mkdir, args=(name,)) for name in ("a", "b")]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    stage.start(code, MKDIR, AtOperation(operation="mkdir", path="b", when="before"))
    one, other = stage.reached(2)
    assert {one.path, other.path} == {"a", "b"}
    stage.resume(other)
    stage.resume(one)
    assert stage.finish()[0] == 0
    assert sorted(path.name for path in stage.root.iterdir()) == ["a", "b"]


def test_a_word_begins_a_count_when_its_line_is_whole(stage: Stage) -> None:
    code = """
events = os.open(os.environ["HARNESS_EVENTS"], os.O_WRONLY | os.O_APPEND)
os.write(events, b'no word\\n{"event": "save.beg')
os.mkdir("step_1")
os.write(events, b'in"}\\n')
os.mkdir("step_2")
"""
    stage.start(code, AtOperation(operation="mkdir", path="step_*", after="save.begin"))
    (held,) = stage.reached()
    assert (stage.root / "step_2").exists()
    stage.resume(held)
    assert stage.finish()[0] == 0
