"""The table of system calls is whole, and says which of them a failing storage refuses."""

import pytest

from harness.supervision.syscalls import ARCHITECTURES, ERROR_NUMBERS, EVERYTHING, NO_ARGUMENT, OPEN, REFUSED, WRITE

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


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_recorder_sees_what_is_told_of_a_file_beside_its_content(machine) -> None:
    seen = {call.name for call in ARCHITECTURES[machine].recorded.values()}

    assert seen >= {"bind", "fchmod", "fchmodat", "fchmodat2", "utimensat"}
    assert seen >= {f"{letter}{way}xattr" for way in ("set", "remove") for letter in ("", "l", "f")}
    assert {"chmod", "utime", "utimes", "futimesat"} & seen == ({"chmod", "utime", "utimes", "futimesat"} if machine == "x86_64" else set())


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


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_call_that_a_recorder_sees_has_one_who_performs_it(machine) -> None:
    from harness.supervision.recorder.recorder import _ON_FILE, _ON_PATH

    recorded = ARCHITECTURES[machine].recorded.values()
    assert {call.name for call in recorded if call.kind != OPEN} <= {*_ON_FILE, *_ON_PATH}
    assert {call.name for call in recorded} >= MODERN - {"sync_file_range"} | {"sync", "mmap", "ioctl", "io_submit"}
    assert all(call.descriptor != NO_ARGUMENT for call in recorded if call.name in _ON_FILE)
