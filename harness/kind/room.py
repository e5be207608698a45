"""Whether this machine has room for a cluster: memory, disk, and watches on files."""

import os
import shutil
from pathlib import Path

from harness.errors import TargetUnavailableError
from harness.kind.cache import shared_dir

MEMORY_GIB_MIN = 4.0
"""Six nodes with the operators take 1.2 GiB at rest; a job of four Ray hosts 3 more, at most."""

DISK_GIB_MIN = 8.0
"""The nodes' volumes take 2 GiB; a kubelet evicts pods when the disk is nearly full."""

WATCHES_MIN = 512
"""fs.inotify.max_user_instances. The control plane takes about 30, a worker about 10: the usual 128 is nearly used up by six nodes."""
WATCHES = Path("/proc/sys/fs/inotify/max_user_instances")


def require_room() -> None:
    """Refuse where the cluster would come up and then fail its jobs: too little memory, disk or watches.

    Raises:
        TargetUnavailableError: With the figure that was seen and the one that is needed.
    """
    meminfo = Path("/proc/meminfo")
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines()) if meminfo.exists() else {}
    memory_gib = int(fields["MemAvailable"].split()[0]) / 2**20 if "MemAvailable" in fields else MEMORY_GIB_MIN
    if memory_gib < MEMORY_GIB_MIN:
        reason = f"{memory_gib:.1f} GiB of memory are available and a cluster needs {MEMORY_GIB_MIN:g}"
        raise TargetUnavailableError(target="kind", reason=reason, advice="end something, or make fewer nodes with --topology")
    disk_gib = shutil.disk_usage(shared_dir().parent if shared_dir().parent.exists() else Path("/")).free / 2**30
    if disk_gib < DISK_GIB_MIN:
        reason = f"{shared_dir().parent} has {disk_gib:.1f} GiB free and a cluster needs {DISK_GIB_MIN:g}"
        raise TargetUnavailableError(target="kind", reason=reason, advice="free some, or set HARNESS_CACHE_DIR to a larger disk")
    _require_watches()


def _require_watches() -> None:
    """Raise the limit of inotify instances where that is allowed: nodes that run out of them fail in ways that name no cause."""
    if not WATCHES.exists() or int(WATCHES.read_text()) >= WATCHES_MIN:
        return
    if os.geteuid() == 0:
        WATCHES.write_text(str(WATCHES_MIN))
        return
    reason = f"fs.inotify.max_user_instances is {WATCHES.read_text().strip()} and a cluster needs {WATCHES_MIN}"
    raise TargetUnavailableError(
        target="kind", reason=reason, advice=f"run `sysctl -w fs.inotify.max_user_instances={WATCHES_MIN}` as root"
    )
