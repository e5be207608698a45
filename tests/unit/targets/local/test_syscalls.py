"""The table of system calls is whole, and says which of them a failing storage refuses."""

import pytest

from harness.targets.local.syscalls import ARCHITECTURES, ERROR_NUMBERS, EVERYTHING, NO_ARGUMENT, OPEN, REFUSED, WRITE

MODERN = {
    *(
        "openat",
        "openat2",
        "write",
        "writev",
        "pwrite64",
        "pwritev",
        "pwritev2",
        "sendfile",
        "copy_file_range",
        "splice",
        "fsync",
        "fdatasync",
    ),
    *(
        "sync_file_range",
        "syncfs",
        "ftruncate",
        "truncate",
        "fallocate",
        "mkdirat",
        "unlinkat",
        "linkat",
        "symlinkat",
        "mknodat",
        "renameat2",
    ),
}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_call_of_the_modern_interface_is_there(machine) -> None:
    assert {call.name for call in ARCHITECTURES[machine].calls.values()} >= MODERN


def test_only_the_old_instruction_set_has_the_old_calls() -> None:
    older = {call.name for call in ARCHITECTURES["x86_64"].calls.values()} - {call.name for call in ARCHITECTURES["aarch64"].calls.values()}

    assert older == {"open", "creat", "mkdir", "rmdir", "unlink", "link", "symlink", "mknod", "rename"}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_call_says_where_its_file_stands(machine) -> None:
    for call in ARCHITECTURES[machine].calls.values():
        assert (call.descriptor != NO_ARGUMENT) != bool(call.paths), call.name
        assert (call.flags != NO_ARGUMENT) == (call.kind == OPEN and call.name != "creat"), call.name


def test_errors_name_kinds_that_calls_have() -> None:
    kinds = {call.kind for call in ARCHITECTURES["x86_64"].calls.values()} | {"create"}

    assert kinds == EVERYTHING
    assert all(WRITE in refused and refused <= EVERYTHING for refused in REFUSED.values())
    assert (ERROR_NUMBERS["ENOSPC"], ERROR_NUMBERS["EIO"], ERROR_NUMBERS["EROFS"]) == (28, 5, 30)
