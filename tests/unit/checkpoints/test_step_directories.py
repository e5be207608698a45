"""Step directories with a manifest of sizes and SHA-256."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checkpoints import newest_committed, paths_of, step_path, survey, temporary_path
from harness.history import CheckpointSeen


def build(directory: Path, step: int, name: str = "", *, state: bytes = b'{"weights": [1, 2]}') -> Path:
    path = directory / (name or f"step_{step:08d}")
    path.mkdir()
    (path / "state.json").write_bytes(state)
    files = {"state.json": [len(state), hashlib.sha256(state).hexdigest()]}
    (path / "manifest.json").write_text(json.dumps({"step": step, "files": files}))
    return path


def look(directory: Path) -> dict[str, CheckpointSeen]:
    seen = survey(directory, "step-directories")

    assert seen.lost == ()
    return {checkpoint.path: checkpoint for checkpoint in seen.checkpoints}


def test_a_directory_whose_manifest_verifies_is_committed(tmp_path: Path) -> None:
    build(tmp_path, 5)
    build(tmp_path, 10)
    for name, content in {"latest": "step_00000005", "owner": "1", "final.json": '{"step": 10}', "latest.tmp-1": "step"}.items():
        (tmp_path / name).write_text(content)

    seen = look(tmp_path)

    assert [(each.step, each.state, each.files) for each in seen.values()] == [(5, "committed", 2), (10, "committed", 2)]
    assert [each.is_latest for each in seen.values()] == [False, True]


def test_of_one_step_the_committed_one_comes_after_the_temporary_ones(tmp_path: Path) -> None:
    build(tmp_path, 10)
    build(tmp_path, 10, "step_00000010.tmp-1")
    build(tmp_path, 10, "step_00000010-old.tmp-2")

    assert [each.state for each in look(tmp_path).values()] == ["temporary", "temporary", "committed"]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "a flipped byte": lambda path: flip(path / "state.json"),
    "a cut file": lambda path: (path / "state.json").write_bytes(b"{"),
    "an empty file": lambda path: (path / "state.json").write_bytes(b""),
    "a missing file": lambda path: (path / "state.json").unlink(),
    "a link for a file": lambda path: ((path / "state.json").unlink(), (path / "state.json").symlink_to("manifest.json")),
    "no manifest": lambda path: (path / "manifest.json").unlink(),
    "an empty manifest": lambda path: (path / "manifest.json").write_bytes(b""),
    "a cut manifest": lambda path: (path / "manifest.json").write_bytes((path / "manifest.json").read_bytes()[:20]),
    "a manifest of no UTF-8": lambda path: (path / "manifest.json").write_bytes(b'{"step": 10, "files": {"\xff": [1, ""]}}'),
    "a manifest of another step": lambda path: (path / "manifest.json").write_text('{"step": 5, "files": {}}'),
    "a manifest of another form": lambda path: (path / "manifest.json").write_text('{"step": 10, "files": {"state.json": 7}}'),
    "a bottomless manifest": lambda path: (path / "manifest.json").write_text('{"step": 10, "files": {}, "more": ' + "[" * 100_000),
    "nothing": lambda path: [file.unlink() for file in path.iterdir()],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_does_not_verify_is_incomplete_and_the_older_one_is_offered(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    build(tmp_path, 5)
    damage(build(tmp_path, 10))

    seen = look(tmp_path)

    assert (seen["step_00000010"].state, seen["step_00000010"].is_latest) == ("incomplete", False)
    assert (seen["step_00000005"].state, seen["step_00000005"].is_latest) == ("committed", True)
    assert newest_committed(tmp_path, "step-directories") == seen["step_00000005"]


def test_a_file_too_large_to_hash_is_verified_by_its_size(tmp_path: Path) -> None:
    path = build(tmp_path, 5, state=bytes(100))

    whole = survey(tmp_path, "step-directories", hash_bytes_max=50).checkpoints[0]
    (path / "state.json").write_bytes(bytes(99))
    cut = survey(tmp_path, "step-directories", hash_bytes_max=50).checkpoints[0]

    assert (whole.state, whole.digest.startswith("partial-")) == ("committed", True)
    assert cut.state == "incomplete"


def test_whether_a_step_is_the_latest_is_known_when_only_it_is_asked_for(tmp_path: Path) -> None:
    build(tmp_path, 5)
    (build(tmp_path, 10) / "state.json").unlink()

    (seen,) = survey(tmp_path, "step-directories", only_step=5).checkpoints

    assert (seen.step, seen.is_latest) == (5, True)


def test_files_have_classes(tmp_path: Path) -> None:
    path = build(tmp_path, 10)
    (path / "larger").write_bytes(bytes(1000))
    (tmp_path / "latest").write_text("step_00000010")

    assert paths_of(tmp_path, "step-directories", "data") == (path / "larger", path / "state.json")
    assert paths_of(tmp_path, "step-directories", "metadata") == (path / "manifest.json",)
    assert paths_of(tmp_path, "step-directories", "commit-marker") == (path / "manifest.json",)
    assert paths_of(tmp_path, "step-directories", "pointer") == (tmp_path / "latest",)
    assert paths_of(tmp_path, "step-directories", "snapshot") == ()
    assert paths_of(tmp_path, "step-directories", "step") == (path,)


def test_the_pointer_is_found_without_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "latest").write_text("step_00000010")

    assert paths_of(tmp_path, "step-directories", "pointer") == (tmp_path / "latest",)
    assert paths_of(tmp_path, "step-directories", "data") == ()
    assert paths_of(tmp_path, "step-directories", "step") == ()


def test_steps_have_paths(tmp_path: Path) -> None:
    assert step_path(tmp_path, "step-directories", 15) == tmp_path / "step_00000015"
    build(tmp_path, 10)
    build(tmp_path, 5, "step_005")

    assert step_path(tmp_path, "step-directories", 5) == tmp_path / "step_005"
    assert step_path(tmp_path, "step-directories", 15) == tmp_path / "step_00000015"
    assert temporary_path(tmp_path, "step-directories", 15) == tmp_path / "step_00000015.tmp-0"
    assert temporary_path(tmp_path, "step-directories", 15).name not in look(tmp_path)
