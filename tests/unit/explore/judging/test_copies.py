"""What is on disk is told as the pieces of a state."""

import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from harness.explore.judging.copies import copy_tree, describe, digest_of_file, remove_tree
from harness.explore.operations import real_path
from harness.explore.pieces import state_name
from harness.explore.recipe import Piece

CONTENT = b"weights"
SHA = hashlib.sha256(CONTENT).hexdigest()
PIECES = (
    Piece(path="latest", kind="link", content="step_4"),
    Piece(path="step_4", kind="directory"),
    Piece(path="step_4/data", kind="file", content=SHA),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    directory = tmp_path / "tree"
    (directory / "step_4").mkdir(parents=True)
    (directory / "step_4" / "data").write_bytes(CONTENT)
    (directory / "latest").symlink_to("step_4")
    return directory


def test_what_is_described_is_what_is_there(tree: Path) -> None:
    assert describe(tree) == PIECES


def test_a_copy_of_a_copy_leaves_out_what_has_no_content(tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tree / "pipe")
    copy_tree(tree, tmp_path / "again")

    assert describe(tmp_path / "again") == PIECES
    assert Piece(path="pipe", kind="file", content="unreadable") in describe(tree)


def test_a_closed_directory_is_removed_too(tree: Path) -> None:
    (tree / "step_4").chmod(0)
    remove_tree(tree)
    remove_tree(tree)

    assert not tree.exists()


def test_a_result_that_is_no_file_is_none(tmp_path: Path, tree: Path) -> None:
    assert digest_of_file(tree / "step_4" / "data") == SHA
    assert digest_of_file(tmp_path) == ""
    assert digest_of_file(tmp_path / "missing") == ""


def test_names_that_are_no_text_are_told_as_the_log_tells_them(tree: Path) -> None:
    name = b"step_4/\xff"
    Path(os.fsdecode(bytes(tree) + b"/" + name)).touch()
    pieces = describe(tree)

    assert name in [real_path(piece.path) for piece in pieces]
    assert msgspec.json.encode(pieces)
    assert state_name(pieces) != state_name(PIECES)
