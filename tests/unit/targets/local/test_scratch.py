"""Scratch directories are short, found by their run, and gone with it."""

import os
import tempfile

import pytest

from harness.targets.local.scratch import (
    PATH_BYTES_MAX,
    SHORT_ROOT,
    find_scratch_directories,
    make_scratch_directory,
    remove_scratch_directories,
)


@pytest.fixture
def temporary_root(monkeypatch):
    def use(path):
        path.mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(path))
        return path

    return use


def test_a_run_s_directories_are_found_and_removed_and_nobody_else_s():
    mine = [make_scratch_directory("run-a"), make_scratch_directory("run-a")]
    other = make_scratch_directory("run-b")

    assert find_scratch_directories("run-a") == sorted(mine)
    remove_scratch_directories("run-a")
    assert find_scratch_directories("run-a") == []
    assert find_scratch_directories("run-b") == [other]
    remove_scratch_directories("run-b")


def test_a_long_temporary_directory_is_left_for_a_short_one(temporary_root, tmp_path):
    temporary_root(tmp_path / ("long" * 10))
    path = make_scratch_directory("run-c")

    assert path.parent == SHORT_ROOT
    assert len(os.fsencode(path)) <= PATH_BYTES_MAX
    remove_scratch_directories("run-c")
    assert not path.exists()
