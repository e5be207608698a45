"""System calls that Python has no function for, and numbers as C has them."""

import ctypes
import os

_library = ctypes.CDLL(None, use_errno=True)
_library.syscall.restype = ctypes.c_long


def system_call(number: int, *arguments: int | bytes) -> int:
    """A call that Python has no function for.

    Raises:
        OSError: When it fails.
    """
    values = (ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_long(value) for value in arguments)
    result = int(_library.syscall(ctypes.c_long(number), *values))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def as_int(argument: int) -> int:
    """An ``int`` of C; the upper half of its register means nothing."""
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low & 0x80000000 else low


def as_long(argument: int) -> int:
    """A signed offset or size."""
    return argument - (1 << 64) if argument >> 63 else argument
