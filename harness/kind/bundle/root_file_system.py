"""Root file systems from Debian's packages."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from harness.kind.commands import run_command

SUITE = "bookworm"
"""Its containerd 1.6 and runc 1.1 work with cgroup v1; its Python is 3.11, the oldest that the project supports."""

DEBOOTSTRAP_S = 1200.0
"""Two minutes with a near mirror; ten times that is no longer a build."""

ARCHIVE_S = 600.0

LEFT_OUT = (
    "var/lib/apt/lists/*",
    "var/cache/apt/*",
    "var/log/*.log",
    "usr/share/doc/*",
    "usr/share/man/*",
    "usr/share/info/*",
    "usr/share/locale/*",
)
"""What no container reads: a third of a minimal system."""


def make_root_file_system(root: Path, packages: Sequence[str], log: Path) -> None:
    """Install a minimal system with these packages into ``root``.

    Runs in a mount and process namespace of its own, which dies with us: a killed build leaves no mount and no process behind.

    Raises:
        CommandFailedError: When debootstrap is missing or fails.
    """
    bounded = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    command = [*bounded, "debootstrap", "--variant=minbase", f"--include={','.join(packages)}", SUITE, str(root)]
    run_command(command, deadline_s=DEBOOTSTRAP_S, environment={"DEBIAN_FRONTEND": "noninteractive"}, log=log, ends_with_us=True)
    for pattern in LEFT_OUT:
        run_command(["sh", "-c", f"rm -rf {shlex.quote(str(root))}/{pattern}"], deadline_s=ARCHIVE_S, log=log)


def import_image(root: Path, reference: str, changes: Sequence[str], log: Path) -> None:
    """Make a Docker image of one layer from a root file system. The name appears only when the image is whole.

    Raises:
        CommandFailedError: When Docker does not take it.
    """
    options = " ".join(f"--change {shlex.quote(change)}" for change in changes)
    script = f"set -o pipefail; tar --create --numeric-owner --directory {shlex.quote(str(root))} . | docker import {options} - {reference}"
    run_command(["bash", "-c", script], deadline_s=ARCHIVE_S, log=log)
