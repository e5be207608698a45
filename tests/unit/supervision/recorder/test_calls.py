"""The arguments of a call mean what its manual page says."""

import errno
from typing import Any

import pytest

from harness.supervision.recorder.copying import Copying
from harness.supervision.recorder.native import as_int, as_long
from harness.supervision.recorder.writing import SIZE_MAX, Writing
from harness.supervision.syscalls import ARCHITECTURES, Call


def call_of(name: str) -> Call:
    return next(call for call in ARCHITECTURES["x86_64"].recorded.values() if call.name == name)


class Memory:
    """A caller with an array of segments."""

    def __init__(self, *segments: tuple[int, int]) -> None:
        self.data = b"".join(address.to_bytes(8, "little") + size.to_bytes(8, "little") for address, size in segments)

    def read(self, address: int, size: int) -> bytes:
        assert address == 0x1000
        return self.data[:size]


def writing(name: str, *arguments: int, memory: Any = None) -> Writing:
    return Writing(memory, call_of(name), [*arguments, *[0] * (6 - len(arguments))])


MINUS_ONE = (1 << 64) - 1


def test_registers_are_read_as_signed_numbers_of_their_width() -> None:
    assert (as_int(0xFFFFFF9C), as_int(0xDEADBEEF_00000003), as_int(0xFFFFFFFF_FFFFFF9C)) == (-100, 3, -100)
    assert (as_long(MINUS_ONE), as_long(1 << 62)) == (-1, 1 << 62)


def test_a_write_has_one_segment_and_goes_to_the_offset_of_its_descriptor() -> None:
    plain, positioned = writing("write", 3, 0x1000, 7), writing("pwrite64", 3, 0x1000, 7, 50)

    assert (plain.segments, plain.offset) == ([(0x1000, 7)], None)
    assert (positioned.segments, positioned.offset) == ([(0x1000, 7)], 50)


def test_a_vector_has_the_segments_that_lie_in_memory() -> None:
    vector = writing("pwritev", 3, 0x1000, 2, 50, memory=Memory((0x2000, 5), (0x3000, 6)))

    assert (vector.segments, vector.offset, vector.flags) == ([(0x2000, 5), (0x3000, 6)], 50, 0)


def test_only_the_newest_call_takes_an_offset_of_minus_one_for_that_of_the_descriptor() -> None:
    newest = writing("pwritev2", 3, 0x1000, 1, MINUS_ONE, 0, 0x10, memory=Memory((0x2000, 5)))

    assert (newest.offset, newest.flags) == (None, 0x10)
    for name in ("pwrite64", "pwritev"):
        with pytest.raises(OSError, match="Invalid") as failure:
            writing(name, 3, 0x1000, 1, MINUS_ONE, memory=Memory((0x2000, 5)))
        assert failure.value.errno == errno.EINVAL


@pytest.mark.parametrize(("count", "size"), [(1025, 1), (MINUS_ONE, 1), (1, MINUS_ONE)])
def test_a_wrong_vector_is_refused(count, size) -> None:
    with pytest.raises(OSError, match="Invalid"):
        writing("writev", 3, 0x1000, count, memory=Memory(*[(0x2000, size)] * min(count, 2000)))


def test_no_call_moves_more_than_the_kernel_would() -> None:
    vector = writing("writev", 3, 0x1000, 2, memory=Memory((0x2000, SIZE_MAX - 5), (0x3000, 100)))

    assert vector.segments == [(0x2000, SIZE_MAX - 5), (0x3000, 5)]
    assert Copying(call_of("sendfile"), [3, 4, 0, 1 << 40, 0, 0]).count == SIZE_MAX


def test_copies_name_their_files_in_their_own_order() -> None:
    sent = Copying(call_of("sendfile"), [3, 4, 0x10, 7, 0, 0])
    copied = Copying(call_of("copy_file_range"), [3, 0x10, 4, 0x20, 7, 0])

    assert (sent.source, sent.target, sent.source_at, sent.target_at, sent.count) == (4, 3, 0x10, 0, 7)
    assert (copied.source, copied.target, copied.source_at, copied.target_at, copied.count) == (3, 4, 0x10, 0x20, 7)
    for call in (call_of(name) for name in ("sendfile", "copy_file_range", "splice")):
        assert call.descriptor == (0 if call.name == "sendfile" else 2)
