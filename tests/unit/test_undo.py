"""Processes are told from one another whatever their ids and the time of day."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import msgspec
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import SystemClock
from harness.errors import StoreError
from harness.store import RunStore
from harness.undo import (
    ContinueProcesses,
    KeptOriginal,
    KillProcesses,
    NothingToUndo,
    Undo,
    UndoJournal,
    find,
    identify,
    perform,
    restored_by,
)


@pytest.fixture
def other():
    """A process that waits."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_run_lives_on_when_somebody_sets_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run, _ = RunStore(tmp_path, SystemClock()).create("a-run-lives", 0)
    booted_s = psutil.boot_time()
    monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: booted_s + 3600.0)

    assert run.is_running()


def test_another_process_with_the_same_id_is_left_alone(other: subprocess.Popen[bytes]):
    (mine,) = identify([other.pid])
    strangers = [msgspec.structs.replace(mine, started_s=mine.started_s - 1), msgspec.structs.replace(mine, boot_id="another")]

    assert [perform(KillProcesses(processes=(stranger,))) for stranger in strangers] == ["SIGKILL to 0 processes"] * 2
    assert other.poll() is None


def test_a_stopped_process_goes_on(other: subprocess.Popen[bytes]):
    processes = identify([other.pid])
    os.kill(other.pid, signal.SIGSTOP)
    os.waitpid(other.pid, os.WUNTRACED)

    assert perform(ContinueProcesses(processes=processes)) == "SIGCONT to 1 processes"
    assert os.WIFCONTINUED(os.waitpid(other.pid, os.WCONTINUED)[1])


def test_a_process_that_has_ended_is_gone_even_before_it_is_waited_for(other: subprocess.Popen[bytes]):
    (process,) = identify([other.pid])
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)

    assert find(process) is None


def test_an_undo_is_durable_before_anybody_may_act(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told: list[str] = []
    real_write, real_fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda descriptor, data: (told.append("write"), real_write(descriptor, data))[1])
    monkeypatch.setattr(os, "fsync", lambda descriptor: (told.append("fsync"), real_fsync(descriptor))[1])
    journal = UndoJournal(tmp_path / "undo.jsonl")

    journal.owe("1-kill@0", NothingToUndo(why="it stays dead"))
    told.append("act")
    journal.settle("1-kill@0")

    assert told == ["write", "fsync", "act", "write", "fsync"]
    assert journal.owed() == []


def test_an_undo_that_is_not_durable_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=r"write the undo journal .*undo\.jsonl: Input/output error"):
        UndoJournal(tmp_path / "undo.jsonl").owe("x", NothingToUndo(why="y"))


def test_what_a_killed_writer_left_spoils_no_line_after_it(tmp_path: Path):
    path = tmp_path / "undo.jsonl"
    journal = UndoJournal(path)
    journal.owe("first", NothingToUndo(why="it is whole"))
    path.write_bytes(path.read_bytes() + b'{"injection":"second","undo":{"ty')

    assert [entry.injection for entry in journal.owed()] == ["first"]
    journal.settle("first")
    assert journal.owed() == []


@given(acts=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=10))
def test_what_is_owed_is_what_was_not_settled(acts: list[tuple[str, bool]], tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.getbasetemp() / "undo.jsonl"
    path.unlink(missing_ok=True)
    journal, owed = UndoJournal(path), []
    with patch.object(os, "fsync"):
        for number, (name, settles) in enumerate(acts):
            key = f"{name}@{number}"
            journal.owe(key, NothingToUndo(why=name))
            if settles:
                journal.settle(key)
            else:
                owed.append(key)
    assert [entry.injection for entry in journal.owed()] == owed


@pytest.mark.parametrize(
    ("undo", "said"),
    [
        (NothingToUndo(why="it stays dead"), "it stays dead"),
        (KeptOriginal(path="a", copy="b"), "the original of a is kept at b"),
        (ContinueProcesses(processes=()), "SIGCONT to 0 processes"),
        (KillProcesses(processes=()), "SIGKILL to 0 processes"),
    ],
)
def test_an_undo_says_what_was_done_and_can_be_done_again(tmp_path: Path, undo: Undo, said: str):
    journal = UndoJournal(tmp_path / "undo.jsonl")
    journal.owe("x", undo)
    (entry,) = journal.owed()

    assert entry.undo == undo
    assert [perform(undo), perform(undo)] == [said, said]


def test_two_pauses_of_one_process_put_back_the_same_thing(other: subprocess.Popen[bytes]):
    one, both = (ContinueProcesses(processes=identify(pids)) for pids in ([other.pid], [os.getpid(), other.pid]))

    assert restored_by(one) & restored_by(both) == {f"process {other.pid}"}
    assert not restored_by(one) & restored_by(ContinueProcesses(processes=identify([os.getpid()])))
    assert not restored_by(NothingToUndo(why="it is over"))


def test_a_process_is_killed_once_and_its_undo_can_be_done_again(other: subprocess.Popen[bytes]):
    undo = KillProcesses(processes=identify([other.pid]))

    assert perform(undo) == "SIGKILL to 1 processes"
    assert other.wait() == -signal.SIGKILL
    assert perform(undo) == "SIGKILL to 0 processes"
    assert identify([other.pid]) == ()
