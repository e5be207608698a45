"""What the kernel counts of a container's memory, read from its control group while there is one."""

from dataclasses import dataclass
from pathlib import Path

ROOT, PROC = Path("/sys/fs/cgroup"), Path("/proc")

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """Where a version of control groups keeps its counts.

    Source: https://docs.kernel.org/admin-guide/cgroup-v1/memory.html, https://docs.kernel.org/admin-guide/cgroup-v2.html
    """

    events: Path
    peak: Path


class MemoryWatch:
    """The control group of one container; it goes with the container, so what was read last is kept.

    Attributes:
        kills: Processes that the kernel has killed for want of memory.
        peak_mib: The most that was used at a time.
    """

    def __init__(self, pid: int) -> None:
        self.kills = 0
        self.peak_mib = 0
        self._files = _find_files(pid)

    def look(self) -> None:
        """Read the counts; what cannot be read any more stays as it was."""
        if self._files is None:
            return
        try:
            counts = dict(line.split(" ", 1) for line in self._files.events.read_text().splitlines() if " " in line)
            self.kills = max(self.kills, int(counts.get("oom_kill", "0")))
            self.peak_mib = max(self.peak_mib, int(self._files.peak.read_text()) // MIB)
        except (OSError, ValueError):  # the group is gone, or this kernel does not count
            return


def _find_files(pid: int) -> _Files | None:
    try:
        lines = (PROC / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            group = ROOT / "memory" / path.lstrip("/")
            return _Files(events=group / "memory.oom_control", peak=group / "memory.max_usage_in_bytes")
    unified = next((line.split(":", 2)[2] for line in lines if line.startswith("0::")), None)
    if unified is None:
        return None
    group = ROOT / unified.lstrip("/")
    return _Files(events=group / "memory.events", peak=group / "memory.peak")
