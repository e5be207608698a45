"""What a process of a cluster does with a task: blobs are fetched once, a lost worker is replaced, and nothing stays when it ends."""

import hashlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from harness.clock import ManualClock, SystemClock
from harness.explore.executors.node import Node
from harness.explore.executors.wire import Setup, encode
from harness.explore.recipe import Piece, Recipe, StateTask
from harness.targets import left_behind
from tests.integration.explore.recipes import ROOT, python, shell

CONTENTS = {hashlib.sha256(data).hexdigest(): data for data in (b"one", b"two")}
ONE, TWO = (Piece(path=data.decode(), kind="file", content=sha) for sha, data in CONTENTS.items())


@pytest.fixture
def run_id() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield name
    assert left_behind(name) == []


@pytest.fixture
def node(run_id: str) -> Iterator[Node]:
    opened = Node(SystemClock())
    yield opened
    opened.close()


def template(recipe: Recipe, run_id: str, **fields: object) -> bytes:
    return encode(Setup(**{"recipe": recipe, "blobs": "", "place": "", "run_id": run_id, "surroundings": dict(os.environ), **fields}))


class Store:
    """Counts what is asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def fetch(self, contents: Sequence[str]) -> Sequence[bytes]:
        self.asked.append(sorted(contents))
        return [CONTENTS[content] for content in contents]


def task(*pieces: Piece) -> StateTask:
    return StateTask(state="-".join(piece.path for piece in pieces), pieces=pieces)


def test_each_blob_is_fetched_once_and_the_worker_stays(node: Node, run_id: str) -> None:
    store, setup = Store(), template(shell('cat "$CHECKPOINT_DIR"/*; echo " by $PPID"; exit 1'), run_id)
    answers = [node.try_state(setup, each, store.fetch) for each in (task(ONE), task(ONE, TWO), task(TWO))]
    said = [answer.tried.first.detail.split(" by ") for answer in answers if answer.tried.first]

    assert [words for words, _ in said] == ["one", "onetwo", "two"]
    assert len({pid for _, pid in said}) == 1
    assert store.asked == [[ONE.content], [TWO.content]]


def test_a_lost_worker_is_replaced_and_a_state_that_loses_two_is_lost(node: Node, run_id: str) -> None:
    recipe = python("if (root / 'one').exists(): os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)")
    setup, store = template(recipe, run_id), Store()

    assert node.try_state(setup, task(ONE), store.fetch).tried.lost.startswith("its worker was lost 2 times")
    assert node.try_state(setup, task(TWO), store.fetch).tried.first is not None


def test_another_setup_is_another_worker_in_another_place(node: Node, run_id: str) -> None:
    store = Store()
    codes = [node.try_state(template(shell(f"exit {code}"), run_id), task(ONE), store.fetch).tried.first for code in (3, 4)]

    assert [recovery.exit_code for recovery in codes if recovery] == [3, 4]
    assert len([line for line in left_behind(run_id) if line.startswith("scratch directory")]) == 1


def test_a_worker_that_has_had_nothing_to_do_leaves_with_all_that_is_its_own_and_another_one_takes_over(run_id: str) -> None:
    clock, store = ManualClock(), Store()
    node = Node(clock)
    setup = template(shell("true"), run_id, idle_s_max=0.5)
    node.try_state(setup, task(ONE), store.fetch)
    deadline = SystemClock().monotonic_s() + 30
    while left_behind(run_id):
        assert SystemClock().monotonic_s() < deadline
        SystemClock().sleep(0.05)
    clock.advance(1.0)

    assert node.try_state(setup, task(ONE), store.fetch).tried.first is not None
    assert len(store.asked) == 2
    node.close()


PROCESS_OF_RAY = """
import sys
from harness.clock import SystemClock
from harness.explore.executors.node import Node
from harness.explore.executors.wire import Setup, encode
from harness.explore.recipe import Recipe, StateTask
recipe = Recipe(command=("sh", "-c", "sleep 600"), timeout_s=600.0)
setup = Setup(recipe=recipe, blobs="", place="", run_id=sys.argv[1], surroundings={"PATH": "/usr/bin:/bin"})
Node(SystemClock()).try_state(encode(setup), StateTask(state="s", pieces=()), list)
"""


def test_the_death_of_the_process_leaves_nothing(run_id: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROCESS_OF_RAY, run_id], cwd=ROOT)
    clock = SystemClock()
    deadline_s = clock.monotonic_s() + 30
    while not any(child.name() == "sleep" for child in psutil.Process(process.pid).children(recursive=True)):
        assert clock.monotonic_s() < deadline_s
        clock.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while left_behind(run_id):
        assert clock.monotonic_s() < deadline_s
        clock.sleep(0.02)

    assert not list(Path("/tmp").glob(f"h{hashlib.sha256(run_id.encode()).hexdigest()[:8]}-*"))
