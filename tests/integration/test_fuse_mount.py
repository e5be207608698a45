"""On a real FUSE mount the model is right, too, and the recorder sees all: skipped where there is none, unless HARNESS_REQUIRE names fuse.

bindfs 1.14 refuses what libfuse 2 has no word for, an exchange and a file without a name: those are compared on the plain directory alone.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.contract.presence import REQUIRED
from tests.integration.random_operations import COMMANDS, Machine, modelled, seen
from tests.integration.random_program import record_program
from tests.integration.recorded import PATIENCE_S, Stage, tree_of

OPTIONS = "hard_remove,attr_timeout=0,entry_timeout=0,negative_timeout=0"
"""libfuse otherwise renames what is unlinked while it is open, and the kernel tells an old size by the second name of a file."""


class Mount(NamedTuple):
    """What is in ``below`` is seen at ``point``, through FUSE."""

    below: Path
    point: Path


@pytest.fixture(scope="module")
def mount(tmp_path_factory) -> Iterator[Mount]:
    """Mounted by bindfs, and always unmounted."""
    below, point = tmp_path_factory.mktemp("below"), tmp_path_factory.mktemp("mount")
    if problem := _mount(below, point):
        (pytest.fail if "fuse" in REQUIRED else pytest.skip)(f"there is no FUSE mount: {problem}")
    try:
        assert point.is_mount()
        yield Mount(below, point)
    finally:
        _unmount(point)


def _mount(below: Path, point: Path) -> str:
    """Why it cannot be; empty: it is there."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse is not there, or not for us"
    if shutil.which("bindfs") is None:
        return "bindfs is not installed; on Debian: apt-get install bindfs"
    done = subprocess.run(("bindfs", "-o", OPTIONS, str(below), str(point)), capture_output=True, text=True, timeout=PATIENCE_S)
    return f"bindfs says: {done.stderr.strip() or done.returncode}" if done.returncode else ""


def _unmount(point: Path) -> None:
    done = subprocess.run(("fusermount", "-u", str(point)), capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode:
        subprocess.run(("fusermount", "-u", "-z", str(point)), check=True, timeout=PATIENCE_S)
        pytest.fail(f"something was left that uses the mount: {done.stderr}")


@settings(
    deadline=None,
    max_examples=30,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # what fails is made small on the plain directory
    suppress_health_check=[HealthCheck.too_slow],
)
@given(commands=st.lists(COMMANDS, min_size=20, max_size=40))
def test_a_replay_leaves_what_the_mount_has_after_each_operation(mount, commands) -> None:
    machine = Machine(Path(tempfile.mkdtemp(dir=mount.point)))

    real = machine.do_all(commands)

    assert modelled(machine.recording) == real
    assert real[-1] == seen(mount.below / machine.root.relative_to(mount.point))


@pytest.mark.parametrize("seed", range(2))
def test_the_log_of_a_random_program_makes_what_the_mount_has(mount, seed) -> None:
    stage = Stage(Path(tempfile.mkdtemp(dir=mount.point)))
    try:
        recorded = record_program(stage, seed)
    finally:
        stage.close()

    assert recorded.tree() == tree_of(mount.below / stage.root.relative_to(mount.point))
    assert len(recorded.kinds()) > 100


def test_a_copy_from_a_file_without_a_name_fares_as_without_the_recorder(mount, tmp_path) -> None:
    """Of such a file the mount knows no status, which the kernel does not ask for behind its end."""
    stage = Stage(tmp_path, root=Path(tempfile.mkdtemp(dir=mount.point)))
    try:
        stage.run_blindly("""
make("target")
source, target = os.open("source", os.O_CREAT | os.O_RDWR), os.open("target", os.O_WRONLY)
os.write(source, bytes(200))
os.unlink("source")
assert os.copy_file_range(source, target, 100, 300) == 0
""")
    finally:
        stage.close()
