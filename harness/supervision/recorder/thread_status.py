"""What ``/proc`` tells of a thread beside its memory and descriptors.

Source: https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
"""
# ruff: noqa: PTH123 - the kernel's paths are bytes, and pathlib knows only text

import errno
import functools
import os
import re

_FILE_CAPABILITIES = 0b11111
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID; capabilities(7)."""


STATUS = re.compile(
    rb"\nUmask:\t(\d+)\n.*?\nTgid:\t(\d+)\n.*?\nUid:(?:\t\d+){3}\t(\d+)\nGid:(?:\t\d+){3}\t(\d+)\n.*?\nGroups:\t(.*?)\n.*?\nCapEff:\t(\w+)\n",
    re.DOTALL,
)
"""Of user and group the fourth: real, effective, saved, of the file system."""


class ThreadStatus:
    """What ``/proc`` tells of a thread.

    Attributes:
        process: Its process id.
        umask: What is taken from the mode of new files.
        rights: What decides about files: user and group of the file system, further groups, capabilities.
    """

    __slots__ = ("process", "rights", "umask")

    def __init__(self, thread: int) -> None:
        """Raises OSError when it is gone."""
        with open(b"/proc/%d/status" % thread, "rb", buffering=0) as file:
            found = STATUS.search(file.read())
        if found is None:  # it is a zombie
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        umask, process, user, group, groups, capabilities = found.groups()
        self.umask, self.process = int(umask, 8), int(process)
        self.rights = (int(user), int(group), groups, int(capabilities, 16) & _FILE_CAPABILITIES)


@functools.cache
def own_status() -> ThreadStatus:
    """Of this process, when it was first asked for."""
    return ThreadStatus(os.getpid())
