"""Generations from files: any change that a process makes to a file is a new generation, higher than all before of that name.

A generation is a moment in microseconds, as Google's are. The file system has only ticks, some milliseconds long: two writes within one
leave the same identity. So what is looked at within the tick of its last change stays *unsettled*, and its content is compared at the next
look.
"""

import os
from dataclasses import dataclass

import msgspec

NS_PER_US = 1_000


class FileIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What tells one content of a file from the next.

    Attributes:
        device: Of the file system.
        inode: A file that is renamed over another brings its own.
        size: In bytes.
        change_ns: ``st_ctime_ns``: no process can set it, unlike the time of modification.
    """

    device: int
    inode: int
    size: int
    change_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksums:
    """Of one content.

    Attributes:
        crc32c: As Google writes it: base64, big-endian.
        md5: Base64.
        size: In bytes.
    """

    crc32c: str
    md5: str
    size: int


def identify(status: os.stat_result) -> FileIdentity:
    """The identity of a file."""
    return FileIdentity(device=status.st_dev, inode=status.st_ino, size=status.st_size, change_ns=status.st_ctime_ns)


def identify_folder(status: os.stat_result) -> FileIdentity:
    """The identity of a folder's placeholder: entries that come and go do not change it."""
    return FileIdentity(device=status.st_dev, inode=status.st_ino, size=0, change_ns=0)


def next_generation(highest: int, moment_us: int) -> int:
    """The generation of what was written at a moment; clocks that go back do not matter.

    Args:
        highest: The highest that the name ever had; 0 when it had none.
        moment_us: Since 1970.
    """
    return max(highest + 1, moment_us, 1)


def is_settled(identity: FileIdentity, tick_ns: int) -> bool:
    """Whether any later change must show in the identity.

    Args:
        identity: Of a file that was read after ``tick_ns``.
        tick_ns: The file system's time at a moment before the file was looked at.
    """
    return identity.change_ns < tick_ns
