"""A recovery that had no room is not judged, and one that had is."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.explore.judging import room
from harness.explore.judging.room import SPARE_BYTES, NoRoomError, require_room, speaks_of_no_room

MB = 1 << 20


def disk(
    monkeypatch: pytest.MonkeyPatch, *, free_bytes: int = 100 * MB, files: int = 1000, free_files: int = 500, blocks: int = 1 << 20
) -> None:
    found = SimpleNamespace(f_bavail=free_bytes // 4096, f_frsize=4096, f_blocks=blocks, f_files=files, f_favail=free_files)
    monkeypatch.setattr(os, "statvfs", lambda _path: found)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoints"
    path.mkdir()
    (path / "checkpoint").write_bytes(b"x" * 3 * MB)
    return path


MOUNTS = """22 1 0:1 / / rw,relatime - ext4 /dev/root rw
23 22 0:2 / {place} rw,relatime shared:1 - {kind} /dev/disk rw,{options}
"""


def mounted(monkeypatch: pytest.MonkeyPatch, place: Path, kind: str, options: str = "discard") -> None:
    path = place / "mountinfo"
    path.write_text(MOUNTS.format(place=place, kind=kind, options=options))
    monkeypatch.setattr(room, "_MOUNTS", path)


def look(checkpoints: Path, *, said: str = "", came_through: bool = False) -> None:
    require_room(checkpoints, checkpoints.parent / "tmp", said=said, came_through=came_through)


@pytest.mark.parametrize(
    "said",
    [
        "OSError: [Errno 28] No space left on device: '/x/tmp'",
        "dd: error writing 'x': No space left on device",
        "error: ENOSPC",
        "cannot write: Disk quota exceeded",
    ],
)
def test_one_that_fails_and_says_that_there_was_no_room_where_a_quota_may_be_in_force_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, checkpoints: Path, said: str
) -> None:
    disk(monkeypatch)
    mounted(monkeypatch, checkpoints.parent, "ext4", "usrquota")

    with pytest.raises(NoRoomError, match="free some space"):
        look(checkpoints, said=said)
    look(checkpoints, said=said, came_through=True)
    look(checkpoints, said="ValueError: torn")


def test_where_much_is_free_and_no_quota_in_force_the_words_alone_prove_nothing(monkeypatch: pytest.MonkeyPatch, checkpoints: Path) -> None:
    disk(monkeypatch)
    mounted(monkeypatch, checkpoints.parent, "ext4")
    look(checkpoints, said="ENOSPC")
    mounted(monkeypatch, checkpoints.parent, "xfs", "noquota")
    look(checkpoints, said="ENOSPC")
    for kind, options in (("nfs4", "vers=4.2"), ("xfs", "prjquota")):
        mounted(monkeypatch, checkpoints.parent, kind, options)
        with pytest.raises(NoRoomError, match="a quota may be in force"):
            look(checkpoints, said="ENOSPC")


def test_the_words_of_a_full_disk_are_known_and_no_others() -> None:
    assert all(map(speaks_of_no_room, ("OSError: [Errno 28] No space", "No space left on device", "x: EDQUOT", "Disk quota exceeded")))
    assert not any(map(speaks_of_no_room, ("[Errno 280]", "XENOSPCX", "no space in the name")))


def test_one_that_fails_where_its_checkpoints_had_no_room_a_second_time_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, checkpoints: Path
) -> None:
    disk(monkeypatch, free_bytes=2 * MB)

    with pytest.raises(NoRoomError, match="2,097,152 bytes were free"):
        look(checkpoints)
    look(checkpoints, came_through=True)


def test_on_a_full_disk_one_that_comes_through_is_not_judged_either(monkeypatch: pytest.MonkeyPatch, checkpoints: Path) -> None:
    disk(monkeypatch, free_bytes=SPARE_BYTES - 4096)
    with pytest.raises(NoRoomError):
        look(checkpoints, came_through=True)

    disk(monkeypatch, free_files=0)
    with pytest.raises(NoRoomError, match="no more files"):
        look(checkpoints, came_through=True)


def test_a_file_system_that_does_not_tell_its_room_is_no_full_one(monkeypatch: pytest.MonkeyPatch, checkpoints: Path) -> None:
    disk(monkeypatch, free_bytes=0, blocks=0, files=0, free_files=0)

    look(checkpoints)
