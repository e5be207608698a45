"""Verdicts outlive the process that made them; what is no verdict is made again."""

from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.explore.schedules.cases import Trial
from harness.explore.schedules.memory import VerdictMemory
from harness.scenario.triggers import AtMarker
from harness.verdict import Outcome

BROKEN = Trial(outcome=Outcome.INVALID, signature=("completes",), run="runs/1", markers={"1-kill": AtMarker(event="boot")})
RIGHT = Trial(outcome=Outcome.VALID, run="runs/2")
UNKNOWN = Trial(outcome=Outcome.UNKNOWN, run="runs/3")


@pytest.mark.parametrize("trial", [BROKEN, RIGHT])
def test_a_verdict_is_remembered_here_and_in_the_next_process(tmp_path: Path, trial: Trial):
    memory = VerdictMemory(tmp_path / "verdicts")
    memory.keep("a", trial)

    assert memory.find("a") == VerdictMemory(tmp_path / "verdicts").find("a") == trial
    assert memory.find("b") is None


def test_without_a_directory_it_is_remembered_in_this_process(tmp_path: Path):
    memory = VerdictMemory()
    memory.keep("a", RIGHT)
    assert memory.find("a") == RIGHT
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_verdict_is_remembered_in_this_process_alone(tmp_path: Path):
    memory = VerdictMemory(tmp_path)
    memory.keep("a", UNKNOWN)
    assert memory.find("a") == UNKNOWN
    assert VerdictMemory(tmp_path).find("a") is None
    assert list(tmp_path.iterdir()) == []


def test_a_verdict_that_another_process_has_found_outweighs_an_unknown_one(tmp_path: Path):
    memory = VerdictMemory(tmp_path)
    memory.keep("a", UNKNOWN)
    VerdictMemory(tmp_path).keep("a", RIGHT)
    assert memory.find("a") == RIGHT
    memory.keep("a", UNKNOWN)
    assert memory.find("a") == RIGHT


def test_what_has_failed_once_has_failed(tmp_path: Path):
    memory = VerdictMemory(tmp_path)
    memory.keep("a", RIGHT)
    memory.keep("a", BROKEN)
    memory.keep("a", RIGHT)
    assert memory.find("a") == BROKEN
    VerdictMemory(tmp_path).keep("a", RIGHT)
    assert VerdictMemory(tmp_path).find("a") == BROKEN


@pytest.mark.parametrize("data", [b"", b"{", b'{"outcome": "fine"}', b"\xff"])
def test_a_note_that_cannot_be_read_is_none(tmp_path: Path, data: bytes):
    (tmp_path / "a.json").write_bytes(data)
    assert VerdictMemory(tmp_path).find("a") is None


def test_what_is_forgotten_is_forgotten_for_good(tmp_path: Path):
    memory = VerdictMemory(tmp_path)
    memory.keep("a", RIGHT)
    memory.forget("a")
    memory.forget("b")
    assert memory.find("a") is None
    assert VerdictMemory(tmp_path).find("a") is None


def test_a_note_that_cannot_be_written_is_told_and_remembered_all_the_same(tmp_path: Path):
    (tmp_path / "file").write_text("")
    memory = VerdictMemory(tmp_path / "file")
    with pytest.raises(StoreError, match="cannot create"):
        memory.keep("a", RIGHT)
    assert memory.find("a") == RIGHT
