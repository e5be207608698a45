"""The recorder in front of real programs: what it logs is what storage holds, in the order in which storage got it."""

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.explore.recording import SCRIPT, record, recorder_available
from tests.integration.random_program import fare, random_program
from tests.integration.recorded import PATIENCE_S, PREAMBLE, Recorded, Stage, number, tree_of

ORBAX_PATIENCE_S = 240.0
"""Importing JAX takes most of it on a busy machine."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_this_machine_can_record() -> None:
    assert recorder_available() == ""


# ---- each family of calls ----------------------------------------------------------------------------------------------------


def test_a_file_is_made_written_synced_closed_and_renamed_in_this_order(stage: Stage) -> None:
    recorded = stage.run("""
os.mkdir("step")
with open("step/data.tmp", "wb") as file:
    file.write(b"content")
    file.flush()
    os.fsync(file.fileno())
os.rename("step/data.tmp", "step/data")
os.fsync(os.open("step", os.O_RDONLY))
os.fsync(os.open(".", os.O_RDONLY))
os.unlink("step/data")
os.rmdir("step")
""")

    assert [line["kind"] for line in recorded.lines[1:]] == [
        "mkdir", "create", "write", "sync", "close", "rename", "sync", "sync", "unlink", "rmdir", "end",
    ]  # fmt: skip
    directory, file = recorded.of("mkdir")[0]["node"], recorded.of("create")[0]["node"]
    assert [line["node"] for line in recorded.of("sync")] == [file, directory, 0]
    assert [(line["path"], line["to"], line["node"]) for line in recorded.of("rename")] == [("step/data.tmp", "step/data", file)]


@pytest.mark.parametrize(
    ("act", "kinds"),
    [
        ("os.close(os.open('new', os.O_CREAT | os.O_WRONLY))", ["create"]),
        ("os.close(os.open('new', os.O_CREAT | os.O_RDONLY))", ["create"]),
        ("os.close(os.open('old', os.O_WRONLY))", ["open"]),
        ("os.close(os.open('old', os.O_CREAT | os.O_RDONLY))", []),
        ("os.close(os.open('old', os.O_RDONLY | os.O_TRUNC))", ["truncate"]),
        ("os.close(os.open('old', os.O_RDWR | os.O_TRUNC))", ["open"]),
        ("os.close(os.open(outside + '/link', os.O_WRONLY | os.O_TRUNC))", ["open"]),
        ("os.close(os.open(outside + '/dangling', os.O_CREAT | os.O_WRONLY))", ["create"]),
        ("os.close(os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=os.open(root, os.O_RDONLY)))", ["create"]),
        ("os.close(os.open(outside + '/hard', os.O_WRONLY | os.O_TRUNC))", ["open"]),
        ("os.close(os.open('/proc/self/fd/%d' % os.open('old', os.O_RDONLY), os.O_WRONLY | os.O_TRUNC))", ["open"]),
        ("os.close(call(437, -100, b'new', address((ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o640)), 24))", ["create"]),
        ("os.close(call(437, -100, b'new', address((ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o640, 8)), 24))", ["create"]),
        ("os.truncate('old', 1)", ["truncate"]),
        ("os.truncate('old', 9)", ["truncate"]),
        ("os.truncate(outside + '/link', 1)", ["truncate"]),
        ("os.mknod('new')", ["create"]),
        ("os.mkdir('new/')", ["mkdir"]),
        ("os.mkdir('new', dir_fd=os.open(root, os.O_RDONLY))", ["mkdir"]),
        ("os.symlink('anywhere', 'new')", ["symlink"]),
        ("os.link('old', 'new')", ["link"]),
        ("os.link('old', outside + '/new')", []),
        ("os.link(outside + '/other', 'new')", ["move-in"]),
        ("os.link(outside + '/hard', 'new')", ["link"]),
        ("os.unlink('old')", ["unlink"]),
        ("os.unlink(outside + '/hard')", []),
        ("os.rename('old', 'kept')", ["rename"]),
        ("os.rename('old', 'old')", []),
        ("(os.link('old', 'new'), os.rename('old', 'new'))", ["link"]),
        ("os.rename('directory', 'moved')", ["rename"]),
        ("os.rename('old', outside + '/new')", ["move-out"]),
        ("os.rename('directory', outside + '/new')", ["move-out"]),
        ("os.rename(outside + '/other', 'new')", ["move-in"]),
        ("os.rename(outside + '/other', 'old')", ["move-in"]),
        ("os.rename(outside + '/tree', 'new')", ["move-in"]),
        ("(os.rename(outside + '/tree', 'new'), make('new/in/it', b'other'))", ["move-in", "open", "write"]),
        (f"call({number('renameat2')}, -100, b'old', -100, b'kept', 2)", ["rename"]),
        (f"call({number('renameat2')}, -100, b'directory', -100, b'kept', 2)", ["rename"]),
        (f"call({number('renameat2')}, -100, b'old', -100, b'new', 1)", ["rename"]),
        (f"fails('EEXIST', call, {number('renameat2')}, -100, b'old', -100, b'kept', 1)", []),
        (f"call({number('renameat2')}, -100, b'directory', -100, (outside + '/other').encode(), 2)", ["move-out", "move-in"]),
        ("fails('EEXIST', os.mkdir, 'directory')", []),
        ("fails('ENOENT', os.mkdir, 'no/directory')", []),
        ("fails('ENOTDIR', os.mkdir, 'old/directory')", []),
        ("fails('ENOENT', os.open, 'no', os.O_WRONLY)", []),
        ("fails('EEXIST', os.open, 'old', os.O_WRONLY | os.O_CREAT | os.O_EXCL)", []),
        ("fails('ELOOP', os.open, outside + '/link', os.O_WRONLY | os.O_NOFOLLOW)", []),
        ("fails('ELOOP', os.open, 'circle', os.O_WRONLY | os.O_CREAT)", []),
        ("fails('EISDIR', os.open, 'directory', os.O_WRONLY)", []),
        ("fails('EEXIST', os.open, outside + '/dangling', os.O_WRONLY | os.O_CREAT | os.O_EXCL)", []),
        ("(os.symlink('none', 'new'), fails('EEXIST', os.open, 'new', os.O_WRONLY | os.O_CREAT | os.O_EXCL))", ["symlink"]),
        ("(os.symlink('none', 'new'), fails('ELOOP', os.open, 'new', os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW))", ["symlink"]),
        ("(os.symlink('directory/sub', 'new'), fails('ENOTDIR', os.rmdir, 'new/'))", ["symlink"]),
        ("(os.symlink('directory/sub', 'new'), fails('ENOTDIR', os.rename, 'new/', 'newer'))", ["symlink"]),
        ("(os.symlink('none', 'new'), fails('EEXIST', os.mkdir, 'new/'))", ["symlink"]),
        ("fails('ENOTDIR', os.unlink, 'old/')", []),
        ("os.rename('directory/', 'moved/')", ["rename"]),
        ("os.rmdir('directory/sub/')", ["rmdir"]),
        ("fails('EINVAL', os.rmdir, 'directory/sub/.')", []),
        ("fails('ENOTEMPTY', os.rmdir, 'directory/sub/..')", []),
        ("fails('EBUSY', os.rename, 'directory/sub/..', 'new')", []),
        ("os.mkdir('directory/../new')", ["mkdir"]),
        ("os.mkdir('./new')", ["mkdir"]),
        ("os.close(os.open('directory/sub/../../new', os.O_CREAT | os.O_WRONLY))", ["create"]),
        ("fails('ENOTEMPTY', os.rmdir, 'directory')", []),
        ("fails('EISDIR', os.unlink, 'directory')", []),
        ("fails('ENOTDIR', os.rmdir, 'old')", []),
        ("fails('ENOENT', os.unlink, 'no')", []),
        ("fails('EINVAL', os.rename, 'directory', 'directory/in')", []),
        ("fails('ENAMETOOLONG', os.mkdir, 'n' * 300)", []),
        ("fails('ENAMETOOLONG', os.mkdir, 'n/' * 3000)", []),
        ("fails('EBADF', os.write, os.open('old', os.O_RDONLY), b'x')", []),
        ("fails('EINVAL', os.truncate, 'old', -1)", []),
        ("fails('EFAULT', call, 1, os.open('old', os.O_WRONLY), 8, 5)", ["open"]),
    ],
)
def test_a_call_is_done_once_and_logged_if_it_changed_something(stage: Stage, act: str, kinds: list[str]) -> None:
    for name in ("old", "kept"):
        (stage.root / name).write_text(f"{name} content")
    (stage.root / "directory" / "sub").mkdir(parents=True)
    (stage.root / "directory" / "file").write_text("in a directory")
    (stage.root / "circle").symlink_to("circle")
    (stage.outside / "tree" / "in").mkdir(parents=True)
    (stage.outside / "tree" / "in" / "it").write_text("from outside")
    (stage.outside / "other").write_text("other content")
    (stage.outside / "link").symlink_to(stage.root / "old")
    (stage.outside / "dangling").symlink_to(stage.root / "new")
    (stage.outside / "hard").hardlink_to(stage.root / "old")
    recorded = stage.run(act)

    assert recorded.kinds() == kinds


def test_modes_follow_the_umask_of_the_caller_not_ours(stage: Stage) -> None:
    stage.run("""
os.umask(0o077)
make("private")
os.mkdir("closed")
os.umask(0)
os.close(os.open("open", os.O_CREAT | os.O_WRONLY, 0o666))
os.close(os.open("exact", os.O_CREAT | os.O_WRONLY, 0o640))
""")

    modes = {path.name: path.stat().st_mode & 0o777 for path in stage.root.iterdir()}
    assert modes == {"private": 0o600, "closed": 0o700, "open": 0o666, "exact": 0o640}


def test_a_descriptor_is_inherited_by_other_programs_as_it_was_asked_for(stage: Stage) -> None:
    stage.run("""
kept = call(2, b"kept", os.O_CREAT | os.O_WRONLY, 0o644) if os.uname().machine == "x86_64" else os.open("kept", os.O_CREAT | os.O_WRONLY)
os.set_inheritable(kept, True) if os.uname().machine != "x86_64" else None
closed = os.open("closed", os.O_CREAT | os.O_WRONLY)
assert fcntl.fcntl(kept, fcntl.F_GETFD) == 0 and fcntl.fcntl(closed, fcntl.F_GETFD) == fcntl.FD_CLOEXEC
appended = os.open("kept", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
assert fcntl.fcntl(appended, fcntl.F_GETFL) & (os.O_APPEND | os.O_NONBLOCK | os.O_ACCMODE) == os.O_APPEND | os.O_NONBLOCK | os.O_WRONLY
assert appended == closed + 1
""")


def test_every_way_to_write_is_logged_where_it_went(stage: Stage) -> None:
    recorded = stage.run(f"""
file = os.open("f", os.O_CREAT | os.O_RDWR)
assert os.write(file, b"0123456789") == 10
assert os.pwrite(file, b"AB", 2) == 2
os.lseek(file, 4, os.SEEK_SET)
assert os.writev(file, [b"C", b"", b"DE"]) == 3
assert os.lseek(file, 0, os.SEEK_CUR) == 7
assert os.pwritev(file, [b"F", b"G"], 20) == 2
assert os.lseek(file, 0, os.SEEK_CUR) == 7
vector = (ctypes.c_uint64 * 2)(address(ctypes.create_string_buffer(b"H", 1)), 1)
assert call({number("pwritev2")}, file, address(vector), 1, -1, 0, 0) == 1
assert call({number("pwritev2")}, file, address(vector), 1, 0, 0, 0x10) == 1
assert os.write(file, b"") == 0
os.ftruncate(file, 21)
os.ftruncate(file, 30)
os.posix_fallocate(file, 0, 40)
call({number("fallocate")}, file, 1, 0, 8192)
assert content("f") == b"01ABCDEH89" + bytes(10) + b"F" + bytes(19)
""")

    assert [(line["offset"], line["call"], recorded.bytes_of(line["data"])) for line in recorded.of("write")] == [
        (0, "write", b"0123456789"),
        (2, "pwrite64", b"AB"),
        (4, "writev", b"CDE"),
        (20, "pwritev2" if recorded.of("write")[3]["call"] == "pwritev2" else "pwritev", b"FG"),
        (7, "pwritev2", b"H"),
        (22, "pwritev2", b"H"),
    ]
    assert [line["size"] for line in recorded.of("truncate")] == [21, 30, 40]


def test_a_large_write_and_a_long_vector_are_one_operation_each(stage: Stage) -> None:
    recorded = stage.run("""
file = os.open("f", os.O_CREAT | os.O_RDWR)
blob = os.urandom(5 * 1024 * 1024 + 17)
assert os.write(file, blob) == len(blob)
pieces = [os.urandom(n % 4000) for n in range(1024)]
assert os.writev(file, pieces) == sum(map(len, pieces))
assert content("f") == blob + b"".join(pieces)
""")

    assert [line["data"][1] for line in recorded.of("write")] == [5 * 1024 * 1024 + 17, sum(n % 4000 for n in range(1024))]


def test_direct_input_output_gets_the_alignment_it_asks_for(stage: Stage) -> None:
    stage.run("""
file = os.open("f", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
buffer = mmap.mmap(-1, 4096)
buffer[:4] = b"data"
assert os.write(file, buffer) == 4096
""")


def test_copies_inside_of_the_kernel_are_logged_with_what_they_stored(stage: Stage) -> None:
    (stage.outside / "source").write_bytes(b"the source of it all")
    recorded = stage.run(f"""
source, target = os.open(outside + "/source", os.O_RDONLY), os.open("f", os.O_CREAT | os.O_WRONLY)
assert os.sendfile(target, source, 4, 6) == 6
assert os.lseek(source, 0, os.SEEK_CUR) == 0
assert os.sendfile(target, source, None, 3) == 3
assert os.lseek(source, 0, os.SEEK_CUR) == 3
assert os.copy_file_range(source, target, 4, 0, 20) == 4
assert os.lseek(target, 0, os.SEEK_CUR) == 9
assert os.copy_file_range(source, target, 100) == 17
reading, writing = os.pipe()
os.write(writing, b"through a pipe")
assert os.splice(reading, target, 7, offset_dst=30) == 7
assert os.splice(reading, target, 100) == 7
offsets = (ctypes.c_int64 * 2)(0, 40)
assert call({number("copy_file_range")}, source, address(offsets), target, address(offsets) + 8, 5, 0) == 5
assert list(offsets) == [5, 45]
assert os.sendfile(target, source, 1000, 10) == 0
""")

    assert [(line["call"], line["offset"], recorded.bytes_of(line["data"])) for line in recorded.of("write")] == [
        ("sendfile", 0, b"source"),
        ("sendfile", 6, b"the"),
        ("copy_file_range", 20, b"the "),
        ("copy_file_range", 9, b" source of it all"),
        ("splice", 30, b"through"),
        ("splice", 26, b" a pipe"),
        ("copy_file_range", 40, b"the s"),
    ]


def test_a_splice_that_waits_for_a_pipe_does_not_hold_the_one_who_fills_it(stage: Stage) -> None:
    recorded = stage.run("""
reading, writing = os.pipe()
target = os.open("f", os.O_CREAT | os.O_WRONLY)
moved = []
thread = threading.Thread(target=lambda: moved.append(os.splice(reading, target, 100)))
thread.start()
make("meanwhile")
os.write(writing, b"late")
thread.join()
assert moved == [4]
""")

    assert recorded.tree() == {b"f": b"late", b"meanwhile": b"x"}


def test_an_open_that_waits_for_the_other_end_of_a_pipe_holds_nobody_else(stage: Stage) -> None:
    recorded = stage.run_blindly("""
os.mkfifo("pipe")
opened = []
thread = threading.Thread(target=lambda: opened.append(os.open("pipe", os.O_WRONLY)))
thread.start()
for _ in range(20):
    time.sleep(0.01)
    make("meanwhile")
assert not opened
os.open("pipe", os.O_RDONLY)
thread.join()
""")

    assert recorded.blind == [("call", "pipe")]
    assert recorded.tree() == {b"meanwhile": b"x"}


def test_what_was_synced_is_said_with_its_scope(stage: Stage) -> None:
    recorded = stage.run(f"""
file = os.open("f", os.O_CREAT | os.O_WRONLY)
os.fdatasync(file)
os.fsync(file)
call({number("syncfs")}, file)
os.sync()
at_once = os.open("g", os.O_CREAT | os.O_WRONLY | os.O_SYNC)
os.write(at_once, b"x")
data_at_once = os.open("h", os.O_CREAT | os.O_WRONLY | os.O_DSYNC)
os.write(data_at_once, b"x")
""")

    f, g, h = (line["node"] for line in recorded.of("create"))
    assert [(line["node"], line.get("scope", "file")) for line in recorded.of("sync")] == [
        (f, "data"), (f, "file"), (0, "all"), (0, "all"), (g, "file"), (h, "data"),
    ]  # fmt: skip


def test_a_file_without_a_name_gets_one_when_it_is_whole(stage: Stage) -> None:
    recorded = stage.run("""
file = os.open(".", os.O_TMPFILE | os.O_RDWR)
os.write(file, b"whole")
os.fsync(file)
os.link(f"/proc/self/fd/{file}", "f", src_dir_fd=file, follow_symlinks=True)  # a directory makes Python call linkat
os.write(file, b", and more")
""")

    assert recorded.kinds() == ["create", "write", "sync", "link", "write"]
    assert recorded.of("create")[0]["path"] == ""
    assert recorded.tree() == {b"f": b"whole, and more"}
    assert recorded.tree(until=3) == {}


def test_an_opening_for_writing_says_whether_it_can_read_too(stage: Stage) -> None:
    recorded = stage.run("""
os.close(os.open("f", os.O_CREAT | os.O_RDWR))
os.close(os.open("g", os.O_CREAT | os.O_WRONLY))
os.close(os.open("f", os.O_WRONLY | os.O_TRUNC))
os.close(os.open("g", os.O_RDWR))
""")

    opened = [line for line in recorded.lines if line.get("kind") in ("create", "open")]
    assert [(line["path"], line.get("reads", False)) for line in opened] == [("f", True), ("g", False), ("f", False), ("g", True)]


# ---- handles -----------------------------------------------------------------------------------------------------------------


def test_a_handle_is_closed_when_its_process_has_it_no_longer(stage: Stage) -> None:
    recorded = stage.run("""
first = os.open("f", os.O_CREAT | os.O_WRONLY)
os.write(first, b"1")
os.close(first)
again = os.open("f", os.O_RDONLY)
assert again == first
os.mkdir("seen-closed")
second = os.open("f", os.O_WRONLY)
os.close(second)
third = os.open("f", os.O_WRONLY)
assert third == second
os.write(third, b"3")
""")

    order = [(line["kind"], line.get("handle")) for line in recorded.lines[1:]]
    assert order == [
        ("create", 1), ("write", 1), ("close", 1), ("mkdir", None), ("open", 2), ("close", 2), ("open", 3), ("write", 3), ("close", 3), ("end", None),
    ]  # fmt: skip


def test_a_descriptor_that_a_child_inherits_and_writes_through_is_a_handle_of_its_own(stage: Stage) -> None:
    recorded = stage.run("""
with open("f", "wb") as file:
    file.write(b"parent ")
    file.flush()
    subprocess.run(["sh", "-c", "printf child"], stdout=file, check=True)
    os.write(file.fileno(), b" parent")
""")

    assert recorded.kinds() == ["create", "write", "open", "write", "write"]
    assert [line["handle"] for line in recorded.of("write")] == [1, 2, 1]
    assert len({line["process"] for line in recorded.of("write")}) == 2
    assert recorded.tree() == {b"f": b"parent child parent"}


def test_nodes_are_not_mistaken_when_the_file_system_uses_an_inode_again(stage: Stage) -> None:
    recorded = stage.run("""
for n in range(30):
    make("f", str(n).encode())
    os.unlink("f")
    make(outside + "/g", b"not ours")
    os.unlink(outside + "/g")
make("f", b"last")
""")

    assert len({line["node"] for line in recorded.of("create")}) == 31
    assert recorded.tree() == {b"f": b"last"}


def test_writes_to_a_file_that_has_no_name_any_more_are_not_lost_and_not_shown(stage: Stage) -> None:
    recorded = stage.run("""
file = os.open("f", os.O_CREAT | os.O_WRONLY)
os.unlink("f")
os.write(file, b"nobody sees it")
os.write(os.dup(file), b"twice")
""")

    assert recorded.kinds() == ["create", "unlink", "write", "open", "write"]
    assert recorded.of("open")[0]["path"] == "f"


def test_what_is_written_to_a_file_while_it_is_outside_comes_in_with_it(stage: Stage) -> None:
    recorded = stage.run("""
file = os.open("f", os.O_CREAT | os.O_WRONLY)
os.write(file, b"in")
os.rename("f", outside + "/f")
os.write(file, b", out")
os.rename(outside + "/f", "g")
os.write(file, b", in again")
""")

    assert recorded.kinds() == ["create", "write", "move-out", "move-in", "open", "write"]
    assert recorded.tree() == {b"g": b"in, out, in again"}
    assert [recorded.bytes_of(line["data"]) for line in recorded.of("write")] == [b"in", b", in again"]


@pytest.mark.parametrize(
    ("act", "is_unsynced"),
    [
        ("os.write(file, b'x')", True),
        ("os.write(file, b'x'); os.fsync(file)", False),
        ("os.write(file, b'x'); os.fsync(file); os.pwrite(file, b'y', 0)", True),
        ("os.write(file, b'x'); os.sync()", False),
        ("os.write(os.open(outside + '/f', os.O_WRONLY | os.O_DSYNC), b'x')", False),
        ("os.sendfile(file, os.open('/etc/passwd', os.O_RDONLY), 0, 10)", True),
        ("os.truncate(file, 5); os.fdatasync(file)", False),
    ],
)
def test_of_a_file_that_comes_from_outside_it_is_said_whether_it_was_synced_there(stage: Stage, act: str, is_unsynced: bool) -> None:
    recorded = stage.run(f"""
file = os.open(outside + "/f", os.O_CREAT | os.O_WRONLY)
{act}
os.rename(outside + "/f", "g")
""")

    assert [item.get("unsynced", False) for line in recorded.of("move-in") for item in line["items"]] == [is_unsynced]
    assert recorded.blind == []


def test_a_file_that_nobody_wrote_since_recording_began_counts_as_synced_and_one_that_was_away_does_not(stage: Stage) -> None:
    (stage.outside / "old").write_bytes(b"1")

    recorded = stage.run("""
os.rename(outside + "/old", "old")
os.rename("old", outside + "/old")
os.rename(outside + "/old", "again")
""")

    assert [item.get("unsynced", False) for line in recorded.of("move-in") for item in line["items"]] == [False, True]


def test_a_file_that_is_mapped_outside_and_comes_in_is_said(stage: Stage) -> None:
    recorded = stage.run_blindly("""
import mmap
file = os.open(outside + "/f", os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 4096)
memory = mmap.mmap(file, 4096)
memory[0] = 1
os.fsync(file)
os.rename(outside + "/f", "g")
""")

    assert recorded.blind == [("mapped", "g")]


# ---- many at once --------------------------------------------------------------------------------------------------------------


def test_threads_that_write_at_once_are_serialised_and_their_bytes_are_their_own(stage: Stage) -> None:
    recorded = stage.run("""
shared = os.open("shared", os.O_CREAT | os.O_WRONLY)
def work(n):
    os.mkdir(f"d{n}")
    for k in range(20):
        make(f"d{n}/{k}.tmp", bytes([n]) * 1000 * k)
        os.rename(f"d{n}/{k}.tmp", f"d{n}/{k}")
        os.write(shared, bytes([n]) * 10)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""")

    assert len({line["thread"] for line in recorded.of("mkdir")}) == 8
    assert len({line["process"] for line in recorded.of("mkdir")}) == 1
    assert len(recorded.tree()[b"shared"]) == 8 * 20 * 10


def test_two_processes_append_to_one_file_and_no_byte_is_misplaced(stage: Stage) -> None:
    recorded = stage.run("""
code = "import os, sys\\nfile = os.open('f', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\\nfor n in range(50): os.write(file, sys.argv[1].encode() * (n + 1))"
children = [subprocess.Popen([sys.executable, "-c", code, letter]) for letter in "ab"]
assert [child.wait() for child in children] == [0, 0]
""")

    assert len(recorded.of("write")) == 100
    assert len(recorded.tree()[b"f"]) == 2 * sum(range(1, 51))


def test_children_and_their_children_in_another_language_are_recorded(stage: Stage) -> None:
    (stage.outside / "source").write_text("copied")
    process = stage.start(
        ("sh", "-c", f"cd {stage.root}; mkdir a; (echo one > a/f; cp {stage.outside}/source a/g); mv a b; rm b/f; echo done")
    )
    output, errors = process.communicate(timeout=PATIENCE_S)

    assert (output, errors) == ("done\n", "")
    recorded = Recorded(stage.log)
    assert (recorded.blind, recorded.tree()) == ([], {b"b": None, b"b/g": b"copied"})
    assert recorded.tree() == tree_of(stage.root)


def test_a_storm_of_renames_leaves_every_name_where_it_is(stage: Stage) -> None:
    stage.run(f"""
for n in range(6): make(f"f{{n}}", str(n).encode())
for n in range(4): os.makedirs(f"d{{n}}/e")
def storm(seed):
    state = seed
    for _ in range(80):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        a, b = f"{{'df'[state >> 8 & 1]}}{{state >> 12 & 3}}", f"{{'df'[state >> 16 & 1]}}{{state >> 20 & 3}}"
        try:
            if state & 0x1000000:
                call({number("renameat2")}, -100, a.encode(), -100, b.encode(), 2)
            elif state & 0x2000000:
                os.rename(a, b + "/in")
            else:
                os.rename(a, b)
        except OSError:
            pass
threads = [threading.Thread(target=storm, args=(n,)) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""")


def test_log_order_is_storage_order_at_every_entry(stage: Stage) -> None:
    """The job looks at the directory itself between its operations and says what it saw."""
    recorded = stage.run("""
import json
events = os.open(os.environ["HARNESS_EVENTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for n in range(10):
    make(f"f{n}", b"." * n)
    if n % 3 == 0:
        os.rename(f"f{n}", f"g{n}")
    os.write(events, json.dumps({name: os.path.getsize(name) for name in os.listdir(".")}).encode() + b"\\n")
""")

    for line in recorded.of("event"):
        seen = {name.encode(): size for name, size in json.loads(line["line"]).items()}
        assert {name: len(data) for name, data in recorded.tree(until=line["index"]).items()} == seen


@pytest.mark.parametrize("seed", range(8))
def test_a_random_program_fares_as_without_the_recorder_and_its_log_makes_the_real_directory(stage: Stage, seed: int) -> None:
    fared = fare(stage, seed)

    assert fared.results == fared.bare_results
    assert fared.tree == fared.bare_tree
    assert len(fared.recorded.kinds()) > 150
    assert sum(isinstance(result, str) for result in fared.results) > 100


def test_random_programs_that_run_at_once_leave_what_their_log_says(stage: Stage) -> None:
    """Nothing comes in from outside here: what one process still writes there while another one brings it in is nobody's to order."""
    code = PREAMBLE + random_program().replace("elif choice == 17:", "elif choice == 17 and False:")
    recorded = stage.run(f"""
children = [subprocess.Popen([sys.executable, "-c", {code!r}, root, outside, str(seed)]) for seed in range(4)]
assert [child.wait() for child in children] == [0] * 4
""")

    assert len({line["process"] for line in recorded.of("create")}) == 4
    assert len(recorded.kinds()) > 400


# ---- what was there, odd names ---------------------------------------------------------------------------------------------------


def test_what_was_there_before_is_in_the_header_with_its_data(stage: Stage) -> None:
    (stage.root / "directory").mkdir()
    (stage.root / "directory" / "file").write_bytes(b"initial")
    (stage.root / "link").symlink_to("directory/file")
    (stage.root / "twice").hardlink_to(stage.root / "directory" / "file")
    recorded = stage.run('os.pwrite(os.open("twice", os.O_WRONLY), b"I", 0)')

    items = {item["path"]: item for item in recorded.lines[0]["initial"]}
    assert set(items) == {"directory", "directory/file", "link"}
    assert recorded.bytes_of(items["directory/file"]["data"]) == b"initial"
    assert items["link"]["target"] == "directory/file"
    assert recorded.kinds() == ["link", "open", "write"]


def test_names_that_are_no_utf_8_come_back_as_they_are(stage: Stage) -> None:
    name = b"caf\xe9\xff"
    recorded = stage.run(f"os.mkdir({name!r}); make({name!r} + b'/\\xc3\\xa9'); os.symlink({name!r}, b'link')")

    assert set(recorded.tree()) == {name, name + b"/\xc3\xa9", b"link"}


# ---- what the job says -------------------------------------------------------------------------------------------------------------


def test_events_and_prints_stand_in_the_log_where_they_were_said(stage: Stage) -> None:
    recorded = stage.run("""
events = os.open(os.environ["HARNESS_EVENTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
make("a")
os.write(events, b'{"event": "save.begin"}\\n')
make("b")
os.write(1, b"saved\\n")
os.write(events, b'{"event": "one"}\\n{"event": "two"}\\n{"event": "half')
os.write(events, b'"}\\n')
os.dup2(1, 9)
os.write(9, b"still stdout\\n")
os.write(2, b"")
""")

    assert recorded.kinds() == ["create", "write", "event", "create", "write", "event", "event", "event"]
    assert recorded.said == ['{"event": "save.begin"}', '{"event": "one"}', '{"event": "two"}', '{"event": "half"}']
    assert recorded.printed == {"stdout": "saved\nstill stdout\n", "stderr": ""}
    assert stage.events.read_text().splitlines() == recorded.said
    said = [line["kind"] for line in recorded.lines[1:]]
    assert said.index("print") > said.index("create")


def test_a_full_pipe_holds_the_one_who_prints_and_nobody_else(stage: Stage) -> None:
    process = stage.start_python("""
thread = threading.Thread(target=lambda: os.write(1, b"x" * 1_000_000))
thread.start()
for n in range(10): make(f"f{n}")
make("done")
thread.join()
""")
    deadline_s = time.monotonic() + PATIENCE_S
    while not (stage.root / "done").exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
    output, errors = process.communicate(timeout=PATIENCE_S)

    assert (len(output), errors, process.returncode) == (1_000_000, "", 0)


# ---- limits ----------------------------------------------------------------------------------------------------------------------


def test_a_short_write_is_logged_as_short_as_it_was(stage: Stage) -> None:
    recorded = stage.run("""
signal.signal(signal.SIGXFSZ, lambda *_: seen.append("signal"))
seen = []
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
file = os.open("f", os.O_CREAT | os.O_WRONLY)
assert os.write(file, b"x" * 600) == 600
assert os.write(file, b"y" * 600) == 400
fails("EFBIG", os.write, file, b"z")
fails("EFBIG", os.ftruncate, file, 2000)
for _ in range(2): pass  # Python runs handlers between jumps
assert seen == ["signal", "signal"]
assert os.pwrite(file, b"w", 0) == 1
""")

    assert [(line["offset"], line["data"][1]) for line in recorded.of("write")] == [(0, 600), (600, 400), (0, 1)]


def test_a_limit_that_the_job_was_started_with_does_not_hit_the_log(stage: Stage) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    recorded = stage.run("""
for n in range(5): make(f"f{n}", b"x" * 3000)
fails("EFBIG", os.truncate, "f0", 5000)
""", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard)))  # fmt: skip

    assert len(recorded.of("write")) == 5


@pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")
def test_a_full_disk_is_given_back_as_it_is(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)), check=True)
    stage = Stage(tmp_path, root=small)
    try:
        recorded = stage.run("""
file = os.open("f", os.O_CREAT | os.O_WRONLY)
written = os.write(file, b"x" * 1_000_000)
assert 0 < written < 1_000_000, written
fails("ENOSPC", os.write, file, b"y" * 100_000)
os.unlink("f")
os.close(file)
make("g", b"room again")
""")
        assert recorded.tree() == {b"g": b"room again"}
    finally:
        stage.close()
        subprocess.run(("umount", str(small)), check=True)


def test_a_caller_without_room_for_a_descriptor_gets_its_error_and_the_file_is_logged(stage: Stage) -> None:
    stage.run("""
resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
held = []
try:
    while True:
        held.append(os.open(f"f{len(held)}", os.O_CREAT | os.O_WRONLY))
except OSError as error:
    assert error.errno == errno.EMFILE
assert len(held) > 5
""")


# ---- what cannot be seen --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [4096, 0])
def test_a_writable_shared_mapping_is_said(stage: Stage, length: int) -> None:
    recorded = stage.run_blindly(f"""
file = os.open("f", os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 4096)
mapping = mmap.mmap(file, {length})
mapping[:5] = b"store"
mapping.flush()
""")

    assert recorded.blind == [("mapped", "f")]


def test_mappings_that_cannot_change_a_file_are_not_said(stage: Stage) -> None:
    (stage.root / "f").write_bytes(b"x" * 4096)
    stage.run("""
private = mmap.mmap(os.open("f", os.O_RDWR), 4096, flags=mmap.MAP_PRIVATE)
private[:1] = b"y"
shared = mmap.mmap(os.open("f", os.O_RDONLY), 4096, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
anonymous = mmap.mmap(-1, 4096)
elsewhere = os.open(outside + "/f", os.O_CREAT | os.O_RDWR)
os.ftruncate(elsewhere, 4096)
mmap.mmap(elsewhere, 4096)[:1] = b"z"
""")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of io_setup")
def test_linux_aio_is_said(stage: Stage) -> None:
    recorded = stage.run_blindly(f"""
file = os.open("f", os.O_CREAT | os.O_RDWR)
context = ctypes.c_uint64(0)
call(206, 4, address(context))
data = ctypes.create_string_buffer(b"aio", 3)
request = ctypes.create_string_buffer(struct.pack("=QIIHhIQQq", 0, 0, 0, 1, 0, file, address(data), 3, 0), 64)
assert call({number("io_submit")}, context.value, 1, address((ctypes.c_uint64 * 1)(address(request)))) == 1
""")

    assert recorded.blind == [("aio", "f")]


def test_a_foreign_writer_is_found_however_it_writes(stage: Stage) -> None:
    for name in ("changed", "gone", "kept", "taken"):
        (stage.root / name).write_text(name)
    process = stage.start_python("""
make("own", b"own")
for name, offset in (("hole-behind", 0), ("hole-before", 90)):
    holed = os.open(name, os.O_CREAT | os.O_WRONLY)
    os.pwrite(holed, b"data", offset)
    os.ftruncate(holed, 100)
print("ready", flush=True)
sys.stdin.readline()
make("foreign-directory/own", b"own")
os.unlink("taken") if os.path.exists("taken") else None
""")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (stage.root / "changed").write_text("CHANGED")
    (stage.root / "gone").unlink()
    (stage.root / "new").write_text("new")
    (stage.root / "own").write_text("OWN")
    for name in ("hole-behind", "hole-before"):
        with (stage.root / name).open("r+b") as file:
            file.seek(50)
            file.write(b"x")
    (stage.root / "foreign-directory").mkdir()
    (stage.root / "taken").unlink()
    (stage.root / "taken").write_text("another")
    _, errors = process.communicate("go\n", timeout=PATIENCE_S)

    assert errors == ""
    names = ("changed", "gone", "new", "own", "foreign-directory", "taken", "hole-behind", "hole-before")
    assert set(Recorded(stage.log).blind) == {("foreign", name) for name in names}


def test_a_save_that_another_process_makes_over_a_socket_is_found(stage: Stage, tmp_path: Path) -> None:
    """The writer was not started by the job, and the job only sends it the bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(tmp_path / "door"))
        door.listen()

        def serve() -> None:
            connection, _ = door.accept()
            with connection:
                (stage.root / "saved").write_bytes(connection.recv(100))
                connection.sendall(b"done")

        server = threading.Thread(target=serve)
        server.start()
        recorded = stage.run_blindly(f"""
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({str(tmp_path / "door")!r})
    connection.sendall(b"state")
    assert connection.recv(4) == b"done"
""")
        server.join()

    assert recorded.blind == [("foreign", "saved")]


@pytest.mark.parametrize(
    ("act", "what"),
    [
        ("os.mkfifo('pipe')", ("call", "pipe")),
        (f"call({number('fallocate')}, os.open('f', os.O_RDWR), 3, 0, 4096)", ("call", "f")),
        ("(os.rmdir('directory'), os.unlink('f'), os.rmdir(root), os.mkdir(root))", ("call", ".")),
        ("(os.rename(root, outside + '/away'), os.mkdir(root))", ("call", ".")),
    ],
)
def test_what_the_log_has_no_word_for_is_said(stage: Stage, act: str, what: tuple[str, str]) -> None:
    (stage.root / "f").write_bytes(b"x" * 8192)
    (stage.root / "directory").mkdir()
    recorded = stage.run_blindly(act)

    assert recorded.blind == [what]
    assert recorded.tree() == ({} if what[1] == "." else {b"f": b"x" * 8192, b"directory": None})


def test_a_lock_is_free_as_soon_as_its_file_is_closed(stage: Stage) -> None:
    """A descriptor of the recorder would hold it."""
    stage.run("""
waiting = os.open("lock", os.O_CREAT | os.O_RDWR)
for n in range(200):
    holding = os.open("lock", os.O_RDWR)
    fcntl.flock(holding, fcntl.LOCK_EX)
    os.close(holding)
    fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(waiting, fcntl.LOCK_UN)
""")


def test_a_program_can_be_run_as_soon_as_it_has_been_written(stage: Stage) -> None:
    stage.run("""
for n in range(30):
    with open("program", "wb") as file:
        file.write(b"#!/bin/sh\\nexit 7\\n")
        os.fchmod(file.fileno(), 0o755)
    assert subprocess.run(["./program"]).returncode == 7
""")


@pytest.mark.skipif(os.getuid() != 0, reason="changing the user needs root")
@pytest.mark.parametrize("act", ["os.setresuid(65534, 65534, 65534)", "os.setresgid(65534, 65534, 65534)", "os.setgroups([65534])"])
def test_a_process_with_other_rights_is_said_and_keeps_to_them(stage: Stage, act: str) -> None:
    stage.root.chmod(0o777)
    recorded = stage.run_blindly(
        f"{act}\nos.mkdir('theirs')\nowner = os.stat('theirs')\nassert (owner.st_uid, owner.st_gid) == (os.getuid(), os.getgid())"
    )

    assert recorded.blind == [("user", ""), ("foreign", "theirs")]


def test_io_uring_is_refused_so_that_nothing_is_written_past_the_recorder(stage: Stage) -> None:
    recorded = stage.run("for _ in range(3):\n    fails('ENOSYS', call, 425, 1, address(ctypes.create_string_buffer(120)))")

    assert [line["call"] for line in recorded.of("refused")] == ["io_uring"]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="others have one instruction set")
def test_another_instruction_set_is_refused_and_said(stage: Stage) -> None:
    """In 32 bits by ``int 0x80``, and by the numbers of x32."""
    recorded = stage.run("""
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("53b81400000031dbcd805bc3"))  # push rbx; mov eax, 20 (getpid); xor ebx, ebx; int 0x80; pop rbx; ret
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
assert function() == -errno.ENOSYS
fails("ENOSYS", call, 0x40000000 + 39)
make("f")
""")

    assert [line["call"] for line in recorded.of("refused")] == ["calls of another instruction set"]


def test_other_directories_are_left_alone(stage: Stage) -> None:
    recorded = stage.run("""
make(outside + "/f", b"x" * 100)
os.mkdir(root + "-not")
os.rename(outside + "/f", outside + "/g")
os.rmdir(root + "-not")
make("/dev/null")
""")

    assert recorded.kinds() == []


# ---- how it ends -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code", "end"), [("exit 42", 42, (42, None)), ("kill -TERM $$", -15, (None, 15)), ("kill -KILL $$", -9, (None, 9))]
)
def test_it_ends_as_the_job_does_and_the_log_says_how(stage: Stage, command: str, code: int, end: tuple[int | None, int | None]) -> None:
    assert stage.start(("sh", "-c", command)).wait(PATIENCE_S) == code
    ended = Recorded(stage.log).end

    assert ended is not None
    assert (ended.exit_code, ended.signal) == end


def test_a_signal_to_the_recorder_reaches_the_job(stage: Stage) -> None:
    process = stage.start_python("""
def handle(*_):
    make("handled")
    sys.exit(143)
signal.signal(signal.SIGTERM, handle)
print("ready", flush=True)
while True: time.sleep(0.1)
""")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 143
    assert Recorded(stage.log).tree() == {b"handled": b"x"}


def test_killing_the_recorder_kills_the_job_and_leaves_a_log_without_its_end(stage: Stage) -> None:
    process = stage.start_python('make("f"); print(os.getpid(), flush=True); signal.pause()')
    assert process.stdout is not None
    job = int(process.stdout.readline())
    process.kill()
    process.wait(PATIENCE_S)
    try:
        descriptor = os.pidfd_open(job)
        assert select.select([descriptor], [], [], PATIENCE_S)[0]
        os.close(descriptor)
    except ProcessLookupError:
        pass
    recorded = Recorded(stage.log)

    assert recorded.end is None
    assert recorded.tree() == {b"f": b"x"}


def test_what_was_done_when_the_recorder_is_killed_in_the_middle_is_in_the_log(stage: Stage) -> None:
    process = stage.start_python("""
for n in range(100_000):
    make(f"f{n}", b"content")
    print(n, flush=True)
""")
    assert process.stdout is not None
    while int(process.stdout.readline()) < 50:
        pass
    process.kill()
    process.wait(PATIENCE_S)
    tree = Recorded(stage.log).tree()

    assert all(tree[b"f%d" % n] == b"content" for n in range(51))


def test_processes_that_outlive_the_first_one_are_recorded_to_their_end(stage: Stage) -> None:
    process = stage.start(("sh", "-c", f"(sleep 0.3; echo late > {stage.root}/late) > /dev/null 2>&1 & exit 3"))

    assert process.wait(PATIENCE_S) == 3
    recorded = Recorded(stage.log)
    assert (recorded.blind, recorded.tree()) == ([], {b"late": b"late\n"})


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_daemon_that_nothing_ties_to_the_job_is_ended(stage: Stage) -> None:
    """Neither its session nor its environment nor its parent tells whose it is; its own child goes, too."""
    process = stage.start_python("""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        child = os.fork()
        if child:
            make(outside + "/daemons", b"%d %d" % (os.getpid(), child))
        os.closerange(0, 100)
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    os._exit(0)
os.wait()
while not os.path.exists(outside + "/daemons") or len(content(outside + "/daemons").split()) < 2:
    time.sleep(0.01)
""")

    assert process.wait(PATIENCE_S) == 0
    daemons = [int(word) for word in (stage.outside / "daemons").read_text().split()]
    assert len(daemons) == 2
    assert [daemon for daemon in daemons if is_there(daemon)] == []
    assert Recorded(stage.log).blind == [("foreign", "")]


def test_a_process_that_does_not_end_is_said_and_not_waited_for(stage: Stage) -> None:
    process = stage.start(("sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $!"))
    assert process.stdout is not None
    lasting = int(process.stdout.readline())

    assert process.wait(PATIENCE_S) == 0
    assert Recorded(stage.log).blind == [("foreign", "")]
    assert not is_there(lasting)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--root", "{root}", "--log", "{log}", "--events", "{events}"], "no command after --"),
        (["--root", "{root}/none", "--log", "{log}", "--events", "{events}", "--", "true"], "no directory"),
        (["--root", "{root}", "--log", "{root}/log", "--events", "{events}", "--", "true"], "lies in the directory"),
        (["--root", "{root}", "--log", "{log}", "--events", "{root}/events", "--", "true"], "lies in the directory"),
    ],
)
def test_a_wrong_command_line_is_refused_before_the_job_starts(stage: Stage, arguments: list[str], said: str) -> None:
    words = [word.format(root=stage.root, log=stage.log, events=stage.events) for word in arguments]
    done = subprocess.run((sys.executable, "-P", str(SCRIPT), *words), capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert done.returncode in (2, 70)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_log_is_not_written_over_another_one(stage: Stage) -> None:
    stage.run("make('f')")
    process = stage.start(("true",))
    _, errors = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 70
    assert "File exists" in errors


def test_the_recorder_imports_only_the_standard_library(stage: Stage) -> None:
    line = (
        sys.executable,
        "-X",
        "importtime",
        "-P",
        str(SCRIPT),
        "--root",
        str(stage.root),
        "--log",
        str(stage.log),
        "--events",
        str(stage.events),
    )
    done = subprocess.run((*line, "--", "true"), capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    imported = {entry.rpartition("|")[2].strip() for entry in done.stderr.splitlines()}

    assert "harness.supervision.recorder.recorder" in imported
    assert imported.isdisjoint({"msgspec", "psutil", "dataclasses", "harness.errors"})


def test_no_privilege_is_needed() -> None:
    """As root, the recorder becomes nobody first; without root it has none anyway."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o777)
        stage = Stage(directory)
        stage.root.chmod(0o777)
        code = f"""
import locale, shutil  # while the files of the interpreter can be read
import os
import harness.supervision.recorder.command_line as recorder
from harness.supervision import seccomp
if os.getuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    seccomp.control(4, 1)
recorder.main(
    ["--root", "{stage.root}", "--log", "{stage.log}", "--events", "{stage.events}", "--"]
    + ["sh", "-c", "id -u; cd {stage.root}; mkdir a; echo one > a/f; cp a/f a/g; mv a b; ln b/f c; rm b/f; chmod 0 c; truncate -s 2 b/g"]
)
"""
        done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (done.stderr, done.returncode, done.stdout != "0\n") == ("", 0, True)
        recorded = Recorded(stage.log)

        assert recorded.blind == [("call", "c")] * 2  # the chmod; then nobody can read it any more, so it could not be compared
        assert recorded.tree() == {b"b": None, b"b/g": b"on", b"c": b"one\n"}


# ---- a real checkpointer ------------------------------------------------------------------------------------------------------------

ORBAX_JOB = """
import sys
import jax.numpy as jnp
import orbax.checkpoint as ocp
manager = ocp.CheckpointManager(sys.argv[1], options=ocp.CheckpointManagerOptions(max_to_keep=2))
for step in (1, 2, 3):
    manager.save(step, args=ocp.args.StandardSave({"w": jnp.full((64, 64), float(step))}))
    manager.wait_until_finished()
    print("saved", step, flush=True)
manager.close()
"""


def test_three_saves_of_orbax_are_recorded_whole(stage: Stage) -> None:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "HARNESS_EVENTS": str(stage.events)}
    process = stage.start((sys.executable, "-c", ORBAX_JOB, str(stage.root)), env=environment)
    _, errors = process.communicate(timeout=ORBAX_PATIENCE_S)
    assert process.returncode == 0, errors
    recorded = Recorded(stage.log)

    assert recorded.blind == []
    assert recorded.tree() == tree_of(stage.root)
    saved = [line["index"] for line in recorded.of("print") if "saved" in line["text"]]
    assert len(saved) == 3
    assert b"1/_CHECKPOINT_METADATA" in recorded.tree(until=saved[1])
    assert not any(path.split(b"/")[0] == b"1" for path in recorded.tree(until=saved[2]))
    assert len(recorded.of("write")) > 30


# ---- the caller's side ---------------------------------------------------------------------------------------------------------------


def run_of(stage: Stage, code: str, timeout_s: float = PATIENCE_S):
    command = (sys.executable, "-c", PREAMBLE + code, str(stage.root), str(stage.outside))
    return record(command, root=stage.root, log_directory=stage.log, environment=dict(os.environ), cwd=stage.outside, timeout_s=timeout_s)


def test_a_caller_gets_the_log_the_events_and_the_end(stage: Stage) -> None:
    recording = run_of(
        stage, "make('f'); make(os.environ['HARNESS_EVENTS'], b'{}\\n'); print('out'); sys.stderr.write('wrong'); sys.exit(7)"
    )

    assert (recording.exit_code, recording.signal, recording.timed_out) == (7, None, False)
    assert (recording.events.read_text(), recording.errors()) == ("{}\n", "wrong")
    recorded = Recorded(recording.log_directory)
    assert (recorded.said, recorded.printed) == (["{}"], {"stdout": "out\n", "stderr": "wrong"})


def test_a_job_that_takes_too_long_is_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.explore.recording.GRACE_S", 0.2)
    recording = run_of(stage, "signal.signal(signal.SIGTERM, signal.SIG_IGN); make('f'); time.sleep(1000)", timeout_s=1.0)

    assert (recording.signal, recording.timed_out) == (signal.SIGKILL, True)
    assert Recorded(recording.log_directory).tree() == {b"f": b"x"}


def test_where_commands_cannot_be_recorded_the_reason_is_said(stage: Stage) -> None:
    """The kernel allows one supervisor over a process: under the recorder there cannot be another one."""
    process = stage.start((sys.executable, "-c", "from harness.explore.recording import recorder_available; print(recorder_available())"))
    output, errors = process.communicate(timeout=PATIENCE_S)

    assert errors == ""
    assert "Device or resource busy" in output
