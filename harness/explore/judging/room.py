"""Room on the disks where recovery is tried: one that fails since they are full says nothing of the job."""

import contextlib
import errno
import os
import re
from pathlib import Path

from harness.errors import HarnessError

SPARE_BYTES = 1 << 20
"""With less than this left, one that came through may have left something out without a word."""

_WORDS = re.compile(
    "|".join(map(re.escape, (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT)))) + rf"|\b(?:ENOSPC|EDQUOT|Errno {errno.ENOSPC})\b"
)
"""How a program says that a disk is full, or a quota spent. Source: errno(3)."""

_TELLS_ITS_ROOM = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs", "overlay"})
"""File systems whose quotas stand among the options of their mount. Of others, as of a server's, nobody here knows.
Source: quota options in mount(8), ext4(5), xfs(5), tmpfs(5)."""

_MOUNTS = Path("/proc/self/mountinfo")
"""Source: proc_pid_mountinfo(5)."""

_BLOCK_BYTES = 512
"""Of ``st_blocks``, whatever the file system's own are. Source: inode(7)."""


class NoRoomError(HarnessError):
    """A recovery had no room, so nothing is known of its state."""

    def __init__(self, *, where: Path, seen: str) -> None:
        self.where, self.seen = where, seen
        super().__init__(f"it had no room in {where}: {seen}; free some space, or explore with fewer jobs")


def require_room(checkpoints: Path, scratch: Path, *, said: str, came_through: bool) -> None:
    """Refuse to judge a recovery that had no room; to be called at its end, when what it has left is still there.

    Where it failed, as much must be free as its checkpoints take: it may have wanted to make another one. One that only says that there
    was no room says nothing of where: that counts where a quota can be in force, which nobody sees from how much is free.

    Args:
        checkpoints: Its checkpoint directory.
        scratch: Where its other files are.
        said: The end of what it said.
        came_through: Whether it left with 0.

    Raises:
        NoRoomError: When a disk is full, or when it failed and says so.
        OSError: When a disk cannot be looked at.
    """
    spare = SPARE_BYTES if came_through else max(SPARE_BYTES, _bytes_below(checkpoints))
    for place in dict.fromkeys((checkpoints.parent, scratch.parent)):  # it may have removed its own
        found = os.statvfs(place)
        free = found.f_bavail * found.f_frsize
        if found.f_blocks and free < spare:  # without blocks it does not tell
            raise NoRoomError(where=place, seen=f"{free:,} bytes were free when it had ended")
        if found.f_files and not found.f_favail:
            raise NoRoomError(where=place, seen="no more files could be made when it had ended")
        if not came_through and speaks_of_no_room(said) and _may_have_quota(place):
            raise NoRoomError(where=place, seen=f"it said {_WORDS.findall(said)[-1]!r}, and a quota may be in force there")


def speaks_of_no_room(said: str) -> bool:
    """Whether a recovery says that a disk is full: it may have been, for a moment, or it may only speak of it."""
    return _WORDS.search(said) is not None


def _may_have_quota(place: Path) -> bool:
    """Whether the file system of a directory may have a quota."""
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return True
    path, mounts = str(place.resolve()), (_mount_of(line) for line in lines)
    under = [mount for mount in mounts if path == mount[0] or path.startswith(mount[0].rstrip("/") + "/")]
    _, kind, options = max(reversed(under), key=lambda mount: len(mount[0]), default=("", "", ""))  # of two in one place the later one
    return kind not in _TELLS_ITS_ROOM or "quota" in options.replace("noquota", "")


def _mount_of(line: str) -> tuple[str, str, str]:
    """Where it is mounted, the kind of file system, and all options."""
    mount, _, own = line.partition(" - ")
    fields, (kind, *rest) = mount.split(), own.split()
    return fields[4].encode().decode("unicode_escape"), kind, f"{fields[5]},{rest[-1]}"


def _bytes_below(directory: Path) -> int:
    return sum(_bytes_of(os.path.join(folder, name)) for folder, _, names in os.walk(directory) for name in names)  # noqa: PTH118


def _bytes_of(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_blocks * _BLOCK_BYTES
    return 0
