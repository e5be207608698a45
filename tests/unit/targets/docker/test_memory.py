"""What is read of a control group."""

import pytest

from harness.targets.docker import memory
from harness.targets.docker.memory import MemoryWatch


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Control groups and process 7 of a machine that is made of files."""

    def make(membership: str, **files: str):
        (tmp_path / "proc/7").mkdir(parents=True)
        (tmp_path / "proc/7/cgroup").write_text(membership)
        for path, text in files.items():
            file = tmp_path / "cgroup" / path.replace("__", "/").replace("_DOT_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path / "cgroup"

    monkeypatch.setattr(memory, "ROOT", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    return make


def test_the_first_version_of_control_groups(machine):
    root = machine(
        "5:cpu,cpuacct:/x\n3:memory:/docker/abc\n",
        memory__docker__abc__memory_DOT_oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        memory__docker__abc__memory_DOT_max_usage_in_bytes=str(65 << 20),
    )
    watch = MemoryWatch(7)
    watch.look()
    assert (watch.kills, watch.peak_mib) == (2, 65)

    (root / "memory/docker/abc/memory.oom_control").unlink()
    watch.look()
    assert (watch.kills, watch.peak_mib) == (2, 65), "what was read stays when the group is gone"


def test_the_second_version_of_control_groups(machine):
    machine(
        "0::/system.slice/docker-abc.scope\n",
        **{
            "system.slice__docker-abc.scope__memory.events": "low 0\noom 1\noom_kill 1\n",
            "system.slice__docker-abc.scope__memory.peak": str(64 << 20),
        },
    )
    watch = MemoryWatch(7)
    watch.look()

    assert (watch.kills, watch.peak_mib) == (1, 64)


@pytest.mark.parametrize("membership", ["", "1:name=systemd:/x\n", "0::/not/there\n"])
def test_what_is_not_counted_is_no_kill(machine, membership):
    machine(membership)
    watch = MemoryWatch(7)
    watch.look()

    assert (watch.kills, watch.peak_mib) == (0, 0)


def test_a_process_that_is_gone_has_no_group():
    watch = MemoryWatch(2**22 + 1)
    watch.look()

    assert watch.kills == 0
