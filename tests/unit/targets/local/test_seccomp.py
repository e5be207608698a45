"""The filter hands over what changes files, refuses what would escape, and lets the rest pass: run here by a machine of a few lines."""

import errno
import os
import struct

import pytest

from harness.targets.local.seccomp import filter_program
from harness.targets.local.syscalls import ARCHITECTURES, IO_URING_SETUP, Architecture

ALLOW, NOTIFY, REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000 | errno.ENOSYS


def run(architecture: Architecture, number: int, *, audit: int | None = None, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would do with a call, by classic BPF's rules."""
    data = struct.pack("=IIQ6Q", number, architecture.audit if audit is None else audit, 0, *arguments, *[0] * (6 - len(arguments)))
    word, at, program = 0, 0, filter_program(architecture)
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
    for number in set(range(600)) - set(architecture.calls) - {IO_URING_SETUP}:
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
    assert run(architecture, write, audit=0x40000003) == REFUSE
    assert run(architecture, 0x40000000 | write) == REFUSE


@BOTH
def test_the_program_fits_what_a_jump_can_reach_and_the_kernel_takes(architecture) -> None:
    program = filter_program(architecture)

    assert len(program) <= 4096
    assert all(at + 1 + max(if_true, if_false) < len(program) for at, (code, if_true, if_false, _) in enumerate(program) if code != 0x06)
