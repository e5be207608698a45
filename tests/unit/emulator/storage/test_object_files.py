"""Files below one directory, whatever jobs have left there."""

import os
import shutil

import pytest

from harness.emulator.failures import ApiError
from harness.emulator.storage.object_files import ObjectFiles


@pytest.fixture
def files(tmp_path):
    (tmp_path / "objects").mkdir()
    return ObjectFiles(tmp_path / "objects")


def place(files, name, content="x"):
    staged = files.root.parent / "staged"
    staged.write_text(content)
    return files.place(staged, name)


def read(files, name):
    descriptor = files.open(name)
    if descriptor is None:
        return None
    try:
        return os.pread(descriptor, 100, 0).decode()
    finally:
        os.close(descriptor)


def test_only_regular_files_with_names_of_objects_are_listed(files):
    place(files, "a/b")
    os.mkfifo(files.root / "pipe")
    (files.root / "loop").symlink_to("loop")
    (files.root / "up").symlink_to("..")
    (files.root / "to-a-file").symlink_to("a/b")
    (files.root / "empty").mkdir()
    os.close(os.open(os.fsencode(files.root) + b"/\xff", os.O_CREAT | os.O_WRONLY))
    (files.root / "line\nbreak").touch()

    assert sorted(files.names()) == ["a/", "a/b", "empty/"]
    assert [read(files, name) for name in ("pipe", "loop", "up/objects/a/b", "to-a-file", "empty", "a")] == [None] * 6


@pytest.mark.parametrize(
    ("prefix", "found"), [("a/", ["a/", "a/b"]), ("a/b/c", []), ("../", []), ("a", ["a/", "a/b", "c"]), ("/", []), ("nowhere/x", [])]
)
def test_only_the_directory_of_the_prefix_is_walked(files, prefix, found):
    place(files, "a/b")
    place(files, "c")

    assert sorted(files.names(prefix)) == found


def test_what_is_opened_stays_when_it_is_replaced(files):
    place(files, "a", "old")
    descriptor = files.open("a")
    place(files, "a", "new")

    assert os.pread(descriptor, 9, 0) == b"old"
    os.close(descriptor)
    assert read(files, "a") == "new"


def test_a_directory_yields_to_an_object_only_when_it_is_empty(files):
    (files.root / "a").mkdir()
    place(files, "a")
    (files.root / "b/c").mkdir(parents=True)

    assert read(files, "a") == "x"
    with pytest.raises(ApiError, match="directory already"):
        place(files, "b")


def test_the_root_of_a_mount_stays_though_a_job_removes_it(files):
    shutil.rmtree(files.root)

    assert list(files.names()) == []
    place(files, "a")
    assert read(files, "a") == "x"


def test_removing_what_is_not_there_is_no_error(files):
    files.remove("a")
    files.remove("a/b/c")
    place(files, "a")
    files.remove("a/b")
    files.remove("a")

    assert list(files.names()) == []
