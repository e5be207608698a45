"""Where processes are: in a boot of a machine, and in a PID namespace of it. Anywhere else a process id says nothing."""

import hashlib
import os
from pathlib import Path

BOOT_ID_PATH = Path("/proc/sys/kernel/random/boot_id")

PID_NAMESPACE_PATH = Path("/proc/self/ns/pid")

MACHINE_ID_PATH = Path("/etc/machine-id")

FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""That of the machine itself, and of no container.

Source: https://github.com/torvalds/linux/blob/master/include/uapi/linux/nsfs.h (``PID_NS_INIT_INO``).
"""


def boot_id() -> str:
    """Of the boot of this machine; empty where the system does not say."""
    return _text_of(BOOT_ID_PATH)


def pid_namespace() -> str:
    """Ours; empty where the system does not say. Processes of another one are not seen here, or by other numbers."""
    try:
        return os.readlink(PID_NAMESPACE_PATH)  # noqa: PTH115 - no path, but words of the kernel
    except OSError:
        return ""


def machine() -> str:
    """Which machine this is, whatever its name and its boot; empty where it is not known, as in a container: that has its image's id.

    Source: https://man7.org/linux/man-pages/man5/machine-id.5.html (it is not to be told, but a hash of it with a word of one's own).
    """
    found = _text_of(MACHINE_ID_PATH)
    if len(found) != 32 or pid_namespace() != FIRST_PID_NAMESPACE:  # 32: else it is not made yet, "uninitialized"
        return ""
    return hashlib.sha256(f"chaos-harness {found}".encode()).hexdigest()[:16]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
