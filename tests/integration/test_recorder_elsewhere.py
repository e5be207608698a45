"""What a job writes outside of the recorded directory is noted, with when; logs and caches quietly, locks and temporary files not."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.explore.operations import Elsewhere
from tests.integration.recorded import Recorded, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def elsewhere(recorded: Recorded) -> dict[str, tuple[int, ...]]:
    return {Path(entry.path).name: entry.at for entry in recorded.log.entries if isinstance(entry, Elsewhere)}


@pytest.mark.parametrize(
    "act",
    [
        "make(outside + '/file')",
        "make(outside + '/made'); os.rename(outside + '/made', outside + '/file')",
        "os.chdir(outside); make('file')",
        "os.write(os.open('file', os.O_CREAT | os.O_RDWR, dir_fd=os.open(outside, os.O_RDONLY)), b'x')",
        "os.write(call(437, -100, outside.encode() + b'/file', address((ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o640)), 24), b'x')",
        "os.mkdir(outside + '/made'); os.rename(outside + '/made', outside + '/file')",
        "os.symlink(outside + '/file', outside + '/.link'); make(outside + '/.link')",
    ],
)
def test_what_is_written_anew_is_noted_with_when(stage: Stage, act: str) -> None:
    recorded = stage.run(f"os.mkdir('one')\n{act}\nos.mkdir(root + '/two')")

    found = elsewhere(recorded)
    assert set(found) == {"file"}
    assert set(found["file"]) == {1}
    assert recorded.kinds() == ["mkdir", "mkdir"]


@pytest.mark.parametrize(
    "act",
    [
        "open(outside + '/file', 'a').write('x')",
        "os.mkdir(outside + '/.cached'); make(outside + '/.cached/file')",
        "os.mkdir(outside + '/__pycache__'); make(outside + '/__pycache__/file')",
    ],
)
def test_what_is_appended_to_or_looks_like_a_cache_is_noted_quietly(stage: Stage, act: str) -> None:
    recorded = stage.run(f"os.mkdir('one')\n{act}")

    (entry,) = [entry for entry in recorded.log.entries if isinstance(entry, Elsewhere)]
    assert (Path(entry.path).name, entry.at, entry.quiet) == ("file", (1,), True)


def test_what_lies_in_memory_is_noted(stage: Stage) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as shared:
        assert elsewhere(stage.run(f"make({shared!r} + '/file')")) == {"file": (0,)}


@pytest.mark.parametrize(
    "act",
    [
        "make('/dev/null')",
        "make(outside + '/lock', b'')",
        "make(outside + '/gone'); os.unlink(outside + '/gone')",
        "make(outside + '/staged'); os.rename(outside + '/staged', 'in')",
        "make('in')",
        "fails('EISDIR', os.open, outside, os.O_WRONLY)",
        "open(os.environ['HARNESS_EVENTS'], 'w').write('{}')",
        "content('/etc/hostname')",
    ],
)
def test_what_is_no_part_of_a_save_is_not(stage: Stage, act: str) -> None:
    assert elsewhere(stage.run(act)) == {}


def test_what_lies_in_the_directory_for_temporary_files_is_not(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        monkeypatch.setenv("TMPDIR", scratch)

        assert elsewhere(stage.run("make(os.environ['TMPDIR'] + '/left')")) == {}
