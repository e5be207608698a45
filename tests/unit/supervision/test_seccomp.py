"""The filter hands over what changes files, refuses what would escape, and lets the rest pass: run here by a machine of a few lines."""

import errno
import os
import struct

import pytest

from harness.supervision.seccomp import filter_program
from harness.supervision.syscalls import ARCHITECTURES, FICLONE, FICLONERANGE, IO_URING_SETUP, Architecture, Call

ALLOW, NOTIFY, REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000 | errno.ENOSYS


def run(
    architecture: Architecture,
    number: int,
    *,
    audit: int | None = None,
    arguments: tuple[int, ...] = (),
    calls: dict[int, Call] | None = None,
    tells: bool = False,
) -> int:
    """What the kernel would do with a call, by classic BPF's rules."""
    data = struct.pack("=IIQ6Q", number, architecture.audit if audit is None else audit, 0, *arguments, *[0] * (6 - len(arguments)))
    program = filter_program(architecture, architecture.calls if calls is None else calls, tells_what_is_refused=tells)
    word = at = 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            word = struct.unpack_from("=I", data, operand)[0]
        elif code == 0x06:
            return operand
        else:
            at += if_true if {0x15: word == operand, 0x35: word >= operand, 0x45: bool(word & operand)}[code] else if_false


BOTH = pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES)


@BOTH
def test_calls_that_change_files_are_handed_over(architecture) -> None:
    for number, call in architecture.calls.items():
        arguments = (0, 0, os.O_WRONLY) if call.flags == 2 else (0, os.O_WRONLY)
        assert run(architecture, number, arguments=arguments) == NOTIFY, call.name


@BOTH
def test_all_other_calls_pass(architecture) -> None:
    for number in set(range(600)) - set(architecture.calls) - set(architecture.refused):
        assert run(architecture, number) == ALLOW, number


@BOTH
@pytest.mark.parametrize(
    ("flags", "action"),
    [
        (os.O_RDONLY, ALLOW),
        (os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY, ALLOW),
        (os.O_RDWR, NOTIFY),
        (os.O_CREAT, NOTIFY),
        (os.O_TRUNC, NOTIFY),
        (os.O_TMPFILE | os.O_RDWR, NOTIFY),
    ],
)
def test_an_open_is_handed_over_when_it_can_write(architecture, flags, action) -> None:
    number = next(number for number, call in architecture.calls.items() if call.name == "openat")

    assert run(architecture, number, arguments=(0, 0, flags)) == action


@BOTH
def test_what_would_escape_is_refused(architecture) -> None:
    write = next(number for number, call in architecture.calls.items() if call.name == "write")

    assert run(architecture, IO_URING_SETUP) == REFUSE
    assert run(architecture, {"x86_64": 304, "aarch64": 265}[architecture.machine]) == REFUSE, "open_by_handle_at"
    assert run(architecture, write, audit=0x40000003) == REFUSE
    assert run(architecture, 0x40000000 | write) == REFUSE


@BOTH
def test_who_asks_for_it_is_told_of_what_would_escape(architecture) -> None:
    write = next(number for number, call in architecture.calls.items() if call.name == "write")

    for number, audit in [(number, None) for number in architecture.refused] + [(write, 0x40000003), (0x40000000 | write, None)]:
        assert run(architecture, number, audit=audit, tells=True) == NOTIFY


@BOTH
def test_the_program_fits_what_a_jump_can_reach_and_the_kernel_takes(architecture) -> None:
    for calls in (architecture.calls, architecture.recorded):
        program = filter_program(architecture, calls)

        assert len(program) <= 4096
        assert all(
            at + 1 + max(if_true, if_false) < len(program) for at, (code, if_true, if_false, _) in enumerate(program) if code != 0x06
        )


SHARED, PRIVATE, SHARED_VALIDATE, ANONYMOUS = 0x01, 0x02, 0x03, 0x20


def recorded(architecture: Architecture, name: str, *arguments: int) -> int:
    number = next(number for number, call in architecture.recorded.items() if call.name == name)
    return run(architecture, number, arguments=arguments, calls=architecture.recorded)


@BOTH
@pytest.mark.parametrize(
    ("flags", "action"),
    [
        (SHARED, NOTIFY),
        (SHARED_VALIDATE, NOTIFY),
        (SHARED | 0x8000, NOTIFY),
        (PRIVATE, ALLOW),
        (PRIVATE | ANONYMOUS, ALLOW),
        (SHARED | ANONYMOUS, ALLOW),
    ],
)
def test_a_recorder_is_told_of_shared_mappings_of_files_only(architecture, flags, action) -> None:
    assert recorded(architecture, "mmap", 0, 4096, 3, flags, 5) == action


@BOTH
def test_a_recorder_is_told_of_reflinks_and_of_no_other_control_of_a_device(architecture) -> None:
    assert recorded(architecture, "ioctl", 3, FICLONE) == NOTIFY
    assert recorded(architecture, "ioctl", 3, FICLONERANGE) == NOTIFY
    assert recorded(architecture, "ioctl", 3, 0x5413) == ALLOW


@BOTH
def test_a_recorder_is_told_of_aio_and_of_sync_but_not_of_what_makes_nothing_durable(architecture) -> None:
    assert recorded(architecture, "io_submit") == recorded(architecture, "sync") == NOTIFY
    assert "sync_file_range" not in {call.name for call in architecture.recorded.values()}
    assert recorded(architecture, "openat", 0, 0, os.O_RDONLY) == ALLOW
    assert recorded(architecture, "openat", 0, 0, os.O_RDWR) == NOTIFY
